import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { profileJsonSchema, profileSchema } from '../../../drivers/modbus/profile.ts';
import { FileError } from '../yaml/yaml-file.ts';
import { parseConfig } from './config-file.ts';
import { linkOptions, parseProfile, readProfile } from './profiles.ts';

const FOLDER = join(import.meta.dirname, '../../../config/profiles');
const BUILT_IN = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));
const GATEHOUSE_IO = readFileSync(join(FOLDER, 'gatehouse-io.yaml'), 'utf8');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-profiles-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function mistakesOf(text: string): string {
  try {
    parseProfile(text, 'p.yaml');
    return 'none';
  } catch (error) {
    if (error instanceof FileError) return error.message;
    throw error;
  }
}

describe('profiles that come with Gatehouse', () => {
  it.each(BUILT_IN)('%s is valid, named like its file, and the same after its way to the driver', (file) => {
    const profile = readProfile(join(FOLDER, file));
    expect(`${profile.name}.yaml`).toBe(file);
    expect(profileSchema.parse(JSON.parse(JSON.stringify(profile)))).toEqual(profile);
  });

  it('have the JSON schema of the vocabulary (node scripts/schema.ts)', () => {
    const written = JSON.parse(readFileSync(join(FOLDER, 'profile.schema.json'), 'utf8'));
    expect(written).toEqual(JSON.parse(JSON.stringify(profileJsonSchema())));
  });
});

describe('what a profile says wrongly', () => {
  const changed = (from: string, to: string) => {
    expect(GATEHOUSE_IO).toContain(from);
    return GATEHOUSE_IO.replace(from, to);
  };
  const lineOf = (text: string, part: string) => text.slice(0, text.indexOf(part)).split('\n').length;

  it.each([
    [
      'an address that is none',
      'bootCount: { address: 0x0005 }',
      'bootCount: { address: 0x10000 }',
      /up to 65535/,
    ],
    [
      'registers beyond the last',
      'hwId: { address: 0x0300, registers: 8 }',
      'hwId: { address: 0xFFFC, registers: 8 }',
      /identity.hwId: reaches to 65539 \(0x10003\); the last address is 65535/,
    ],
    [
      'more than a read brings',
      'hwId: { address: 0x0300, registers: 8 }',
      'hwId: { address: 0x0400, registers: 126 }',
      /expected up to 125 registers/,
    ],
    [
      'bits beyond the last',
      'inputs: { address: 0x0000, bit: 0, count: 4 }',
      'inputs: { address: 0x0000, bit: 13, count: 4 }',
      /inputs: reaches to bit 16/,
    ],
    [
      'two fields on one bit',
      'supplyFault: { address: 0x0006, bit: 1 }',
      'supplyFault: { address: 0x0006, bit: 0 }',
      /supplyFault: has a part of another field in it, at holding 0x0006: see line/,
    ],
    [
      'a register in two numbers',
      'bootCount: { address: 0x0005 }',
      'bootCount: { address: 0x0004 }',
      /has a part of another field/,
    ],
    [
      'settings with a gap',
      'relayIndex: { address: 0x0101 }',
      'relayIndex: { address: 0x0107 }',
      /settings: no field has register 0x0101/,
    ],
    [
      'settings in too large a block',
      'relayIndex: { address: 0x0101 }',
      'relayIndex: { address: 0x0180 }',
      /settings: its block has 129 registers; one write carries 123/,
    ],
    [
      'edges of inputs there are not',
      'inputEdges: { address: 0x0001, bit: 0, width: 4, count: 4 }',
      'inputEdges: { address: 0x0001, bit: 0, width: 4, count: 3 }',
      /inputEdges.count: must be that of inputs, 4/,
    ],
    [
      'a version that is too short',
      'version: { address: 0x0105, registers: 2 }',
      'version: { address: 0x0105 }',
      /settings.version.registers: must be 2/,
    ],
    [
      'too long a name',
      'hwId: { address: 0x0300, registers: 8 }',
      'hwId: { address: 0x0400, registers: 33 }',
      /identity.hwId.registers: must be up to 32/,
    ],
    ['a way there is not', 'way: block', 'way: wish', /pulse.way/],
  ])('%s', (_, from, to, message) => {
    const text = changed(from, to);
    const mistakes = mistakesOf(text);
    expect(mistakes).toMatch(message);
    const shown = [...mistakes.matchAll(/^p\.yaml:(\d+):/gm)].map(([, line]) => Number(line));
    expect(shown.length).toBeGreaterThan(0);
    // Reported at the later one of two, or at the whole of a block.
    if (!/^settings|another field/.test(message.source)) expect(shown).toContain(lineOf(text, to));
  });

  it.each([
    ['way: block', 'way: wish'],
    ['inputs:', 'input:'],
    ['settings:', 'setting:'],
    ['inputs: { address: 0x0000, bit: 0, count: 4 }', 'inputs: { address: 0x0000, bit: 13, count: 4 }'],
    ['relayIndex: { address: 0x0101 }', 'relayIndex: { address: 0x0100 }'],
  ])('%s as %s is one mistake, and nothing that only follows from it is reported', (from, to) => {
    expect(mistakesOf(changed(from, to)).match(/^p\.yaml:/gm)).toHaveLength(1);
  });

  it('relays without a way to close them, and a way without relays', () => {
    const [head, tail] = GATEHOUSE_IO.split('pulse:');
    const identity = tail?.slice(tail.indexOf('identity:'));
    expect(mistakesOf(`${head}${identity}`)).toMatch(/outputs: needs pulse/);
    expect(mistakesOf(changed('outputs: { address: 0x0002, bit: 0, count: 8 }', ''))).toMatch(
      /pulse: needs outputs/,
    );
  });

  it('a coil with bits, and switching what cannot be switched', () => {
    const board = (outputs: string) => `name: b
product: B
source: test
outputs: ${outputs}
pulse:
  way: switched
  watchdog: { milliseconds: 5000, time: { address: 16, unitMilliseconds: 1 }, enabledBy: time, fedBy: requests }
`;
    expect(mistakesOf(board('{ table: coil, address: 0, count: 4 }'))).toBe('none');
    expect(mistakesOf(board('{ table: coil, address: 0, bit: 1, count: 4 }'))).toMatch(/a coil is one bit/);
    expect(mistakesOf(board('{ address: 0, count: 4 }'))).toMatch(/outputs.table: must be coil/);
  });
});

