/** Telnet with COM-PORT-OPTION, by RFC 854, 855, 856 and 2217. */
import { expect, it } from 'vitest';
import { escaped, opening, openTelnetReader, settingCommands, valuesOf } from './telnet.ts';

const bytes = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'));
const hex = (some: Uint8Array) => Buffer.from(some).toString('hex');

it('begins with the option of the client, and binary data in both ways', () => {
  expect(hex(opening())).toBe(hex(bytes('FF FB 00 FF FD 00 FF FB 03 FF FD 03 FF FB 2C')));
});

it('sets what a line has, a value of 0xFF doubled (RFC 2217, 3)', () => {
  const line = { baudRate: 19_200, parity: 'even', stopBits: 1, dataBits: 8 } as const;
  const text = hex(settingCommands(valuesOf(line)));
  for (const command of [
    'fffa2c01 00004b00 fff0',
    'fffa2c02 08 fff0',
    'fffa2c03 03 fff0',
    'fffa2c04 01 fff0',
    'fffa2c05 01 fff0',
  ])
    expect(text).toContain(command.replaceAll(' ', ''));
  expect(hex(settingCommands({ ...valuesOf(line), baudRate: 255 as never }))).toContain(
    'fffa2c01000000fffffff0',
  );
});

it('doubles 0xFF in data, and takes it back, cut anywhere', () => {
  const data = Uint8Array.from({ length: 512 }, (_, index) => index & 0xff);
  const sent = escaped(data);
  expect(sent).toHaveLength(data.length + 2);
  for (const size of [1, 2, 3, 7, 600]) {
    const reader = openTelnetReader();
    const heard: number[] = [];
    for (let at = 0; at < sent.length; at += size)
      for (const one of reader.take(sent.subarray(at, at + size)))
        if (one.kind === 'data') heard.push(...one.bytes);
    expect(Uint8Array.from(heard)).toEqual(data);
  }
});

it.each([
  ['an option that is not wanted, offered', 'FF FB 01', [{ kind: 'answer', bytes: bytes('FF FE 01') }]],
  ['an option that is not wanted, asked for', 'FF FD 18', [{ kind: 'answer', bytes: bytes('FF FC 18') }]],
  ['a refused COM-PORT-OPTION', 'FF FE 2C', [{ kind: 'refused', option: 44 }]],
  ['refused binary data', 'FF FC 00', [{ kind: 'refused', option: 0 }]],
  ['a server that does not offer COM-PORT-OPTION itself', 'FF FC 2C', []],
  ['an agreement', 'FF FD 2C', [{ kind: 'agreed', option: 44, by: 'us' }]],
  [
    'a baud rate that is in force',
    'FF FA 2C 65 00 00 25 80 FF F0',
    [{ kind: 'setting', setting: 'baudRate', value: 9_600 }],
  ],
  [
    'a baud rate with 0xFF in it',
    'FF FA 2C 65 00 00 00 FF FF FF F0',
    [{ kind: 'setting', setting: 'baudRate', value: 255 }],
  ],
  ['a notification of the modem', 'FF FA 2C 6B 30 FF F0', []],
  ['a subnegotiation of another option', 'FF FA 18 01 FF F0', []],
  ['NOP and BREAK', 'FF F1 FF F3', []],
  ['data around a command', '01 FF F1 02', [{ kind: 'data', bytes: bytes('01 02') }]],
  [
    'data before an option, in order',
    '01 FF FD 2C 02',
    [
      { kind: 'data', bytes: bytes('01') },
      { kind: 'agreed', option: 44, by: 'us' },
      { kind: 'data', bytes: bytes('02') },
    ],
  ],
])('takes %s', (_, text, heard) => {
  expect(openTelnetReader().take(bytes(text))).toEqual(heard);
  const reader = openTelnetReader();
  const single = [...bytes(text)].flatMap((byte) => reader.take(Uint8Array.of(byte)));
  expect(single.filter(({ kind }) => kind !== 'data')).toEqual(heard.filter(({ kind }) => kind !== 'data'));
});

it('keeps no more of an endless subnegotiation than a command of RFC 2217 has', () => {
  const reader = openTelnetReader();
  expect(reader.take(Uint8Array.of(0xff, 0xfa, 44, ...new Uint8Array(100_000)))).toEqual([]);
  expect(reader.take(bytes('FF F0 07'))).toEqual([{ kind: 'data', bytes: bytes('07') }]);
});
