/** The package of this tree, and later versions of it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { laterRelease, signPackages } from './releases.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface Packages {
  /** What is on the stick. */
  folder: string;
  /** Names there: this version, a later one with a new schema, one that dies, one that is not signed. */
  current: string;
  later: string;
  ill: string;
  unsigned: string;
  /** The text of minisign's public key. */
  publicKey: string;
}

const MIGRATION = 'CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;';
/** Ready, with the database brought to its schema, and gone three seconds later. */
const DIES = `
const isReady = () => process.getBuiltinModule('node:fs').existsSync('/run/gatehouse/admin.sock');
if (command === 'serve') setInterval(() => isReady() && setTimeout(() => process.exit(1), 3_000), 500);`;

export function makePackages(folder: string): Packages {
  mkdirSync(folder, { recursive: true });
  const script = join(ROOT, 'scripts/package.ts');
  const deb = execFileSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' }).trim();
  const later = laterRelease(deb, { version: '9.1.0', migration: MIGRATION });
  const ill = laterRelease(deb, { version: '9.2.0', migration: MIGRATION, begins: DIES });
  const publicKey = signPackages(folder, `${folder}.keys`);
  const unsigned = laterRelease(deb, { version: '9.3.0' });
  return {
    folder,
    publicKey,
    current: basename(deb),
    later: basename(later),
    ill: basename(ill),
    unsigned: basename(unsigned),
  };
}