it('a pulse that the device times in units that do not divide the time of a hold makes no profile', () => {
  const board = (unit: number) => `name: b
product: B
source: test
outputs: { table: coil, address: 0, count: 4 }
pulse: { way: flash, address: 512, unitMilliseconds: ${unit}, unitsMax: 100 }
`;
  expect(mistakesOf(board(100))).toBe('none');
  expect(mistakesOf(board(60_000))).toMatch(/unitMilliseconds: must divide 20000/);
});

describe('a watchdog', () => {
  const board = (watchdog: string) => `name: b
product: B
source: test
outputs: { table: coil, address: 0, count: 4 }
pulse:
  way: switched
  watchdog: { milliseconds: 5000, ${watchdog} }
`;
  const time = 'time: { address: 488, unitMilliseconds: 100 }';
  const enable = 'enable: [{ table: coil, address: 260, value: 1 }]';
  const inForce = 'inForce: [{ table: coil, address: 260, value: 1 }]';

  it.each([
    ['no one says how it is enabled', `${time}, fedBy: requests`, /enabledBy/],
    ['no one says how it is fed', `${time}, enabledBy: time`, /fedBy/],
    ['it was valid before', 'address: 488, unitMilliseconds: 100', /address/],
    ['nothing enables it', `${time}, enabledBy: writes, ${inForce}, fedBy: requests`, /enable: is needed/],
    [
      'nothing shows that it is enabled',
      `${time}, enabledBy: writes, ${enable}, fedBy: requests`,
      /inForce: is needed: what cannot be read back is no watchdog/,
    ],
    [
      'nothing feeds it',
      `${time}, enabledBy: writes, ${enable}, ${inForce}, fedBy: writes`,
      /feed: is needed where fedBy is writes/,
    ],
    [
      'its time does not fit its register',
      'time: { address: 488, unitMilliseconds: 1 }, milliseconds: 60000, enabledBy: time, fedBy: requests',
      /milliseconds/,
    ],
    [
      'a safe value alone is read back',
      `${time}, enabledBy: writes, ${enable}, inForce: [{ table: coil, address: 128, value: 0 }], fedBy: requests`,
      /enable\[0\]: writes 1 to coil 0x0104, which inForce does not read back/,
    ],
    [
      'only a part of what enables it is read back',
      `${time}, enabledBy: writes, enable: [{ address: 7, value: 1 }, { address: 8, count: 2, value: 1 }], inForce: [{ address: 7, value: 1 }, { address: 8, value: 1 }], fedBy: requests`,
      /enable\[1\]: writes 1 to holding 0x0009/,
    ],
    [
      'another value is expected than enable writes',
      `${time}, enabledBy: writes, ${enable}, inForce: [{ table: coil, address: 260, value: 0 }], fedBy: requests`,
      /enable\[0\]: writes 1 to coil 0x0104/,
    ],
    [
      'its time is longer than the product takes',
      'time: { address: 488, unitMilliseconds: 100, unitsMax: 49 }, enabledBy: time, fedBy: requests',
      /milliseconds: is more than its register takes: 49 units are 4900 ms/,
    ],
    [
      'its time is no whole number of units',
      'time: { address: 488, unitMilliseconds: 300 }, enabledBy: time, fedBy: requests',
      /milliseconds: must be a multiple of unitMilliseconds, 300: for example 4800 or 5100/,
    ],
    [
      'a coil is to be 5',
      `${time}, enabledBy: writes, enable: [{ table: coil, address: 260, value: 5 }], ${inForce}, fedBy: requests`,
      /must be 0 or 1/,
    ],
    [
      'its time is where an output is',
      `time: { address: 1, unitMilliseconds: 100 }, enabledBy: writes, enable: [{ table: coil, address: 2, value: 1 }], ${inForce}, fedBy: requests`,
      /a part of another field/,
    ],
    [
      'feed overwrites its time',
      `${time}, enabledBy: writes, ${enable}, ${inForce}, fedBy: writes, feed: { address: 488, values: [50, 1] }`,
      /feed: writes 1 to the register of the time, which is then not 5000 ms any more/,
    ],
    [
      'enable overwrites its time',
      `${time}, enabledBy: writes, enable: [{ address: 487, count: 2, value: 1 }], inForce: [{ address: 487, value: 1, shows: enabled }], fedBy: requests`,
      /enable\[0\]: writes 1 to the register of the time/,
    ],
    [
      'inForce expects another time',
      `${time}, enabledBy: writes, ${enable}, inForce: [{ table: coil, address: 260, value: 1 }, { address: 488, value: 49 }], fedBy: requests`,
      /inForce\[1\]: expects 49 in the register of the time, which is 50/,
    ],
    [
      'inForce expects two values of one place',
      `${time}, enabledBy: writes, ${enable}, inForce: [{ table: coil, address: 260, value: 1 }, { table: coil, address: 260, value: 0 }], fedBy: requests`,
      /inForce\[1\]: expects 0 in coil 0x0104, of which another place of inForce expects 1/,
    ],
    [
      'feed overwrites what shows that it is in force',
      `${time}, enabledBy: writes, enable: [{ address: 7, value: 1 }], inForce: [{ address: 7, value: 1 }], fedBy: writes, feed: { address: 7, values: [1, 0] }`,
      /feed: writes 0 where inForce expects 1/,
    ],
  ])('is none where %s', (_, watchdog, mistake) => {
    expect(mistakesOf(board(watchdog))).toMatch(mistake);
  });

  it('is one where it says how it is armed, enabled, fed and read back', () => {
    const right = `${time}, enabledBy: writes, ${enable}, ${inForce}, fedBy: requests`;
    expect(mistakesOf(board(right))).toBe('none');
    // Some products count their time again when it is written again.
    const again = 'fedBy: writes, feed: { address: 488, values: [50] }';
    expect(mistakesOf(board(`${time}, enabledBy: time, ${again}`))).toBe('none');
    const status = 'inForce: [{ address: 0x1006, value: 1, shows: enabled }]';
    expect(mistakesOf(board(`${time}, enabledBy: writes, ${enable}, ${status}, fedBy: requests`))).toBe(
      'none',
    );
  });
});

