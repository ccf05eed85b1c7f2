import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileError } from '../yaml/yaml-file.ts';
import { configJsonSchema } from './config.ts';
import { parseConfig, readConfig } from './config-file.ts';

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
const GATEWAY = `networks: [{ id: ${ID} }]\nzgates: [{ deviceId: ${ID}, link: a, networkId: ${ID} }]`;
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
firmwareDirectory: firmware
backup: { folder: ../mnt, recipients: [age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct] }
encoders: { vendorRoots: [roots/a.pem, /b.pem] }
auth: { oidc: { issuer: https://i, audience: g, jwksUrl: https://i/k, caFile: i.pem } }
http: { certFile: s.pem, keyFile: s.key }
upstream: { url: mqtts://n, caFile: ca.pem, certFile: c.pem, keyFile: k.pem, username: u, passwordFile: p }`,
      '/etc/gatehouse/gatehouse.yaml',
    );
    expect(config.dataDirectory).toBe('/etc/data');
    expect(config.adminSocket).toBe('/etc/gatehouse/run/a.sock');
    expect(config.backup?.folder).toBe('/etc/mnt');
    expect(config.firmwareDirectory).toBe('/etc/gatehouse/firmware');
    expect(config.encoders.vendorRoots).toEqual(['/etc/gatehouse/roots/a.pem', '/b.pem']);
    const { caFile, certFile, keyFile, passwordFile } = config.upstream ?? {};
    expect([caFile, certFile, keyFile, passwordFile]).toEqual(
      ['ca.pem', 'c.pem', 'k.pem', 'p'].map((name) => `/etc/gatehouse/${name}`),
    );
    expect(config.auth.oidc?.caFile).toBe('/etc/gatehouse/i.pem');
    expect([config.http.certFile, config.http.keyFile]).toEqual([
      '/etc/gatehouse/s.pem',
      '/etc/gatehouse/s.key',
    ]);
    const { auth } = parseConfig(
      'auth: { oidc: { issuer: https://i, audience: g, jwksFile: k.json } }',
      '/etc/x',
    );
    expect(auth.oidc?.jwksFile).toBe('/etc/k.json');
    const names = ['caFile', 'certFile', 'keyFile', 'passwordFile', 'tokenFile', 'signingKeyFile'];
    const files = names.map((name) => `${name}: ${name}`).join(', ');
    const { sinks } = parseConfig(
      `sinks:
  - { name: m, kind: mqtt, urls: [mqtts://n], username: u, ${files.replace(/, token.*/, '')} }
  - { name: h, kind: https, urls: [https://n], username: u, ${files} }
  - { name: n, kind: nats, urls: [tls://n], username: u, ${files.replace(/, signing.*/, '')} }`,
      '/etc/gatehouse/x.yaml',
    );
    const settings = sinks.flatMap((sink) => Object.entries(sink).filter(([name]) => name.endsWith('File')));
    expect(settings).toHaveLength(15);
    for (const [, file] of settings) expect(file).toMatch(/^\/etc\/gatehouse\//);
    const { encoders } = parseConfig(
      `encoders: { broker: { urls: [mqtts://b], username: u, ${files.replace(/, token.*/, '')} } }`,
      '/etc/gatehouse/x.yaml',
    );
    const broker = Object.entries(encoders.broker).filter(([name]) => name.endsWith('File'));
    expect(broker).toHaveLength(4);
    for (const [, file] of broker) expect(file).toMatch(/^\/etc\/gatehouse\//);
    const { access } = parseConfig(
      `access: { decisionService: { url: https://n, ${files.replace(/passwordFile: passwordFile, /, '')} } }`,
      '/etc/gatehouse/x.yaml',
    );
    const { url: _, timeout: __, ...named } = access.decisionService ?? {};
    expect(Object.values(named)).toHaveLength(5);
    for (const file of Object.values(named)) expect(file).toMatch(/^\/etc\/gatehouse\//);
    const { cluster } = parseConfig(
      `cluster: { name: a, urls: [tls://n], username: u, ${files.replace(/, signing.*/, '')} }`,
      '/etc/gatehouse/x.yaml',
    );
    const clusterFiles = Object.entries(cluster ?? {}).filter(([name]) => name.endsWith('File'));
    expect(clusterFiles).toHaveLength(5);
    for (const [, file] of clusterFiles) expect(file).toMatch(/^\/etc\/gatehouse\//);
    const devices = '[{ unitId: 1, profile: b.yml }, { unitId: 2, profile: gatehouse-io }, { unitId: 3 }]';
    const [link] = parseConfig(
      `links: [{ id: a, protocol: modbus, options: { port: /dev/a, profile: p/a.yaml, devices: ${devices} } }]`,
      '/etc/x',
    ).links;
    expect(link?.options).toMatchObject({
      profile: '/etc/p/a.yaml',
      devices: [{ profile: '/etc/b.yml' }, { profile: 'gatehouse-io' }, {}],
    });
    // The settings above are all there are: a new one must be added to resolvePaths and here.
    expect(JSON.stringify(configJsonSchema()).split('"format":"path"')).toHaveLength(1 + 13 + 15 + 4 + 5 + 5);
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

describe('single settings', () => {
  it.each([
    ['http: { listen: 0.0.0.0:70000 }', /port up to 65535/],
    ['http: { listen: 8443 }', /expected host:port/],
    ['http: { plain: yes }', /expected true or false, not text/],
    ['http: { basePath: /api/ }', /without a slash/],
    ['http: { productSegment: A }', /a-z/],
    ['http: { requestsPerSecond: 0 }', /expected 1 at least/],
    ['http: { requestsPerSecond: 1.5 }', /^http\.requestsPerSecond: expected a whole number$/],
    ['http: { requestsPerSecond: .inf }', /number/],
    ['encoders: { endpoint: "mqtts://a:99999" }', /port from 1 to 65535/],
    ['encoders: { endpoint: "mqtts://a:0" }', /port from 1 to 65535/],
    [`links: [{ id: a, protocol: zigbee, options: { port: "tcp://host:0" } }]\n${GATEWAY}`, /port from 1 to/],
    [`links: [{ id: a, protocol: zigbee, options: { port: "tls://host:0" } }]\n${GATEWAY}`, /port from 1 to/],
    ['links: [{ id: a, protocol: osdp, options: { port: "tcp://host:0" } }]', /port from 1 to 65535/],
    [
      'links: [{ id: a, protocol: modbus, options: { port: "modbus-tcp://host:0" } }]',
      /port from 1 to 65535/,
    ],
    [
      'links: [{ id: a, protocol: modbus, options: { port: "modbus-tcp://host" } }]',
      /modbus-tcp:\/\/host:port/,
    ],
    [
      'links: [{ id: a, protocol: osdp, options: { port: "modbus-tcp://host:502" } }]',
      /or tcp:\/\/host:port of a/,
    ],
    [
      'links: [{ id: a, protocol: modbus, options: { port: "modbus-tcp://h:502", localEcho: true } }]',
      /localEcho: modbus-tcp has no echo/,
    ],
    ...[0, 248, 254, 256].map((unitId): [string, RegExp] => [
      `links: [{ id: a, protocol: modbus, options: { port: "modbus-tcp://h:502", devices: [{ unitId: ${unitId} }] } }]`,
      /unitId: expected (1 to 247, or 255|1 at least|255 at most)/,
    ]),
    [
      'links: [{ id: a, protocol: modbus, options: { port: "tcp://h:4001", devices: [{ unitId: 255 }] } }]',
      /unitId: expected 1 to 247: 255 is a device on modbus-tcp/,
    ],
    [
      'links: [{ id: a, protocol: modbus, options: { port: "modbus-tcp://h:502", framing: ascii } }]',
      /framing: modbus-tcp has frames of its own/,
    ],
    [
      'links: [{ id: a, protocol: modbus, options: { port: /dev/a, dataBits: 7 } }]',
      /dataBits: framing rtu needs 8/,
    ],
    ['encoders: { endpoint: "mqtt://a:1" }', /mqtts/],
    ['encoders: { keepAlive: 20 }', /duration such as/],
    ['encoders: { keepAlive: 31s }', /between 1s and 30s/],
    ['encoders: { keepAlive: 1500ms }', /whole seconds/],
    ['encoders: { vendorRoots: root.pem }', /expected a list, not text/],
    ['encoders: { vendorRoots: [""] }', /expected a path/],
    ['upstream: { url: "http://a" }', /mqtts:\/\/host:port/],
    ['upstream: { url: "mqtt://a:70000" }', /port from 1 to/],
    ['upstream: { url: "mqtt://a", protocolVersion: 3 }', /expected one of 4\|5/],
    ['auth: { failureBurst: 0 }', /expected 1 at least/],
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
    [
      'links: [{ id: a, protocol: bacnet }]',
      /protocol: expected one of "loopback"\|"modbus"\|"dcon"\|"osdp"\|"zigbee"$/,
    ],
    ['links: [{ id: a, protocol: modbuss }]', /\(did you mean "modbus"\?\)$/],
    ['links: [{ id: a }]', /"zigbee"; it is missing$/],
    [
      'links: [{ id: a, protocol: modbus }]',
      /^links\[0\]\.options: expected a section with settings; it is missing$/,
    ],
    ['links: [{ id: a, protocol: modbus, options: {} }]', /options\.port: expected a device such as/],
    ['links: [{ id: a, protocol: dcon, options: { port: /dev/a, baudRate: 9601 } }]', /1200\|2400/],
    ['systemId: 1234', /expected a UUID/],
    ['log: { level: verbose }', /"debug"\|"info"/],
    ['dataDirectory: "a\\0b"', /expected a path/],
  ])('refuses %s', (text, message) => {
    expect(messages(text)).toEqual([expect.stringMatching(message)]);
  });
});

it('says why an adapter of coordinators is not supported', () => {
  const text = 'links: [{ id: z, protocol: zigbee, options: { port: /dev/ttyACM0, adapter: deconz } }]';
  expect(messages(text)).toContainEqual(
    expect.stringMatching(/adapter: deconz .*an unlock could be sent late/),
  );
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
    ['http: { certFile: c }', 'http.certFile', /needs keyFile/],
    ['http: { keyFile: c }', 'http.keyFile', /needs certFile/],
    ['upstream: { url: "mqtts://a", certFile: c }', 'upstream.certFile', /keyFile/],
    ['upstream: { url: "mqtts://a", keyFile: c }', 'upstream.keyFile', /certFile/],
    ['upstream: { url: "mqtts://a", passwordFile: c }', 'upstream.passwordFile', /username/],
    ['upstream: { url: "mqtt://a", caFile: c }', 'upstream.caFile', /mqtts/],
    [
      'links: [{ id: a, protocol: loopback }, { id: a, protocol: loopback }]',
      'links[1].id',
      /another link has this id: see line 1$/,
    ],
    [
      'links:\n- { id: a, protocol: modbus, options: { port: /dev/ttyS1 } }\n- { id: b, protocol: dcon, options: { port: /dev/ttyS1 } }',
      'links[1].options.port',
      /another link has this port: see line 2$/,
    ],
    [
      'links:\n- { id: a, protocol: modbus, options: { port: /dev/ttyUSB0 } }\n- { id: b, protocol: dcon, options: { port: /dev/serial/by-id/x } }',
      'links[0].options.port',
      /name it by its link in \/dev\/serial\/by-id, or in by-path: see line 3$/,
    ],
    [
      `networks: [{ id: ${ID} }, { id: ${ID.toUpperCase()} }]`,
      'networks[1].id',
      /another network has this id/,
    ],
    ['http: { productSegment: network }', 'http.productSegment', /is a path of the interface/],
    [gateways({ link: 'b' }), 'zgates[0].link', /links has no "b"/],
    [gateways({ networkId: OTHER }), 'zgates[0].networkId', /networks has no such id/],
    [gateways({}, { deviceId: OTHER }), 'zgates[1].link', /another gateway has this link/],
    [gateways({}, { link: 'c' }), 'zgates[1].deviceId', /another gateway has this deviceId/],
    [
      'links: [{ id: zb, protocol: zigbee, options: { port: "tcp://127.0.0.1:1" } }]',
      'links[0].id',
      /zgates has no gateway on this link/,
    ],
    [`dataDirectory: /${'d'.repeat(110)}`, 'dataDirectory', /107 bytes/],
    [`adminSocket: /${'ü'.repeat(60)}`, 'adminSocket', /107 bytes/],
  ])('refuses %s', (text, setting, message) => {
    const mistakes = messages(text);
    expect(mistakes).toEqual([expect.stringMatching(message)]);
    expect(mistakes[0]).toContain(`${setting}: `);
  });

  it('keeps the doors apart from every other path of the interface', () => {
    const { paths } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../docs/openapi.json'), 'utf8'),
    );
    const taken = new Set(['local', ...Object.keys(paths).map((path) => path.split('/')[1])]);
    expect(taken.delete('access')).toBe(true);
    // No segment of the configuration has a dot.
    expect(taken.delete('openapi.json')).toBe(true);
    for (const segment of taken) {
      expect(messages(`http: { productSegment: ${segment} }`)).toEqual([
        `http.productSegment: /${segment} is a path of the interface: choose another`,
      ]);
    }
  });

  it('accepts plain HTTP on loopback, and port 0 twice', () => {
    for (const host of ['127.0.0.1', '127.8.9.1', '[::1]'])
      parseConfig(`http: { plain: true, listen: "${host}:8080" }`, 'x');
    parseConfig('http: { listen: "127.0.0.1:0" }\nencoders: { listen: "127.0.0.1:0" }', 'x');
  });
});

it('refuses a file without a setting, as a copy cut short leaves it', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-config-')), 'gatehouse.yaml');
  for (const text of ['', '\n', '# http: {}\n\n  # log\n']) {
    writeFileSync(file, text);
    expect(() => readConfig(file)).toThrow(/has no setting/);
  }
});
