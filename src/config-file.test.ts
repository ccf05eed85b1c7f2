import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configJsonSchema } from './config.ts';
import { parseConfig, readConfig } from './config-file.ts';
import { FileError } from './yaml-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function refusal(text: string, file = '/etc/gatehouse/gatehouse.yaml'): FileError {
  try {
    parseConfig(text, file);
  } catch (error) {
    if (error instanceof FileError) return error;
    throw error;
  }
  throw new Error(`accepted: ${text}`);
}
const messages = (text: string) => refusal(text).mistakes.map(({ message }) => message);

const ID = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
const OTHER = '6c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
/** Zigbee gateways, each of the one link and network unless it says something else. */
function gateways(...more: object[]): string {
  const zgates = more.map((one) => ({ deviceId: ID, link: 'a', networkId: ID, ...one }));
  const links = ['a', 'c'].map((id) => ({ id, protocol: 'loopback' }));
  return JSON.stringify({ links, networks: [{ id: ID }], zgates });
}

describe('what is accepted', () => {
  it('fills in every default when the file is empty', () => {
    for (const text of ['', '\n', '# nothing\n', '---\n', '\uFEFF']) {
      const config = parseConfig(text, '/etc/gatehouse/gatehouse.yaml');
      expect(config).toMatchObject({
        dataDirectory: '/var/lib/gatehouse',
        http: { listen: { host: '0.0.0.0', port: 8443 }, plain: false, productSegment: 'access' },
        encoders: { keepAlive: 20_000, writeExpiry: 900_000, vendorRoots: [] },
        links: [],
        log: { level: 'info' },
      });
      expect(config.upstream).toBeUndefined();
    }
  });

  it('starts relative paths at the folder of the file, in every setting that holds a path', () => {
    const config = parseConfig(
      `dataDirectory: ../data
adminSocket: run/a.sock
encoders: { vendorRoots: [roots/a.pem, /b.pem] }
auth: { oidc: { issuer: https://i, audience: g, jwksUrl: https://i/k, caFile: i.pem } }
upstream: { url: mqtts://n, caFile: ca.pem, certFile: c.pem, keyFile: k.pem, username: u, passwordFile: p }`,
      '/etc/gatehouse/gatehouse.yaml',
    );
    expect(config.dataDirectory).toBe('/etc/data');
    expect(config.adminSocket).toBe('/etc/gatehouse/run/a.sock');
    expect(config.encoders.vendorRoots).toEqual(['/etc/gatehouse/roots/a.pem', '/b.pem']);
    const { caFile, certFile, keyFile, passwordFile } = config.upstream ?? {};
    expect([caFile, certFile, keyFile, passwordFile]).toEqual(
      ['ca.pem', 'c.pem', 'k.pem', 'p'].map((name) => `/etc/gatehouse/${name}`),
    );
    expect(config.auth.oidc?.caFile).toBe('/etc/gatehouse/i.pem');
    const { auth } = parseConfig(
      'auth: { oidc: { issuer: https://i, audience: g, jwksFile: k.json } }',
      '/etc/x',
    );
    expect(auth.oidc?.jwksFile).toBe('/etc/k.json');
    // The settings above are all there are: a new one must be added to resolvePaths and here.
    expect(JSON.stringify(configJsonSchema()).split('"format":"path"')).toHaveLength(1 + 9);
  });

  it('reads addresses, durations and IPv6', () => {
    const config = parseConfig(
      'http: { listen: "[::1]:0", plain: true }\nencoders: { writeExpiry: 1h }',
      'x',
    );
    expect(config.http.listen).toEqual({ host: '::1', port: 0 });
    expect(config.encoders.writeExpiry).toBe(3_600_000);
  });
});

