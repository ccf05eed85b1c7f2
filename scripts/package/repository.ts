/** An apt repository of files alone: add a package, make the indexes, sign them. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ARCHITECTURES } from './architecture.ts';

const POOL = 'pool/main/g/gatehouse';
const SUITE = 'dists/stable';
const PUBLIC_KEY = 'gatehouse-archive-keyring.gpg';

/** Packages that are there stay. Throws where apt-ftparchive (of the package apt-utils) or gpg fails. */
export function layOutRepository(folder: string, deb: string, gpgKey: string, seconds: number): void {
  const env = { ...process.env, SOURCE_DATE_EPOCH: `${seconds}` };
  const run = (command: string, ...argv: string[]) =>
    execFileSync(command, argv, { cwd: folder, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'inherit'] });
  const write = (path: string, text: string | Buffer) => writeFileSync(join(folder, path), text);
  mkdirSync(join(folder, POOL), { recursive: true });
  copyFileSync(deb, join(folder, POOL, basename(deb)));
  for (const architecture of Object.keys(ARCHITECTURES)) {
    const place = `${SUITE}/main/binary-${architecture}`;
    mkdirSync(join(folder, place), { recursive: true });
    const packages = run('apt-ftparchive', '--arch', architecture, 'packages', 'pool');
    write(`${place}/Packages`, packages);
    write(`${place}/Packages.gz`, gzipSync(packages));
  }
  const about = {
    Origin: 'Gatehouse',
    Label: 'Gatehouse',
    Suite: 'stable',
    Codename: 'stable',
    Components: 'main',
    Architectures: Object.keys(ARCHITECTURES).join(' '),
  };
  const settings = Object.entries(about).flatMap(([name, value]) => [
    '-o',
    `APT::FTPArchive::Release::${name}=${value}`,
  ]);
  write(`${SUITE}/Release`, run('apt-ftparchive', ...settings, 'release', SUITE));
  const gpg = (...argv: string[]) => run('gpg', '--batch', '--yes', '--local-user', gpgKey, ...argv);
  gpg('--clearsign', '--output', `${SUITE}/InRelease`, `${SUITE}/Release`);
  gpg('--armor', '--detach-sign', '--output', `${SUITE}/Release.gpg`, `${SUITE}/Release`);
  run('gpg', '--batch', '--yes', '--output', PUBLIC_KEY, '--export', gpgKey);
}
