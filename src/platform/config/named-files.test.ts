import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readKeySet } from '../../services/auth/key-set.ts';
import { checkVendorRoots } from '../../services/pki/device-chain.ts';
import type { FileError } from '../yaml/yaml-file.ts';
import { readConfig } from './config-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const judging = (now: number) => ({ now, vendorRoots: checkVendorRoots, keySet: readKeySet });

describe('files', () => {
  const write = (content: string | Uint8Array) => {
    const file = join(folder, 'gatehouse.yaml');
    writeFileSync(file, content);
    return file;
  };

  it('does not miss a credential of a service that does not run', () => {
    const upstream = (password: string) =>
      `upstream: { url: "mqtts://n", username: u, passwordFile: ${password} }\n`;
    const check = (password: string) => () => readConfig(write(upstream(password)), { checkFiles: true });
    expect(check('/run/credentials/gatehouse-of-a-test.service/upstream.password')).not.toThrow();
    expect(check('/run/elsewhere/upstream.password')).toThrow('there is no such file');
  });

  it.each([
    'opensesame',
    'open/sesame',
    `opensesame${'x'.repeat(300)}`,
    '"-----BEGIN PRIVATE KEY-----\\nopensesame"',
  ])('does not repeat a secret that is written in place of the name of its file: %s', (secret) => {
    writeFileSync(join(folder, 'open'), '');
    const check = (text: string) => () => readConfig(write(text), { checkFiles: true });
    const refused = (name: string) =>
      new RegExp(`:\\d+:\\d+: .*${name}: there is no such file: name one that holds the secret$`);
    const upstream = `{ url: "mqtts://n", username: u, passwordFile: ${secret} }`;
    expect(check(`upstream: ${upstream}`)).toThrow(refused('passwordFile'));
    for (const name of ['tokenFile', 'signingKeyFile']) {
      const sink = `{ kind: https, name: s, urls: ["https://n/"], ${name}: ${secret} }`;
      expect(check(`sinks: [${sink}]`)).toThrow(refused(name));
      const decisionService = `{ url: "https://n/", ${name}: ${secret} }`;
      expect(check(`access: { decisionService: ${decisionService} }`)).toThrow(refused(name));
    }
  });

  it('names the line of a socket whose path is that of a file', () => {
    const file = write('adminSocket: taken\n');
    writeFileSync(join(folder, 'taken'), '');
    expect(() => readConfig(file, { checkFiles: true })).toThrow(
      /:1:14: adminSocket: .*\/taken is there and is no socket/,
    );
    expect(() => readConfig(write('adminSocket: free\n'), { checkFiles: true })).not.toThrow();
  });

  it('names the line of a file that cannot be read, when asked', () => {
    const file = write('encoders:\n  vendorRoots:\n    - root.pem\n    - .\n');
    writeFileSync(join(folder, 'root.pem'), '');
    expect(() => readConfig(file)).not.toThrow();
    try {
      readConfig(file, { checkFiles: true });
      expect.unreachable();
    } catch (error) {
      expect((error as FileError).mistakes).toEqual([
        { line: 4, column: 7, message: `encoders.vendorRoots[1]: ${folder} is a folder, not a file` },
      ]);
    }
    const devices = '[{ unitId: 1 }, { unitId: 2, profile: mine.yaml }]';
    const options = `{ port: /dev/a, profile: all.yaml, devices: ${devices} }`;
    const link = write(`links: [{ id: a, protocol: modbus, options: ${options} }]`);
    expect(() => readConfig(link, { checkFiles: true })).toThrow(
      /options\.profile: cannot read .*\/all\.yaml: there is no such file[\s\S]*devices\[1\]\.profile: cannot read/,
    );
  });

  it('says of each file that is named there why it cannot be read, without waiting for a pipe or reading it whole', async () => {
    const at = (name: string) => join(folder, name);
    mkdirSync(at('folder'));
    execFileSync('mkfifo', [at('pipe')]);
    symlinkSync('/dev/zero', at('device'));
    symlinkSync('circle', at('circle'));
    writeFileSync(at('large'), '-----BEGIN CERTIFICATE-----');
    truncateSync(at('large'), 50_000_000);
    const socket = createServer().listen(at('socket'));
    await once(socket, 'listening');
    const found = (setting: string, yaml: string) => {
      try {
        readConfig(write(yaml), { checkFiles: true, checkContents: judging(0) });
      } catch (error) {
        const { mistakes } = error as FileError;
        return mistakes.flatMap(({ message }) => (message.startsWith(`${setting}: `) ? [message] : []));
      }
      return [];
    };
    const settings = {
      'http.certFile': (name: string) => `http: { certFile: ${name}, keyFile: k }`,
      'http.keyFile': (name: string) => `http: { certFile: k, keyFile: ${name} }`,
      'encoders.vendorRoots[0]': (name: string) => `encoders: { vendorRoots: [${name}] }`,
      'auth.oidc.jwksFile': (name: string) =>
        `auth: { oidc: { issuer: https://i, audience: g, jwksFile: ${name} } }`,
      'auth.oidc.caFile': (name: string) =>
        `auth: { oidc: { issuer: https://i, audience: g, jwksUrl: https://i/k, caFile: ${name} } }`,
      'upstream.caFile': (name: string) => `upstream: { url: mqtts://n, caFile: ${name} }`,
      'upstream.certFile': (name: string) => `upstream: { url: mqtts://n, certFile: ${name}, keyFile: k }`,
      'upstream.keyFile': (name: string) => `upstream: { url: mqtts://n, certFile: k, keyFile: ${name} }`,
      'upstream.passwordFile': (name: string) =>
        `upstream: { url: mqtts://n, username: u, passwordFile: ${name} }`,
    };
    const reasons = {
      folder: `${at('folder')} is a folder, not a file`,
      pipe: `${at('pipe')} is a pipe, not a file`,
      device: `${at('device')} is a device, not a file`,
      socket: `${at('socket')} is a socket, not a file`,
      large: `${at('large')} has more than 1048576 bytes`,
      circle: `cannot read ${at('circle')}: its links lead in a circle`,
      gone: `cannot read ${at('gone')}: there is no such file`,
      'large/x': `cannot read ${at('large/x')}: a part of its path is not a folder`,
    };
    // Not by its name, which may be the secret.
    const absent = 'there is no such file: name one that holds the secret';
    const ofSecrets = { ...reasons, gone: absent, 'large/x': absent };
    for (const [setting, yaml] of Object.entries(settings))
      for (const [name, reason] of Object.entries(/(key|password)File$/.test(setting) ? ofSecrets : reasons))
        expect(found(setting, yaml(name))).toEqual([`${setting}: ${reason}`]);
    const profile =
      'links: [{ id: a, protocol: modbus, options: { port: /dev/a, devices: [{ unitId: 1 }], profile';
    for (const [name, reason] of [
      ['pipe', 'it is a pipe, not a file'],
      ['large', 'it has more than 65536 bytes'],
    ] as const) {
      symlinkSync(at(name), at(`${name}.yaml`));
      expect(found('links[0].options.profile', `${profile}: ${name}.yaml } }]`)).toEqual([
        `links[0].options.profile: cannot read the profile ${at(`${name}.yaml`)}: ${reason}`,
      ]);
    }
    socket.close();
  });

  it('refuses what the service that goes by a file refuses', () => {
    writeFileSync(join(folder, 'keys.json'), '{"keys": []}');
    const file = write('auth: { oidc: { issuer: https://i, audience: g, jwksFile: keys.json } }');
    expect(() => readConfig(file, { checkContents: judging(0) })).toThrow(
      /jwksFile: .*keys\.json cannot be used: it has no public key/,
    );
  });

  it('names the line of a file that does not hold what it should, when asked', () => {
    const place = (name: string, text: string) => writeFileSync(join(folder, name), text);
    place('not.pem', 'not a certificate');
    place('damaged.pem', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    place('keys.json', '{}');
    const file = write(
      [
        'encoders: { vendorRoots: [not.pem, damaged.pem] }',
        'auth: { oidc: { issuer: https://i, audience: g, jwksFile: keys.json } }',
        'upstream:',
        '  url: mqtts://n',
        '  caFile: not.pem',
        '  certFile: damaged.pem',
        '  keyFile: not.pem',
        'http: { certFile: not.pem, keyFile: damaged.pem }',
      ].join('\n'),
    );
    expect(() => readConfig(file, { checkFiles: true })).not.toThrow();
    try {
      readConfig(file, { checkContents: judging(Date.parse('2026-11-01')) });
      expect.unreachable();
    } catch (error) {
      const found = (error as FileError).mistakes.map(({ line, message }) => `${line}: ${message}`);
      expect(found).toEqual([
        expect.stringMatching(/^1: encoders\.vendorRoots\[0\]: .*not\.pem holds no certificate in PEM/),
        expect.stringMatching(
          /^1: encoders\.vendorRoots\[1\]: .*damaged\.pem holds a certificate that cannot be read/,
        ),
        expect.stringMatching(
          /^2: auth\.oidc\.jwksFile: .*keys\.json cannot be used: it has no list of keys/,
        ),
        expect.stringMatching(/^5: upstream\.caFile: .*holds no certificate in PEM/),
        expect.stringMatching(/^6: upstream\.certFile: .*cannot be read/),
        expect.stringMatching(/^7: upstream\.keyFile: .*holds no private key/),
        expect.stringMatching(/^8: http\.certFile: .*not\.pem holds no certificate in PEM$/),
        expect.stringMatching(/^8: http\.keyFile: .*damaged\.pem holds no private key/),
      ]);
    }
  });

  it('reports a missing file once, with the mistakes of other sections, in the order of the lines', () => {
    const file = write(
      [
        'http: 3',
        'encoders: { vendorRoots: [gone.pem], keepAlvie: 20s }',
        'doors: null',
        'links:',
        '  - 7',
        '  - { id: a, protocol: modbus, options: { port: /dev/a, profile: gone.yaml, devices: [{ unitId: 1 }] } }',
        '  - { id: a, protocol: dcom }',
        'wat: {}',
      ].join('\n'),
    );
    try {
      readConfig(file, { checkFiles: true, checkContents: judging(0), reader: () => undefined });
      expect.unreachable();
    } catch (error) {
      expect((error as FileError).mistakes.map(({ line, message }) => `${line}: ${message}`)).toEqual([
        '1: http: expected a section with settings, not a number',
        expect.stringMatching(
          /^2: encoders\.vendorRoots\[0\]: cannot read .*gone\.pem: there is no such file$/,
        ),
        '2: unknown setting "encoders.keepAlvie" (did you mean "keepAlive"?)',
        '3: doors: expected a section with settings; it has no value',
        '5: links[0]: expected a section with settings, not a number',
        expect.stringMatching(
          /^6: links\[1\]\.options\.profile: cannot read .*gone\.yaml: there is no such file$/,
        ),
        '7: links[2].id: another link has this id: see line 6',
        expect.stringMatching(/^7: links\[2\]\.protocol: .*\(did you mean "dcon"\?\)$/),
        expect.stringMatching(/^8: unknown setting "wat"/),
      ]);
    }
  });

  it('names the link whose adapter another one has under another name, when asked', () => {
    const adapter = join(folder, 'ttyUSB0');
    writeFileSync(adapter, '');
    symlinkSync(adapter, join(folder, 'by-id'));
    const bus = (id: string, port: string) => `- { id: ${id}, protocol: dcon, options: { port: "${port}" } }`;
    const names = [adapter, join(folder, 'by-id'), join(folder, 'unplugged'), 'tcp://a:1'];
    const file = write(`links:\n${names.map((port, index) => bus(`b${index}`, port)).join('\n')}\n`);
    expect(() => readConfig(file, { checkFiles: true })).not.toThrow();
    try {
      readConfig(file, { checkAdapters: true });
      expect.unreachable();
    } catch (error) {
      expect((error as FileError).mistakes.map(({ line, message }) => [line, message])).toEqual([
        [
          3,
          `links[1].options.port: another link has this port under another name: both are ${adapter}: see line 2`,
        ],
      ]);
    }
  });

  it('explains a file that cannot be read itself', () => {
    const reading = (file: string) => () => readConfig(file);
    expect(reading(join(folder, 'none'))).toThrow(/there is no such file/);
    expect(reading(folder)).toThrow(/it is a folder, not a file/);
    expect(reading(write(new Uint8Array([0x61, 0x3a, 0xff])))).toThrow(/not text in UTF-8/);
    expect(reading(write(`# ${'x'.repeat(300_000)}`))).toThrow(/more than 262144 bytes/);
  });

  it('does not read a device', () => {
    expect(() => readConfig('/dev/zero')).toThrow(/it is a device, not a file/);
  });
});
