/**
 * An image for container engines, as a tar of the OCI image layout (Image Format Specification 1.1), written without any of them.
 * It has no shell and no package manager: the C libraries of the Debian that this runs on, and the program. The same commit
 * and the same libraries give the same bytes.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Refused } from './architecture.ts';
import type { Contents } from './contents.ts';
import { settle, stageFiles } from './stage.ts';

export interface Image {
  version: string;
  /** As Debian has it, which is as OCI has it. */
  architecture: string;
  /** Of every file, since 1970. */
  seconds: number;
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

const MEDIA = 'application/vnd.oci.image';
const LARGEST_LAYER = 2 ** 30;
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6'];
/** Of the package, what an image has a use for: no units, no manual page. */
const KEPT = ['usr/lib/gatehouse/base/', 'usr/lib/gatehouse/current', 'usr/share/'];
const LEFT_OUT = ['usr/share/bash-completion/', 'usr/share/lintian/', 'usr/share/man/'];
/** The user in the image: above those that systems give to people and services. */
const USER = 10_001;
/** Written to while it runs; everything else may be read-only. */
const VOLUMES = ['var/cache/gatehouse', 'var/lib/gatehouse', 'run/gatehouse'];
/** Where engines mount. */
const PLACES = ['dev', 'etc/gatehouse', 'proc', 'sys', 'tmp'];
const NODE = '/usr/lib/gatehouse/current/bin/node';
const START = '/usr/lib/gatehouse/current/src/start.js';
const HEALTH_CHECK = '/usr/lib/gatehouse/health-check';
const [SECOND_NS, INTERVAL_S, TIMEOUT_S, START_S] = [1e9, 30, 15, 60];

/** Writes `file` by way of `work`, an empty folder. `contents`: of the package. */
export function packImage(root: string, contents: Contents, image: Image, work: string, file: string): void {
  const { architecture, seconds, version } = image;
  const layout = join(work, 'layout');
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const store = (mediaType: string, blob: Buffer): Descriptor => {
    const digest = sha256(blob);
    writeFileSync(join(layout, 'blobs/sha256', digest), blob);
    return { mediaType, digest: `sha256:${digest}`, size: blob.length };
  };
  const storeJson = (mediaType: string, value: object) =>
    store(mediaType, Buffer.from(JSON.stringify(value)));

  const stage = (name: string, files: Contents, folders: readonly string[] = []) => {
    const path = join(work, name);
    for (const folder of folders) mkdirSync(join(path, folder), { recursive: true });
    stageFiles(files, path);
    settle(path, seconds);
    return path;
  };
  const system = stage('system', systemFiles(architecture), PLACES);
  chmodSync(join(system, 'tmp'), 0o1777);
  const volumes = stage('volumes', new Map(), VOLUMES);
  for (const volume of VOLUMES) chmodSync(join(volumes, volume), 0o700);
  const tars = [
    tarOf(system, seconds),
    tarOf(stage('program', programFiles(root, contents)), seconds),
    tarOf(volumes, seconds, USER, VOLUMES),
  ];
  const layers = tars.map((tar) => store(`${MEDIA}.layer.v1.tar+gzip`, gzipSync(tar)));
  const created = new Date(seconds * 1_000).toISOString();
  const config = storeJson(`${MEDIA}.config.v1+json`, {
    created,
    architecture,
    os: 'linux',
    config: runConfig(version),
    rootfs: { type: 'layers', diff_ids: tars.map((tar) => `sha256:${sha256(tar)}`) },
    history: ['libraries of Debian', 'Gatehouse', 'its volumes'].map((comment) => ({ created, comment })),
  });
  const manifest = storeJson(`${MEDIA}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${MEDIA}.manifest.v1+json`,
    config,
    layers,
  });
  const name = `localhost/gatehouse:${version}`;
  // The first is OCI's, which podman reads; the second is what docker reads.
  const annotations = { 'org.opencontainers.image.ref.name': name, 'io.containerd.image.name': name };
  const index = {
    schemaVersion: 2,
    mediaType: `${MEDIA}.index.v1+json`,
    manifests: [{ ...manifest, platform: { architecture, os: 'linux' }, annotations }],
  };
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(file, tarOf(layout, seconds));
}