describe('how mistakes are told', () => {
  it('shows file, line, column, the line and a caret, for all mistakes in their order', () => {
    const text = [
      'systemID: 5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
      'encoders:',
      '  keepAlive: 2m',
      '  registrationsPerHour: none',
      'http:',
      '\tlisten: x',
    ].join('\n');
    expect(refusal(text.replace('\t', '  '), 'site.yaml').message).toBe(
      [
        'site.yaml:1:1: unknown setting "systemID" (did you mean "systemId"?)',
        '    1 | systemID: 5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
        '      | ^',
        'site.yaml:3:14: encoders.keepAlive: expected between 1s and 30s',
        '    3 |   keepAlive: 2m',
        '      |              ^',
        'site.yaml:4:25: encoders.registrationsPerHour: expected number, received string',
        '    4 |   registrationsPerHour: none',
        '      |                         ^',
        'site.yaml:6:11: http.listen: expected host:port, such as 0.0.0.0:8443',
        '    6 |   listen: x',
        '      |           ^',
      ].join('\n'),
    );
    expect(refusal(text).mistakes[0]).toMatchObject({ line: 6, message: expect.stringMatching(/tab/i) });
  });

  it('points at the section when a setting is missing or has no value', () => {
    expect(refusal('log: {}\nupstream:\n  window: 3\n').mistakes).toEqual([
      { line: 2, column: 1, message: 'upstream.url: expected string; it is missing' },
    ]);
    expect(refusal('\nhttp:\n').mistakes).toEqual([
      { line: 2, column: 1, message: 'http: expected object; it has no value' },
    ]);
  });

  it('lists what is known where no name is near', () => {
    expect(messages('log: { zzz: 1 }')).toEqual(['unknown setting "log.zzz" (known here: level)']);
    expect(messages('links: [{ id: a, protocol: loopback, hots: b }]')).toEqual([
      'unknown setting "links[0].hots" (did you mean "host"?)',
    ]);
  });

  it('knows the settings of each protocol apart', () => {
    const text = `links:
  - { id: a, protocol: modbus, options: { port: /dev/a, checksum: true, devices: [{ unitID: 1, unitId: 1 }] } }
  - { id: b, protocol: dcon, options: { port: /dev/b, checksums: true } }
`;
    expect(refusal(text).mistakes).toEqual([
      { line: 2, column: 57, message: expect.stringMatching(/options\.checksum" \(known here: port, baud/) },
      { line: 2, column: 85, message: expect.stringMatching(/unitID" \(did you mean "unitId"\?\)/) },
      { line: 3, column: 55, message: expect.stringMatching(/\(did you mean "checksum"\?\)/) },
    ]);
  });

  it('keeps control characters and endless lines away from the terminal', () => {
    const { message } = refusal(`"\\e[2J": 1 # \u001b[2J${'x'.repeat(5_000)}`);
    expect(message).not.toContain('\u001b');
    expect(message.length).toBeLessThan(1_000);
    expect(refusal(Array.from({ length: 500 }, (_, n) => `k${n}: 1`).join('\n')).message).toMatch(
      /and 480 more$/,
    );
  });
});

describe('YAML that is not for people', () => {
  it.each([
    ['a duplicate key', 'log: {}\nlog: {}', 2, /unique/],
    ['an alias', 'a: &a {}\nhttp: *a', 2, /aliases/],
    ['an alias bomb', 'a: &a [x,x]\nb: &b [*a,*a]\nlinks: [*b,*b]', 2, /aliases/],
    ['YAML 1.1', '%YAML 1.1\n---\nhttp: {}', 1, /1\.2/],
    ['a second document', 'log: {}\n---\nlog: {}', 2, /multiple documents/],
    ['a custom tag', 'log: !include x.yaml', 1, /tag/i],
    ['an unclosed quote', 'systemId: "x', 1, /quote/],
    ['a key that is no string', '? [1]\n: 2', 1, /scalar|string/],
  ])('refuses %s', (_name, text, line, message) => {
    const [first] = refusal(text).mistakes;
    expect(first).toMatchObject({ line, message: expect.stringMatching(message) });
  });

  it('refuses a list, a word, __proto__ and nesting without end', () => {
    expect(messages('- a')[0]).toBe('the file: expected object, received array');
    expect(messages('gatehouse')[0]).toBe('the file: expected object, received string');
    expect(messages('__proto__: { log: {} }')[0]).toMatch(/^unknown setting "__proto__"/);
    for (const opening of ['[', '- ', '{a: '])
      expect(refusal(opening.repeat(50_000)).mistakes.length).toBeGreaterThan(0);
    expect(messages(`links: ${'['.repeat(700)}${']'.repeat(700)}`)[0]).toMatch(
      /^links\[0\]: expected object/,
    );
  });

  it('answers anything with a configuration or a FileError', () => {
    const settings = fc.constantFrom(
      'http',
      'listen',
      'encoders',
      'links',
      'upstream',
      'url',
      '__proto__',
      'x',
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue(),
        fc.dictionary(settings, tie('any')),
        fc.array(tie('any')),
      ),
    })).any;
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          value.map((json) => JSON.stringify(json)),
        ),
        (text) => {
          try {
            parseConfig(text, 'x.yaml');
          } catch (error) {
            expect(error).toBeInstanceOf(FileError);
          }
        },
      ),
    );
  });
});

