/** What is in the package: each file's place, from the root of a system, and what it is made of. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readProfile } from '../../src/platform/config/profiles.ts';

/** A file of this tree, the text of one that is made, or a link. `executable`: mode 755; the other files have 644. */
export type Entry = ({ from: string } | { text: string | Buffer } | { target: string }) & {
  executable?: true;
};
export type Contents = Map<string, Entry>;

/** Beside it, `gatehouse update` puts other releases: docs/decisions/0011-updates.md. */
const LIB = 'usr/lib/gatehouse/base';
const SYSTEM = 'usr/lib/gatehouse/systemd';
/** To the release that runs. An installation by apt leads it back to its own. */
const CURRENT = 'usr/lib/gatehouse/current';
const SHARE = 'usr/share/gatehouse';
const DOC = 'usr/share/doc/gatehouse';

/** What drivers/bus/rs485-mode.ts runs. */
export const RS485_MODE = 'drivers/bus/rs485-mode';

/** As YAML, for people, and as data (src/platform/config/profiles.ts). */
const PROFILES = 'config/profiles';

/** Of this tree, at the same place below LIB. What is loaded by its path and not bundled. */
const AS_HERE = [
  'src/start.js',
  'src/platform/field/host/start-host.js',
  'src/platform/database/wal-checkpoint-thread.js',
  'src/platform/database/migrations',
  PROFILES,
  'config/gatehouse.example.yaml',
  'node_modules/better-sqlite3/package.json',
  'node_modules/better-sqlite3/lib',
  'node_modules/zigbee-herdsman/package.json',
];
/** A bundle names their folders, for log lines that a thread writes; Gatehouse has no such thread. */
export const NOT_NEEDED = ['node_modules/pino', 'node_modules/thread-stream'];

const ELSEWHERE: Record<string, string> = {
  'systemd/gatehouse.service': 'usr/lib/systemd/system/gatehouse.service',
  'systemd/gatehouse-update.service': 'usr/lib/systemd/system/gatehouse-update.service',
  'systemd/gatehouse-https.socket': 'usr/lib/systemd/system/gatehouse-https.socket',
  'systemd/strict.conf': `${SHARE}/strict.conf`,
  'systemd/sysusers.d/gatehouse.conf': 'usr/lib/sysusers.d/gatehouse.conf',
  'systemd/tmpfiles.d/gatehouse.conf': 'usr/lib/tmpfiles.d/gatehouse.conf',
  'systemd/modules-load.d/gatehouse.conf': 'usr/lib/modules-load.d/gatehouse.conf',
  'systemd/udev/70-gatehouse.rules': 'usr/lib/udev/rules.d/70-gatehouse.rules',
  'config/gatehouse.example.yaml': 'etc/gatehouse/gatehouse.example.yaml',
  'config/gatehouse.schema.json': `${SHARE}/gatehouse.schema.json`,
  'config/site.example.yaml': `${SHARE}/site.example.yaml`,
  'config/site.schema.json': `${SHARE}/site.schema.json`,
  'config/grafana-dashboard.json': `${SHARE}/grafana-dashboard.json`,
  'config/prometheus-rules.yaml': `${SHARE}/prometheus-rules.yaml`,
  'test/independent/encoder.py': `${SHARE}/trial-encoder/encoder.py`,
  'docs/operations.md': `${DOC}/operations.md`,
  'docs/interface.md': `${DOC}/interface.md`,
  'docs/doors.md': `${DOC}/doors.md`,
  'docs/locks.md': `${DOC}/locks.md`,
  'docs/rs485.md': `${DOC}/rs485.md`,
  'docs/zigbee.md': `${DOC}/zigbee.md`,
  'docs/hardware.md': `${DOC}/hardware.md`,
  'docs/encoder-protocol.md': `${DOC}/encoder-protocol.md`,
  'docs/glossary.md': `${DOC}/glossary.md`,
  'docs/openapi.json': `${DOC}/openapi.json`,
  'docs/asyncapi.yaml': `${DOC}/asyncapi.yaml`,
  'docs/gatehouse.postman_collection.json': `${DOC}/gatehouse.postman_collection.json`,
  'packaging/lintian-overrides': 'usr/share/lintian/overrides/gatehouse',
};
const PROGRAMS: Record<string, string> = {
  'packaging/gatehouse': 'usr/bin/gatehouse',
  'systemd/launch': `${SYSTEM}/launch`,
  'systemd/settle': `${SYSTEM}/settle`,
  'test/independent/encoder.sh': `${SHARE}/trial-encoder/encoder.sh`,
};