function runConfig(version: string): object {
  return {
    User: `${USER}:${USER}`,
    ExposedPorts: { '8443/tcp': {}, '8883/tcp': {} },
    // As in systemd/gatehouse.service.
    Env: [
      'PATH=/usr/bin',
      'NODE_ENV=production',
      'MALLOC_ARENA_MAX=2',
      'CACHE_DIRECTORY=/var/cache/gatehouse',
    ],
    Entrypoint: [
      NODE,
      '--disable-sigusr1',
      '--max-semi-space-size=1',
      '--heap-growing-percent=30',
      '--max-old-space-size=256',
      START,
    ],
    Cmd: ['serve', '--config', '/etc/gatehouse/gatehouse.yaml'],
    Volumes: Object.fromEntries(VOLUMES.map((path) => [`/${path}`, {}])),
    WorkingDir: '/',
    StopSignal: 'SIGTERM',
    // No part of OCI's format: what docker and podman keep at this place.
    Healthcheck: {
      Test: ['CMD', HEALTH_CHECK],
      Interval: INTERVAL_S * SECOND_NS,
      Timeout: TIMEOUT_S * SECOND_NS,
      StartPeriod: START_S * SECOND_NS,
      Retries: 2,
    },
    Labels: { 'org.opencontainers.image.version': version, 'org.opencontainers.image.licenses': 'MIT' },
  };
}

function programFiles(root: string, contents: Contents): Contents {
  const wanted = [...contents].filter(
    ([path]) =>
      KEPT.some((start) => path.startsWith(start)) && !LEFT_OUT.some((start) => path.startsWith(start)),
  );
  return new Map([
    ...wanted,
    [HEALTH_CHECK.slice(1), { from: join(root, 'packaging/health-check'), executable: true }],
    // There is no shell for packaging/gatehouse.
    ['usr/bin/gatehouse', { text: `#!${NODE}\nimport('${START}');\n`, executable: true }],
  ]);
}

/** Libraries with their licences and what scanners for known faults read, users, and the links that Debian has. */
function systemFiles(architecture: string): Contents {
  const files: Contents = new Map();
  for (const name of LIBRARIES) {
    const paths = dpkgQuery(architecture, '--listfiles', name).split('\n');
    for (const path of paths.filter((each) => /\.so(\.\d+)*$/.test(each) && !each.includes('/gconv/'))) {
      const isLink = lstatSync(path).isSymbolicLink();
      files.set(
        path.replace(/^\/lib/, '/usr/lib').slice(1),
        isLink ? { target: readlinkSync(path) } : { from: path, executable: true },
      );
    }
    files.set(`usr/share/doc/${name}/copyright`, { from: `/usr/share/doc/${name}/copyright` });
    files.set(`var/lib/dpkg/status.d/${name}`, { text: dpkgQuery(architecture, '--status', name) });
  }
  for (const folder of ['bin', 'lib', 'lib64']) files.set(folder, { target: `usr/${folder}` });
  const home = '/var/lib/gatehouse';
  const users = `root:x:0:0:root:/root:/nonexistent\ngatehouse:x:${USER}:${USER}:Gatehouse:${home}:/nonexistent\n`;
  files.set('etc/passwd', { text: users });
  // Debian's number of the group that serial ports belong to.
  files.set('etc/group', { text: `root:x:0:\ndialout:x:20:gatehouse\ngatehouse:x:${USER}:\n` });
  files.set('etc/nsswitch.conf', { text: 'hosts: files dns\n' });
  return files;
}

function dpkgQuery(architecture: string, question: string, name: string): string {
  try {
    const argv = [question, `${name}:${architecture}`];
    return execFileSync('dpkg-query', argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    throw new Refused(`the image takes ${name}:${architecture} of this machine: apt-get install it`);
  }
}

function tarOf(folder: string, seconds: number, owner = 0, paths: readonly string[] = ['.']): Buffer {
  const same = ['--sort=name', '--format=gnu', '--numeric-owner', `--owner=${owner}`, `--group=${owner}`];
  const argv = ['--create', ...same, `--mtime=@${seconds}`, `--directory=${folder}`, ...paths];
  return execFileSync('tar', argv, { maxBuffer: LARGEST_LAYER });
}

function sha256(blob: Buffer): string {
  return createHash('sha256').update(blob).digest('hex');
}
