/** The package, installed, run and removed without touching this machine: dpkg has a folder as the root of the other system. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runImage } from '../test/running-image.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const SIZE_MAX = 45_000_000;
const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';
const OTHER = process.arch === 'arm64' ? 'amd64' : 'arm64';
/** dpkg gives files to root, and there is no other who could. */
const NO_ROOT = process.getuid?.() !== 0;
const missing = (command: string) => spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0;

const IMAGE = 'gatehouse.oci.tar';
const NO_SIGNERS = ['minisign', 'gpg', 'apt-ftparchive'].some(missing);

let folder: string;
let deb: string;
/** Made a second time. */
let again: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-package-test-'));
  vi.stubEnv('GNUPGHOME', join(folder, 'gnupg'));
  const image = ['--oci', join(folder, 'first', IMAGE)];
  const { status, stdout, stderr } = make('first', ...image, ...(NO_SIGNERS ? [] : signing()));
  expect(status, stderr).toBe(0);
  deb = stdout.trim();
});
afterAll(() => {
  if (!NO_SIGNERS) spawnSync('gpgconf', ['--kill', 'all']);
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command in the folder of the test; throws where it fails. */
function run(command: string, ...argv: string[]): string {
  return execFileSync(command, argv, { cwd: folder, stdio: 'pipe', encoding: 'utf8' });
}

/** Makes keys, and returns the options that use them. */
function signing(): string[] {
  const [secret, owner] = [join(folder, 'secret'), 'site@gatehouse.example'];
  mkdirSync(join(folder, 'gnupg'), { mode: 0o700 });
  run('minisign', '-G', '-W', '-p', 'public', '-s', secret);
  run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', owner);
  const repository = ['--repository', join(folder, 'repository'), '--gpg-key', owner];
  return ['--minisign-key', secret, ...repository];
}

/** Runs `npm run package` into a folder below the test's. */
function make(out: string, ...argv: string[]) {
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1700000000' };
  const script = join(import.meta.dirname, 'package.ts');
  return spawnSync(process.execPath, [script, '--out', join(folder, out), ...argv], {
    encoding: 'utf8',
    env,
  });
}

/** Of one of the two archives in a package. */
function digest(file: string, part: string): string {
  const tar = execFileSync('dpkg-deb', [part, file], { maxBuffer: 2 ** 30 });
  return createHash('sha256').update(tar).digest('hex');
}

/** dpkg on a system of its own in `root`, whose scripts get that root and start nothing. */
function dpkg(root: string, ...argv: string[]): string {
  const options = [`--root=${root}`, '--force-script-chrootless', '--force-depends', '--force-unsafe-io'];
  const { status, stdout, stderr } = spawnSync('dpkg', [...options, ...argv], { encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
  return stdout;
}

function emptySystem(): string {
  const root = mkdtempSync(join(folder, 'root-'));
  mkdirSync(join(root, 'etc'));
  mkdirSync(join(root, 'usr/lib'), { recursive: true });
  symlinkSync('usr/lib', join(root, 'lib'));
  for (const name of ['info', 'updates', 'triggers'])
    mkdirSync(join(root, 'var/lib/dpkg', name), { recursive: true });
  for (const name of ['status', 'available']) writeFileSync(join(root, 'var/lib/dpkg', name), '');
  return root;
}

describe('the package', () => {
  it('is small, and the same bytes each time, with sums and a list of what is in it', () => {
    expect(statSync(deb).size).toBeLessThan(SIZE_MAX);
    // Compression gives the same for the same, and takes most of the time.
    const image = join(folder, 'an image');
    again = make('again', '--uncompressed', '--oci', image).stdout.trim();
    expect(readFileSync(image).equals(readFileSync(join(folder, 'first', IMAGE)))).toBe(true);
    // It has a sum under any name, in any folder.
    expect(readFileSync(join(folder, 'again/SHA256SUMS'), 'utf8')).toContain('  ../an image\n');
    run('sh', '-c', 'cd again && sha256sum --check --strict SHA256SUMS');
    for (const part of ['--fsys-tarfile', '--ctrl-tarfile'])
      expect(digest(again, part)).toBe(digest(deb, part));
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(folder, 'first') });
    const bill = JSON.parse(readFileSync(deb.replace(/deb$/, 'cdx.json'), 'utf8'));
    const names = bill.components.map(({ name }: { name: string }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['@preact/signals-core', 'better-sqlite3', 'hono', 'zigbee-herdsman', 'zod']),
    );
    // Under the GPL, where the stand-in of drivers/zigbee belongs.
    expect(names).not.toContain('zigbee-on-host');
    // What docs/operations.md says to take from there.
    const contents = run('dpkg-deb', '--contents', deb);
    for (const file of [
      'grafana-dashboard.json',
      'prometheus-rules.yaml',
      'strict.conf',
      'trial-encoder/encoder.sh',
    ])
      expect(contents).toContain(` ./usr/share/gatehouse/${file}\n`);
  });

  it.skipIf(missing('lintian'))('passes lintian', () => {
    // Without the 126 MB of Node.js, which take lintian half a minute: another program in its place.
    const opened = join(folder, 'opened');
    run('dpkg-deb', '--raw-extract', again, opened);
    const [node, sums] = [join(opened, 'usr/lib/gatehouse/base/bin/node'), join(opened, 'DEBIAN/md5sums')];
    copyFileSync('/bin/true', node);
    const sum = run('md5sum', node).slice(0, 32);
    writeFileSync(
      sums,
      readFileSync(sums, 'utf8').replace(/^.*(?= {2}usr\/lib\/gatehouse\/base\/bin\/node$)/m, sum),
    );
    run('dpkg-deb', '--root-owner-group', '-Zxz', '-z0', '--build', opened, 'small.deb');
    const argv = ['--allow-root', '--fail-on', 'error,warning', join(folder, 'small.deb')];
    const { status, stdout, stderr } = spawnSync('lintian', argv, { encoding: 'utf8' });
    expect(status, stdout + stderr).toBe(0);
    expect(stdout).toBe('');
  });

  it('is refused for a processor whose Node.js is not there, or is another one', () => {
    const without = make('other', '--arch', OTHER);
    expect(without.status).toBe(1);
    expect(without.stderr).toMatch(/npm has not installed node-linux-\w+, .*: npm pack node-linux-/);
    const false_ = join(folder, 'node.tgz');
    writeFileSync(false_, 'not Node.js');
    const wrong = make('other', '--arch', OTHER, '--node', false_);
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toMatch(/is not the node-linux-\w+ of package-lock\.json/);
    expect(make('other', '--arch', 'm68k').stderr).toMatch(/there is no Node\.js for m68k: amd64,arm64/);
    expect(existsSync(join(folder, 'other'))).toBe(false);
  });

  it.skipIf(NO_ROOT)('is installed, upgraded and removed with its data kept, and purged without', () => {
    const root = emptySystem();
    const at = (path: string) => join(root, path);
    expect(dpkg(root, '--install', deb)).toContain('not configured yet');
    expect(readFileSync(at('etc/passwd'), 'utf8')).toMatch(/^gatehouse:/m);
    expect(statSync(at('etc/gatehouse')).mode & 0o777).toBe(0o750);
    const wants = at('etc/systemd/system/multi-user.target.wants');
    expect(readdirSync(wants)).toEqual(['gatehouse.service']);
    writeFileSync(at('etc/gatehouse/gatehouse.yaml'), 'http: {}\n');
    mkdirSync(at('var/lib/gatehouse/keys'), { recursive: true });
    expect(dpkg(root, '--install', deb)).not.toContain('not configured yet');
    expect(dpkg(root, '--remove', 'gatehouse')).toContain('apt purge gatehouse deletes them');
    expect(existsSync(at('usr/lib/gatehouse'))).toBe(false);
    expect(existsSync(at('var/lib/gatehouse/keys'))).toBe(true);
    expect(existsSync(at('etc/gatehouse/gatehouse.yaml'))).toBe(true);
    expect(dpkg(root, '--purge', 'gatehouse')).toContain('deleting /var/lib/gatehouse');
    for (const path of ['var/lib/gatehouse', 'etc/gatehouse']) expect(existsSync(at(path)), path).toBe(false);
    expect(existsSync(wants) ? readdirSync(wants) : []).toEqual([]);
  });

  it('has what its unit names, and starts, with a bus, from its own files alone', async () => {
    const root = join(folder, 'unpacked');
    execFileSync('dpkg-deb', ['-x', deb, root]);
    const unit = readFileSync(join(root, 'usr/lib/systemd/system/gatehouse.service'), 'utf8');
    const named = [...unit.matchAll(/\/usr\/(?:lib|share\/doc)\/gatehouse\/[\w./-]+/g)].map(([path]) => path);
    expect(named).toContain('/usr/lib/gatehouse/systemd/launch');
    for (const path of named) expect(existsSync(join(root, path)), path).toBe(true);
    const lib = join(root, 'usr/lib/gatehouse/base');
    for (const name of ['launch', 'settle'])
      accessSync(join(root, 'usr/lib/gatehouse/systemd', name), constants.X_OK);
    // Else the lines in the journal are perl's, which the unit starts.
    expect(unit).toMatch(/^SyslogIdentifier=gatehouse$/m);

    // Profiles of products are read as data, and their YAML is for people.
    const profiles = join(lib, 'config/profiles');
    const products = readdirSync(profiles).filter((name) => name.endsWith('.yaml'));
    for (const name of products) writeFileSync(join(profiles, name), 'none: [');
    expect(products).toContain('gatehouse-io.yaml');

    const work = join(folder, 'work');
    mkdirSync(work);
    const devices = 'devices: [{ unitId: 1 }]';
    const bus = `options: { port: ${work}/absent, baudRate: 19200, parity: even, profile: gatehouse-io, ${devices} }`;
    const config = join(work, 'gatehouse.yaml');
    writeFileSync(
      config,
      `dataDirectory: data\nhttp: { listen: "127.0.0.1:0", plain: true }\nlinks: [{ id: bus, protocol: modbus, ${bus} }]\n`,
    );
    const [node, start] = [join(lib, 'bin/node'), join(lib, 'src/start.js')];
    const env = { HOME: work, PATH: '/usr/bin:/bin' };
    const daemon = spawn(node, [start, 'serve', '--config', config], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void daemon.kill('SIGKILL'));
    let log = '';
    daemon.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    await vi.waitFor(() => expect(log).toMatch(/"ready at .*"/), 120_000);
    expect(log).toContain(`${lib}/dist/main/`);
    const url = /"baseUrl":"([^"]+)"/.exec(log)?.[1];
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    // The console.
    expect(await (await fetch(`${url}/`)).text()).toMatch(/<script [^>]*src="\/assets\//);
    // The host process and its serial library have been loaded.
    await vi.waitFor(() => expect(log).toContain('there is no such device'), 60_000);
    const status = execFileSync(node, [start, 'status', '--config', config], { encoding: 'utf8', env });
    expect(status).toMatch(/✓ {2}database/);
    const ended = new Promise((resolve) => daemon.once('exit', resolve));
    daemon.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});

describe('the image for containers', () => {
  it.skipIf(NO_ROOT)(
    'runs by its own user, with a root that is read-only, and says whether it is well',
    async () => {
      const configuration = `adminSocket: /run/gatehouse/admin.sock\nhttp: { listen: "127.0.0.1:0" }\nencoders: { listen: "127.0.0.1:0" }\n`;
      using image = runImage(join(folder, 'first', IMAGE), join(folder, 'container'), configuration);
      const { process: engine, config, exec, log } = image;
      const ended = new Promise((resolve) => engine.once('exit', resolve));
      const health = () => exec(...config.Healthcheck.Test.slice(1)).status;
      await vi.waitFor(() => expect(log()).toMatch(/"ready at /), 120_000);
      expect(health()).toBe(0);
      const node = `${config.Entrypoint[0]}`;
      const uid = exec(node, '--print', 'process.getuid()');
      expect(uid.output).toBe('10001\n');
      for (const path of ['/usr/x', '/etc/gatehouse/x']) {
        const written = exec(node, '--eval', `require('node:fs').writeFileSync('${path}', '')`);
        expect(written.output).toMatch(/EROFS/);
      }
      expect(exec('/usr/bin/sh').status).not.toBe(0);
      expect(exec('/usr/bin/gatehouse', 'status').output).toMatch(/✓ {2}database/);
      image.stop();
      expect(await ended).toBe(0);
      expect(log()).toContain('"stopping"');
    },
  );
});

it.skipIf(NO_SIGNERS)(
  'has signed sums, and a signed repository that apt takes, and only as it was signed',
  () => {
    run('minisign', '-V', '-p', 'public', '-m', 'first/SHA256SUMS');
    const repository = join(folder, 'repository');
    mkdirSync(join(folder, 'apt/etc'), { recursive: true });
    const key = `${repository}/gatehouse-archive-keyring.gpg`;
    const list = join(folder, 'apt/etc/gatehouse.list');
    writeFileSync(list, `deb [arch=${ARCHITECTURE} signed-by=${key}] file:${repository} stable main\n`);
    writeFileSync(join(folder, 'apt/status'), '');
    const settings = {
      'Dir::State::lists': `${folder}/apt/lists`,
      'Dir::State::status': `${folder}/apt/status`,
      'Dir::Cache': `${folder}/apt`,
      'Dir::Etc::sourcelist': list,
      'Dir::Etc::sourceparts': '-',
      'APT::Sandbox::User': 'root',
      'APT::Update::Error-Mode': 'any',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const update = () => {
      rmSync(join(folder, 'apt/lists'), { recursive: true, force: true });
      for (const path of ['lists/partial', 'archives/partial'])
        mkdirSync(join(folder, 'apt', path), { recursive: true });
      return run('apt-get', ...options, 'update');
    };
    update();
    expect(run('apt-cache', ...options, 'policy', 'gatehouse')).toMatch(/Candidate: \d/);
    const release = join(repository, 'dists/stable/InRelease');
    writeFileSync(release, readFileSync(release, 'utf8').replace('Label: Gatehouse', 'Label: Another'));
    rmSync(join(repository, 'dists/stable/Release'));
    expect(update).toThrow();
  },
);
