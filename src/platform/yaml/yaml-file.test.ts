/** By way of the configuration, which has every kind of setting there is. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../config/config-file.ts';
import { FileError } from './yaml-file.ts';

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

const OIDC = 'issuer: https://i, audience: g';
const ID = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';

describe('how mistakes are reported', () => {
  it('shows file, line, column, the line and a caret, for all mistakes in their order', () => {
    const text = [
      'systemID: 5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
      'encoders:',
      '  keepAlive: 2m',
      '  registrationsPerHour: none',
      'http:',
      '\tlisten: x',
    ].join('\n');
    const { message, withLines } = refusal(text.replace('\t', '  '), 'site.yaml');
    expect(withLines).toBe(
      [
        'site.yaml:1:1: unknown setting "systemID" (did you mean "systemId"?)',
        '    1 | systemID: 5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
        '      | ^',
        'site.yaml:3:14: encoders.keepAlive: expected between 1s and 30s',
        '    3 |   keepAlive: 2m',
        '      |              ^',
        'site.yaml:4:25: encoders.registrationsPerHour: expected a number, not text',
        '    4 |   registrationsPerHour: none',
        '      |                         ^',
        'site.yaml:6:11: http.listen: expected host:port, such as 0.0.0.0:8443',
        '    6 |   listen: x',
        '      |           ^',
      ].join('\n'),
    );
    expect(message.split('\n')).toEqual(withLines.split('\n').filter((line) => line.startsWith('site.yaml')));
    expect(refusal(text).mistakes[0]).toMatchObject({ line: 6, message: expect.stringMatching(/tab/i) });
  });

  it.each([
    ['a value that is not allowed', 'upstream: { url: "mqtts://gatehouse:opensesame@broker" }'],
    ['a setting that there is not', 'upstream: { url: mqtts://broker, password: opensesame }'],
    ['a value of another type', 'http: { requestBurst: opensesame }'],
    ['a section in its place', 'http: opensesame'],
    ['a quote that is not closed', 'upstream:\n  url: "opensesame'],
    ['text after a quote', 'upstream:\n  url: "a"opensesame'],
    ['an escape', String.raw`upstream: { url: "\opensesame" }`],
    ['a tag', 'upstream: { url: !opensesame x }'],
    ['a directive', '%opensesame\n---\n{}'],
    ['an alias', 'upstream: { url: *opensesame }'],
    ['a block that begins in its head', 'upstream:\n  url: |opensesame\n    x'],
    ['a second colon', 'upstream: url: opensesame'],
    ['a bracket too many', 'http: { listen: 1 } opensesame }'],
    ['a comma that is missing', 'http: { "listen" "opensesame" }'],
    ['a value as a name', '"mqtts://u:opensesame@broker": 1'],
    ['a value as a name, in a section', 'http: { "mqtts://u:opensesame@broker": 1 }'],
    ['a value as a name, twice', '"u:opensesame": 1\n"u:opensesame": 2'],
    ['a reserved character', 'http: { listen: @opensesame }'],
  ])('leaves what the file holds out of its message: %s', (_, text) => {
    const { message, mistakes, withLines } = refusal(text);
    expect(message + JSON.stringify(mistakes)).not.toContain('opensesame');
    expect(message.length).toBeGreaterThan(20);
    expect(withLines).toContain('opensesame');
  });

  it('reports duplicates, single settings and contradictions in one go', () => {
    const text = [
      'log: {}',
      'http: { plain: true, listen: 0.0.0.0:1, requestBurst: x }',
      'encoders: { listen: 0.0.0.0:1 }',
      'log: { levle: info }',
      'upstream: { url: mqtt://a, caFile: c }',
      'links:',
      '  - { id: A, protocol: loopback }',
      '  - { id: a, protocol: modbus, options: { port: /dev/a, baudrate: 1 } }',
      '  - { id: a, protocol: loopback }',
      'zgates:',
      `  - { deviceId: ${ID}, link: b, networkId: ${ID} }`,
      `  - { deviceId: ${ID}, link: a, networkId: ${ID} }`,
    ].join('\n');
    expect(refusal(text).mistakes.map(({ line, message }) => `${line}: ${message}`)).toEqual([
      '2: http.plain: only a loopback address may be served without TLS: listen on 127.0.0.1',
      '2: http.requestBurst: expected a number, not text',
      '3: encoders.listen: http.listen has the same address: choose another port',
      '4: "log" is there twice, before in line 1: keep one of them',
      '4: unknown setting "log.levle" (did you mean "level"?)',
      '5: upstream.caFile: has no effect without TLS: use mqtts:// in url',
      '7: links[0].id: expected 1 to 32 of a-z, 0-9 and -',
      '8: unknown setting "links[1].options.baudrate" (did you mean "baudRate"?)',
      '9: links[2].id: another link has this id: see line 8',
      // That links has no "b" may come from the mistake in line 7.
      '11: zgates[0].networkId: networks has no such id',
      '12: zgates[1].deviceId: another gateway has this deviceId: see line 11',
      '12: zgates[1].networkId: networks has no such id',
    ]);
  });

  it('reports no contradiction that follows from a mistake', () => {
    // The defaults of both addresses have other ports; the one of `url` is none.
    expect(messages('http: { listen: x }\nencoders: { listen: 0.0.0.0:8443 }')).toHaveLength(1);
    expect(messages('upstream: { url: x, certFile: c, keyFile: 3 }')).toHaveLength(2);
    expect(messages(`auth: { oidc: { ${OIDC}, jwksUrl: x, caFile: c } }`)).toHaveLength(1);
    expect(messages('links: 3\nzgates: 4')).toHaveLength(2);
    expect(messages('upstream: { window: 0 }\nhttp: { plain: true }')).toEqual([
      expect.stringMatching(/^upstream\.url/),
      expect.stringMatching(/^upstream\.window/),
      expect.stringMatching(/^http\.plain/),
    ]);
  });

  it('points at the section when a setting is missing or has no value', () => {
    expect(refusal('log: {}\nupstream:\n  window: 3\n').mistakes).toEqual([
      { line: 2, column: 1, message: 'upstream.url: expected text; it is missing' },
    ]);
    expect(refusal('\nhttp:\n').mistakes).toEqual([
      { line: 2, column: 1, message: 'http: expected a section with settings; it has no value' },
    ]);
  });

  it.each([
    ['systemId: "x\nhttp:\n  listen: a\n', { line: 1, column: 11 }],
    ["log: {}\nhttp:\n  listen: '0.0.0.0:1\nupstream: {}\n", { line: 3, column: 11 }],
  ])('shows an unclosed quote where it opens: %j', (text, place) => {
    expect(refusal(text).mistakes).toEqual([{ ...place, message: expect.stringMatching(/never closed/) }]);
  });

  it('lists what is known where no name is near', () => {
    expect(messages('log: { zzz: 1 }')).toEqual(['unknown setting "log.zzz" (known here: level)']);
    expect(messages('links: [{ id: a, protocol: loopback, hots: b }]')).toEqual([
      'unknown setting "links[0].hots" (did you mean "host"?)',
    ]);
  });

  it('says bounds in plain words', () => {
    expect(messages('http: { requestsPerSecond: 0 }')).toEqual([
      'http.requestsPerSecond: expected 1 at least',
    ]);
  });

  it('says where a setting belongs that is one level too high', () => {
    expect(messages('links: [{ id: a, protocol: dcon, options: { port: /dev/a }, baudRate: 9600 }]')).toEqual(
      ['unknown setting "links[0].baudRate" (it belongs into "options")'],
    );
    // Of several sections no one knows which was meant.
    expect(messages('listen: 127.0.0.1:1')[0]).toMatch(/known here: /);
  });

  it('knows the settings of each protocol apart', () => {
    const text = `links:
  - { id: a, protocol: modbus, options: { port: /dev/a, checksum: true, devices: [{ unitID: 1, unitId: 1 }] } }
  - { id: b, protocol: dcon, options: { port: /dev/b, checksums: true } }
`;
    expect(refusal(text).mistakes).toEqual([
      {
        line: 2,
        column: 57,
        message: expect.stringMatching(/options\.checksum" \(known here: port, [a-zA-Z0-9, ]*baud/),
      },
      { line: 2, column: 85, message: expect.stringMatching(/unitID" \(did you mean "unitId"\?\)/) },
      { line: 3, column: 55, message: expect.stringMatching(/\(did you mean "checksum"\?\)/) },
    ]);
  });

  it('keeps control characters and endless lines away from the terminal', () => {
    const { message } = refusal(`"\\e[2J": 1 # \u001b[2J${'x'.repeat(5_000)}`);
    expect(message).not.toContain('\u001b');
    expect(message.length).toBeLessThan(1_000);
    expect(refusal(Array.from({ length: 500 }, (_, n) => `k${n}: 1`).join('\n')).message).toMatch(
      /and 400 more$/,
    );
  });
});

describe('YAML that is not for people', () => {
  it('takes time by the length of a file, not by its square', () => {
    const text = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join('\n');
    expect(messages(text)).toHaveLength(20_000);
  });

  it('refuses a line of more than 64 KiB before the parser sees it: one of 3.8 MB took 2 GB', () => {
    const line = (length: number) => `doors: [${'x,'.repeat(length / 2)}]`;
    const { mistakes, message } = refusal(`log: {}\n${line(3_800_000)}`);
    expect(mistakes).toMatchObject([
      { line: 2, message: expect.stringMatching(/more than 65536 characters/) },
    ]);
    expect(message.length).toBeLessThan(1_000);
    expect(messages(line(65_000)).join()).not.toMatch(/characters/);
  });

  it.each([
    ['a duplicate key', 'log: {}\nlog: {}', 2, /^"log" is there twice, before in line 1/],
    ['an alias', 'a: &a {}\nhttp: *a', 2, /aliases/],
    ['an alias bomb', 'a: &a [x,x]\nb: &b [*a,*a]\nlinks: [*b,*b]', 2, /aliases/],
    ['YAML 1.1', '%YAML 1.1\n---\nhttp: {}', 1, /1\.2/],
    ['a second document', 'log: {}\n---\nlog: {}', 2, /second document/],
    ['a custom tag', 'log: !include x.yaml', 1, /tag/i],
    ['an unclosed quote', 'systemId: "x', 1, /quote/],
    ['a key that is no string', '? [1]\n: 2', 1, /must be a word/],
    ['a second colon', 'log:\n  level: info: x', 2, /a second ":"/],
  ])('refuses %s', (_name, text, line, message) => {
    const [first] = refusal(text).mistakes;
    expect(first).toMatchObject({ line, message: expect.stringMatching(message) });
  });

  it('refuses a list, a word, __proto__ and nesting without end', () => {
    expect(messages('- a')[0]).toBe('the file: expected a section with settings, not a list');
    expect(messages('gatehouse')[0]).toBe('the file: expected a section with settings, not text');
    expect(messages('__proto__: { log: {} }')[0]).toMatch(/^unknown setting "__proto__"/);
    for (const opening of ['[', '- ', '{a: '])
      expect(refusal(opening.repeat(50_000)).mistakes.length).toBeGreaterThan(0);
    expect(refusal(`log: {}\nlinks: ${'['.repeat(700)}${']'.repeat(700)}`).mistakes).toEqual([
      { line: 2, column: 39, message: 'this nests deeper than any setting' },
    ]);
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