describe('single settings', () => {
  it.each([
    ['http: { listen: 0.0.0.0:70000 }', /port up to 65535/],
    ['http: { listen: 8443 }', /expected host:port/],
    ['http: { plain: yes }', /expected boolean, received string/],
    ['http: { basePath: /api/ }', /without a slash/],
    ['http: { productSegment: A }', /a-z/],
    ['http: { requestsPerSecond: 0 }', />=1/],
    ['http: { requestsPerSecond: 1.5 }', /int/],
    ['http: { requestsPerSecond: .inf }', /number/],
    ['encoders: { endpoint: "mqtts://a:99999" }', /port up to 65535/],
    ['encoders: { endpoint: "mqtt://a:1" }', /mqtts/],
    ['encoders: { keepAlive: 20 }', /duration such as/],
    ['encoders: { keepAlive: 31s }', /between 1s and 30s/],
    ['encoders: { keepAlive: 1500ms }', /whole seconds/],
    ['encoders: { vendorRoots: root.pem }', /expected array/],
    ['encoders: { vendorRoots: [""] }', /expected a path/],
    ['upstream: { url: "http://a" }', /mqtts:\/\/host:port/],
    ['upstream: { url: "mqtt://a:70000" }', /port up to/],
    ['upstream: { url: "mqtt://a", protocolVersion: 3 }', /expected one of 4\|5/],
    ['auth: { failureBurst: 0 }', />=1/],
    ['auth: { oidc: { issuer: x, audience: g, jwksFile: k } }', /expected a URL/],
    ['auth: { oidc: { issuer: https://i, jwksFile: k } }', /audience/],
    ['auth: { oidc: { issuer: https://i, audience: g, jwksFile: k, algorithms: [HS256] } }', /"ES256"/],
    ['auth: { oidc: { issuer: https://i, audience: g, jwksFile: k, algorithms: [none] } }', /"ES256"/],
    ['auth: { oidc: { issuer: https://i, audience: g, jwksUrl: http://i/k } }', /loopback address only/],
    [
      'auth: { oidc: { issuer: https://i, audience: g, jwksUrl: "http://127.0.0.1.evil.example/k" } }',
      /loopback/,
    ],
    ['auth: { oidc: { issuer: https://i, audience: g, jwksFile: k, leeway: 10m } }', /and 5m/],
    ['links: [{ id: A, protocol: loopback }]', /a-z/],
    ['links: [{ id: a, protocol: osdb }]', /protocol: expected one of "loopback"\|"modbus"\|"dcon"$/],
    ['links: [{ id: a, protocol: modbuss }]', /\(did you mean "modbus"\?\)$/],
    ['links: [{ id: a }]', /"dcon"; it is missing$/],
    ['links: [{ id: a, protocol: modbus }]', /^links\[0\]\.options: expected object; it is missing$/],
    ['links: [{ id: a, protocol: modbus, options: {} }]', /options\.port: expected a device such as/],
    ['links: [{ id: a, protocol: dcon, options: { port: /dev/a, baudRate: 9601 } }]', /1200\|2400/],
    ['systemId: 1234', /expected a UUID/],
    ['log: { level: verbose }', /"debug"\|"info"/],
    ['dataDirectory: "a\\0b"', /expected a path/],
  ])('refuses %s', (text, message) => {
    expect(messages(text)).toEqual([expect.stringMatching(message)]);
  });
});

