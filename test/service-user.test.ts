/** What root can read and the service cannot is a fault of the configuration, with the command that mends it. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { hiddenByUnit } from '../src/cli/service-user.ts';
import { AS_THE_SUITE } from './as-the-suite.ts';
import { CA_EXTENSIONS, hasOpenssl, openOpenssl } from './services/pki/openssl.ts';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 120_000 });

const NOBODY = 65_534;
const START = join(import.meta.dirname, '../src/start.js');
const PROFILE = join(import.meta.dirname, '../config/profiles/gatehouse-io.yaml');

/** The files of a service that runs as no one, all of them root's and closed. */
function installation() {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  using openssl = openOpenssl();
  const root = openssl.mint({ extensions: CA_EXTENSIONS });
  const server = openssl.mint({ extensions: ['subjectAltName=DNS:gate.example'] });
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  chownSync(join(folder, 'data'), NOBODY, NOBODY);
  mkdirSync(join(folder, 'vendors'), { mode: 0o700 });
  copyFileSync(root.certificateFile, join(folder, 'vendors', 'root.pem'));
  copyFileSync(server.certificateFile, join(folder, 'site.pem'));
  copyFileSync(server.keyFile, join(folder, 'site.key'));
  copyFileSync(PROFILE, join(folder, 'board.yaml'));
  writeFileSync(join(folder, 'password'), 'x');
  const file = join(folder, 'gatehouse.yaml');
  const links = [
    {
      id: 'bus-1',
      protocol: 'modbus',
      options: { port: '/dev/console', profile: 'board.yaml', devices: [{ unitId: 1 }] },
    },
  ];
  const upstream = { url: 'mqtts://n', username: 'u', passwordFile: 'password' };
  const http = { certFile: 'site.pem', keyFile: 'site.key' };
  const settings = {
    dataDirectory: 'data',
    http,
    encoders: { vendorRoots: ['vendors/root.pem'] },
    upstream,
    links,
  };
  writeFileSync(file, JSON.stringify(settings));
  for (const name of ['site.pem', 'site.key', 'board.yaml', 'password', 'gatehouse.yaml', 'vendors/root.pem'])
    chmodSync(join(folder, name), 0o600);
  return { folder, file };
}

function gatehouse(args: string[], user: { uid?: number; gid?: number } = {}) {
  const env = { ...AS_THE_SUITE, HOME: '/tmp', PATH: process.env.PATH };
  const { stdout, stderr } = spawnSync(process.execPath, [START, ...args], {
    encoding: 'utf8',
    env,
    ...user,
  });
  return { stdout, stderr };
}

it.skipIf(process.getuid?.() !== 0 || !hasOpenssl)(
  'config check and doctor of root judge files for the user of the service',
  () => {
    const { folder, file } = installation();
    const check = () =>
      JSON.parse(gatehouse(['config', 'check', '--json', file]).stdout) as {
        mistakes: { message: string }[];
      };
    const messages = check().mistakes.map(({ message }) => message);
    for (const name of [
      'gatehouse.yaml',
      'site.pem',
      'site.key',
      'board.yaml',
      'password',
      'vendors/root.pem',
    ])
      expect(messages, name).toContainEqual(
        expect.stringMatching(`the service \\(user nobody\\) may not read ${join(folder, name)}: chgrp `),
      );
    const doctor = JSON.parse(gatehouse(['doctor', '--json', '--config', file]).stdout);
    expect(doctor.checks).toContainEqual(
      expect.objectContaining({
        severity: 'bad',
        text: expect.stringMatching(/may not read .*site\.key: chgrp/),
      }),
    );
    // A folder on the way is mended first, then the file in it.
    for (const round of ['folders', 'files']) {
      const commands = check().mistakes.flatMap(({ message }) => /(chgrp .*)$/.exec(message)?.[1] ?? []);
      const own = commands.filter((command) => !command.includes('/dev/'));
      expect(own.length, round).toBeGreaterThan(0);
      expect(spawnSync('sh', ['-ec', own.join('\n')]).status).toBe(0);
    }
    expect(check().mistakes.filter(({ message }) => !message.includes('/dev/'))).toEqual([]);
  },
);

it('what the unit hides from the service is known, also behind a link', () => {
  const link = join(temporaryFolder(), 'link');
  symlinkSync(homedir(), link);
  const hidden = [join(homedir(), 'a.pem'), link, '/home', '/tmp/../tmp/x'];
  for (const path of hidden) expect(hiddenByUnit(path), path).toContain('ProtectHome=');
  for (const path of ['/etc/gatehouse/root.pem', '/homes/root.pem', '/srv/tmp/x', '/var/lib/gatehouse'])
    expect(hiddenByUnit(path), path).toBeUndefined();
});

it.skipIf(process.getuid?.() !== 0 || !hasOpenssl)(
  'no command is proposed that gives away what belongs to the system',
  () => {
    const { file } = installation();
    const settings = JSON.parse(readFileSync(file, 'utf8'));
    const faults = (changes: object) => {
      writeFileSync(file, JSON.stringify({ ...settings, ...changes }));
      return gatehouse(['config', 'check', file]);
    };
    const data = join(dirname(file), 'data');
    for (const root of ['/etc/shadow', join(homedir(), 'root.pem')]) {
      const { stdout, stderr } = faults({ dataDirectory: data, encoders: { vendorRoots: [root] } });
      expect(stdout + stderr).not.toMatch(new RegExp(`ch(grp|mod|own) .*${root.slice(0, 5)}`));
    }
    for (const dataDirectory of ['/', '/etc', join(homedir(), 'data'), '/dev/null']) {
      const { stdout, stderr } = faults({ dataDirectory });
      expect(stdout + stderr, dataDirectory).not.toMatch(/chown -R|(chgrp|chmod) .* \/(etc|root|dev)\b/);
    }
  },
);

it.skipIf(process.getuid?.() !== 0 || !hasOpenssl)(
  'to a member of the group a file that is for root and the service is one that was not checked',
  () => {
    const { folder, file } = installation();
    chownSync(file, 0, 0);
    chmodSync(file, 0o640);
    const member = { uid: 65_533, gid: 0 };
    const { stdout, stderr } = gatehouse(['config', 'check', file], member);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/is valid; not checked \(needs root\): .*site\.key/);
    const { checks } = JSON.parse(gatehouse(['doctor', '--json', '--config', file], member).stdout);
    expect(checks).toContainEqual(
      expect.objectContaining({
        severity: 'doubtful',
        text: expect.stringMatching(`not checked \\(needs root\\): .*${join(folder, 'site.key')}`),
      }),
    );
    expect(checks).not.toContainEqual(expect.objectContaining({ severity: 'bad', subject: 'configuration' }));
  },
);

it.skipIf(process.getuid?.() !== 0 || !hasOpenssl)(
  'who may not read the configuration is not asked to correct it',
  () => {
    const { file } = installation();
    const stranger = { uid: 65_533, gid: 65_533 };
    const { checks } = JSON.parse(gatehouse(['doctor', '--json', '--config', file], stranger).stdout);
    expect(checks).toEqual([
      expect.objectContaining({ subject: 'configuration', severity: 'bad', remedy: 'sudo gatehouse doctor' }),
    ]);
  },
);
