/** Later versions of a package, well or ill, with signed sums beside them. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Change {
  version: string;
  /** SQL of a new schema. */
  migration?: string;
  /** JavaScript that the program begins with; it has `command`, the first word of the command line. */
  begins?: string;
}

const BASE = 'usr/lib/gatehouse/base';

/** Makes gatehouse_VERSION_ARCHITECTURE.deb beside `deb`. Returns its path. */
export function laterRelease(deb: string, change: Change): string {
  const file = deb.replace(/_[^_]+_/, `_${change.version}_`);
  const opened = `${file}.opened`;
  execFileSync('dpkg-deb', ['--raw-extract', deb, opened]);
  const edit = (path: string, edited: (text: string) => string) =>
    writeFileSync(join(opened, path), edited(readFileSync(join(opened, path), 'utf8')));
  const control = readFileSync(join(opened, 'DEBIAN/control'), 'utf8');
  const before = /^Version: (.*)$/m.exec(control)?.[1] ?? '';
  edit('DEBIAN/control', (text) => text.replace(`Version: ${before}`, `Version: ${change.version}`));
  const bundle = readdirSync(join(opened, BASE, 'dist/main')).filter((name) => name.endsWith('.js'));
  for (const name of bundle)
    edit(join(BASE, 'dist/main', name), (text) =>
      text.replace(`VERSION = "${before}"`, `VERSION = "${change.version}"`),
    );
  if (change.begins !== undefined)
    edit(join(BASE, 'src/start.js'), (text) =>
      text.replace('process.umask(', `const command = process.argv[2];\n${change.begins}\nprocess.umask(`),
    );
  if (change.migration !== undefined) {
    const folder = join(opened, BASE, 'src/platform/database/migrations');
    const next = String(readdirSync(folder).length + 1).padStart(4, '0');
    writeFileSync(join(folder, `${next}-later.sql`), change.migration);
  }
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', opened, file], {
    stdio: 'ignore',
  });
  rmSync(opened, { recursive: true });
  return file;
}

/** Draws a key beside the packages, and signs the sums of all of them. Returns the public key's text. */
export function signPackages(folder: string, keys: string): string {
  mkdirSync(keys, { recursive: true });
  const [secret, open] = [join(keys, 'secret'), join(keys, 'public')];
  execFileSync('minisign', ['-G', '-f', '-W', '-s', secret, '-p', open], { stdio: 'ignore' });
  const sums = readdirSync(folder)
    .filter((name) => name.endsWith('.deb'))
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
  execFileSync('minisign', ['-S', '-s', secret, '-m', join(folder, 'SHA256SUMS')], { stdio: 'ignore' });
  return readFileSync(open, 'utf8');
}