describe('settings that contradict each other', () => {
  it.each([
    ['http: { plain: true }', 'http.plain', /loopback/],
    // A name may be given another address.
    ['http: { plain: true, listen: "localhost:80" }', 'http.plain', /loopback/],
    ['http: { plain: true, listen: "10.0.0.1:80" }', 'http.plain', /loopback/],
    ['http: { listen: "0.0.0.0:9000" }\nencoders: { listen: "127.0.0.1:9000" }', 'encoders.listen', /same/],
    ['auth: { oidc: { issuer: https://i, audience: g } }', 'auth.oidc', /jwksUrl or jwksFile/],
    [
      'auth: { oidc: { issuer: https://i, audience: g, jwksFile: k, caFile: c } }',
      'auth.oidc.caFile',
      /https/,
    ],
    ['upstream: { url: "mqtts://a", certFile: c }', 'upstream.certFile', /keyFile/],
    ['upstream: { url: "mqtts://a", keyFile: c }', 'upstream.keyFile', /certFile/],
    ['upstream: { url: "mqtts://a", passwordFile: c }', 'upstream.passwordFile', /username/],
    ['upstream: { url: "mqtt://a", caFile: c }', 'upstream.caFile', /mqtts/],
    ['links: [{ id: a, protocol: loopback }, { id: a, protocol: loopback }]', 'links[1].id', /another link/],
    [`networks: [{ id: ${ID} }, { id: ${ID.toUpperCase()} }]`, 'networks[1].id', /another network/],
    [gateways({ link: 'b' }), 'zgates[0].link', /links has no "b"/],
    [gateways({ networkId: OTHER }), 'zgates[0].networkId', /networks has no such id/],
    [gateways({}, { deviceId: OTHER }), 'zgates[1].link', /another gateway is on "a"/],
    [gateways({}, { link: 'c' }), 'zgates[1].deviceId', /another gateway has this id/],
    [`dataDirectory: /${'d'.repeat(110)}`, 'dataDirectory', /107 bytes/],
    [`adminSocket: /${'ü'.repeat(60)}`, 'adminSocket', /107 bytes/],
  ])('refuses %s', (text, setting, message) => {
    const told = messages(text);
    expect(told).toEqual([expect.stringMatching(message)]);
    expect(told[0]).toContain(`${setting}: `);
  });

  it('accepts plain HTTP on loopback, and port 0 twice', () => {
    for (const host of ['127.0.0.1', '127.8.9.1', '[::1]'])
      parseConfig(`http: { plain: true, listen: "${host}:8080" }`, 'x');
    parseConfig('http: { listen: "127.0.0.1:0" }\nencoders: { listen: "127.0.0.1:0" }', 'x');
  });
});

describe('files', () => {
  const write = (content: string | Uint8Array) => {
    const file = join(folder, 'gatehouse.yaml');
    writeFileSync(file, content);
    return file;
  };

  it('names the line of a file that cannot be read, when asked', () => {
    const file = write('encoders:\n  vendorRoots:\n    - root.pem\n    - .\n');
    writeFileSync(join(folder, 'root.pem'), '');
    expect(() => readConfig(file)).not.toThrow();
    try {
      readConfig(file, { checkFiles: true });
      expect.unreachable();
    } catch (error) {
      expect((error as FileError).mistakes).toEqual([
        { line: 4, column: 7, message: `encoders.vendorRoots[1]: ${folder} is not a file` },
      ]);
    }
  });

  it('explains a file that cannot be read itself', () => {
    const reading = (file: string) => () => readConfig(file);
    expect(reading(join(folder, 'none'))).toThrow(/there is no such file/);
    expect(reading(folder)).toThrow(/it is not a file/);
    expect(reading(write(new Uint8Array([0x61, 0x3a, 0xff])))).toThrow(/not text in UTF-8/);
    expect(reading(write(`# ${'x'.repeat(300_000)}`))).toThrow(/more than 262144 bytes/);
  });

  it('does not read a device', () => {
    expect(() => readConfig('/dev/zero')).toThrow(/it is not a file/);
  });
});
