/** Writes the folder of a package and has dpkg-deb pack it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Contents, MAINTAINER } from './contents.ts';
import { settle, stageFiles } from './stage.ts';

const KIB = 1_024;
/** xz at its fastest: 36 MB in ten seconds, where its best takes two minutes for 30 MB. */
const COMPRESSED = ['-Zxz', '-z1'];
const UNCOMPRESSED = ['-Znone'];

export interface Deb {
  version: string;
  architecture: string;
  /** Of every file, since 1970. */
  seconds: number;
  uncompressed: boolean;
}

/** Packs `contents` by way of the empty folder `stage` into `file`: byte for byte the same for the same contents. */
export function packDeb(root: string, contents: Contents, deb: Deb, stage: string, file: string): void {
  stageFiles(contents, stage);
  const isFile = (path: string) => !('target' in (contents.get(path) ?? {}));
  const paths = [...contents.keys()].filter(isFile).toSorted();
  const sums = paths
    .filter((path) => !path.startsWith('etc/'))
    .map((path) => `${md5(join(stage, path))}  ${path}\n`);
  const sizes = paths.map((path) => Math.ceil(statSync(join(stage, path)).size / KIB));
  const about: Record<string, string> = {
    control: control(
      deb,
      sizes.reduce((sum, size) => sum + size, 0),
    ),
    conffiles: paths
      .filter((path) => path.startsWith('etc/'))
      .map((path) => `/${path}\n`)
      .join(''),
    md5sums: sums.join(''),
  };
  mkdirSync(join(stage, 'DEBIAN'));
  for (const [name, text] of Object.entries(about))
    writeFileSync(join(stage, 'DEBIAN', name), text, { mode: 0o644 });
  for (const name of ['postinst', 'prerm', 'postrm']) {
    copyFileSync(join(root, 'packaging', name), join(stage, 'DEBIAN', name));
    chmodSync(join(stage, 'DEBIAN', name), 0o755);
  }
  settle(stage, deb.seconds);
  execFileSync(
    'dpkg-deb',
    ['--root-owner-group', ...(deb.uncompressed ? UNCOMPRESSED : COMPRESSED), '--build', stage, file],
    {
      env: { ...process.env, SOURCE_DATE_EPOCH: `${deb.seconds}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
}

function control({ version, architecture }: Deb, installedKib: number): string {
  return `Package: gatehouse
Version: ${version}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${installedKib}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 11), init-system-helpers (>= 1.54), systemd (>= 252), udev
Suggests: curl, jq, openssl, python3-paho-mqtt
Section: admin
Priority: optional
Description: access-control gateway of a site
 Runs the access-control hardware of a hotel: card encoders, RS-485 buses and
 Zigbee door locks. It brings its own Node.js and needs no network to be
 installed.
 .
 operations.md in its documentation leads to a first door and a first key.
`;
}

function md5(file: string): string {
  return createHash('md5').update(readFileSync(file)).digest('hex');
}