describe('a command with a time', () => {
  const board = (outputs: string, command: string) =>
    `name: p\nproduct: P\nsource: none\noutputs: ${outputs}\npulse: { way: command, unitMilliseconds: 1000, ${command} }\n`;
  const relays = '{ address: 1, each: register, count: 8 }';

  it.each([
    [
      'opens by a command that closes',
      relays,
      'address: 1, on: 0x0600, off: 0x0603, unitsMax: 255',
      /pulse.off: closes the relay/,
    ],
    [
      'has no room for its time',
      relays,
      'address: 1, on: 0xFF80, off: 0x0200, unitsMax: 255',
      /pulse.unitsMax: is too much/,
    ],
    [
      'goes beyond the last register',
      relays,
      'address: 0xFFFE, on: 0x0600, off: 0x0200, unitsMax: 255',
      /pulse.address: reaches to 65541/,
    ],
    [
      'has coils each in a register',
      '{ table: coil, address: 1, each: register, count: 8 }',
      'address: 1, on: 0x0600, off: 0x0200, unitsMax: 255',
      /outputs.each: is for registers/,
    ],
  ])('is none where it %s', (_, outputs, command, mistake) => {
    expect(mistakesOf(board(outputs, command))).toMatch(mistake);
  });
});

it('outputs that are read only have no pulse, and counters are of one kind', () => {
  const shown = GATEHOUSE_IO.replace('bit: 0, count: 8 }', 'bit: 0, count: 8, readOnly: true }');
  expect(mistakesOf(shown)).toMatch(/pulse: is for outputs that are not readOnly/);
  const both = GATEHOUSE_IO.replace(
    'bootCount: { address: 0x0005 }',
    'inputCounters: { address: 0x0400, count: 3 }',
  );
  expect(mistakesOf(both)).toMatch(/inputCounters.count: must be that of inputs, 4/);
  expect(mistakesOf(both)).toMatch(/inputCounters: is for a product without inputEdges/);
});