/**
 * What lies in the tree; `addons` are paths from its root, `node` is the folder of its npm package, `helper` was compiled. `dist` is what build.ts
 * made; the source maps of the console and of the simulators stay here: no browser and no log asks for them.
 */
export function filesOfTree(
  root: string,
  { addons, node, dist, helper }: { addons: readonly string[]; node: string; dist: string; helper: string },
): Contents {
  const contents: Contents = new Map();
  for (const path of [...AS_HERE.flatMap((each) => filesIn(root, each)), ...addons])
    contents.set(`${LIB}/${path}`, { from: join(root, path) });
  for (const path of filesIn(dist, '.').filter((path) => !/^\.\/(?:console|simulate)\/.*\.map$/.test(path)))
    contents.set(join(LIB, 'dist', path), { from: join(dist, path) });
  for (const path of filesIn(root, PROFILES).filter((path) => path.endsWith('.yaml')))
    contents.set(`${LIB}/${path.replace(/yaml$/, 'json')}`, {
      text: JSON.stringify(readProfile(join(root, path))),
    });
  contents.set(CURRENT, { target: 'base' });
  contents.set(`${LIB}/${RS485_MODE}`, { from: helper, executable: true });
  contents.set(`${LIB}/bin/node`, { from: join(node, 'bin/node'), executable: true });
  for (const [from, to] of Object.entries(ELSEWHERE)) contents.set(to, { from: join(root, from) });
  for (const [from, to] of Object.entries(PROGRAMS))
    contents.set(to, { from: join(root, from), executable: true });
  return contents;
}

function filesIn(root: string, path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesIn(root, `${path}/${name}`));
}

/** What is made for the package. Times are seconds since 1970. */
export function madeFiles(
  root: string,
  made: {
    version: string;
    seconds: number;
    manual: string;
    completion: string;
    copyright: string;
    billOfMaterials: string;
  },
): Contents {
  const { name, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const manifest = { name, version: made.version, license, type: 'module' };
  return new Map<string, Entry>([
    [`${LIB}/package.json`, { text: `${JSON.stringify(manifest)}\n` }],
    ['usr/share/man/man1/gatehouse.1.gz', { text: gzipped(made.manual) }],
    ['usr/share/bash-completion/completions/gatehouse', { text: made.completion }],
    [`${DOC}/copyright`, { text: made.copyright }],
    [`${DOC}/changelog.gz`, { text: gzipped(changelog(made.version, made.seconds)) }],
    [`${DOC}/CHANGELOG.md.gz`, { text: gzipped(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')) }],
    [`${DOC}/gatehouse.cdx.json`, { text: made.billOfMaterials }],
  ]);
}

/** Without a name and a time in its head, and so the same each time. */
function gzipped(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}

/** The project has no address; SECURITY.md says where to report. */
export const MAINTAINER = 'Gatehouse contributors <gatehouse@localhost.localdomain>';

/** As Debian has it; what has changed is in CHANGELOG.md. */
function changelog(version: string, seconds: number): string {
  const date = new Date(seconds * 1_000).toUTCString().replace('GMT', '+0000');
  return `gatehouse (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- ${MAINTAINER}  ${date}\n`;
}