it('outputs without a pulse are read only, or a mistake', () => {
  const board = (more: string) =>
    `name: p\nproduct: P\nsource: none\noutputs: { table: coil, address: 0, count: 8${more} }\n`;
  expect(mistakesOf(board(''))).toMatch(/outputs: needs pulse: .* or readOnly/);
  expect(mistakesOf(board(', readOnly: true'))).toBe('none');
});

describe('profiles of links', () => {
  const config = (profile: string, device = 'gatehouse-io') => `links:
  - id: bus-1
    protocol: modbus
    options:
      port: /dev/null
      profile: ${profile}
      devices: [{ unitId: 3, profile: ${device} }]
`;
  const check = (text: string) =>
    parseConfig(text, join(folder, 'gatehouse.yaml'), { checkFiles: true }).links[0];

  it('go to the driver with the options, each once', () => {
    const link = check(config('gatehouse-io'));
    if (!link) throw new Error('there is no link');
    expect(linkOptions(link)).toMatchObject({
      profile: 'gatehouse-io',
      profiles: { 'gatehouse-io': { product: 'Gatehouse I/O controller' } },
    });
  });

  it('may be files beside the configuration', () => {
    writeFileSync(join(folder, 'mine.yaml'), GATEHOUSE_IO.replace('name: gatehouse-io', 'name: mine'));
    const link = check(config('gatehouse-io', 'mine.yaml'));
    if (!link) throw new Error('there is no link');
    const file = join(folder, 'mine.yaml');
    expect(linkOptions(link)).toMatchObject({
      devices: [{ unitId: 3, profile: file }],
      profiles: { 'gatehouse-io': { name: 'gatehouse-io' }, [file]: { name: 'mine' } },
    });
  });

  it('are checked with the configuration', () => {
    writeFileSync(
      join(folder, 'mine.yaml'),
      GATEHOUSE_IO.replace('bootCount: { address: 0x0005 }', 'bootCount: {}'),
    );
    expect(() => check(config('mine.yaml'))).toThrow(
      /gatehouse\.yaml:6:16: .*options\.profile: the profile is wrong in line 12: bootCount.address: /,
    );
    expect(() => check(config('gatehouse-oi'))).toThrow(
      /no profile of that name comes with Gatehouse: there are advantech-adam-4150, eletechsup-r421a08, .*, waveshare/,
    );
    expect(() => check(config('gatehouse-io', 'none.yml'))).toThrow(
      /gatehouse\.yaml:7:\d+: .*there is no such file/,
    );
  });
});

it.each([
  ['modbus', 'unitId'],
  ['dcon', 'address'],
  ['osdp', 'address'],
])('an address of a %s bus is there once', (protocol, field) => {
  const options = `{ port: /dev/null, devices: [{ ${field}: 3 }, { ${field}: 4 }, { ${field}: 3 }] }`;
  const text = `links: [{ id: bus-1, protocol: ${protocol}, options: ${options} }]`;
  expect(() => parseConfig(text, 'gatehouse.yaml')).toThrow(`devices[2].${field}: 3 is there twice`);
});
