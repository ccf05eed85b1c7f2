/** Simulated Modbus devices, by the examples of the standard and of their makers. */
import { expect, it } from 'vitest';
import { type DevicePlan, deviceSchema } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { crc16, framed } from './frame.ts';
import { modbus } from './protocol.ts';

const plan = (more: Partial<DevicePlan> & Pick<DevicePlan, 'kind'>) =>
  deviceSchema.parse({ address: 1, ...more });
const open = (more: Partial<DevicePlan> & Pick<DevicePlan, 'kind'>) => modbus.openDevice(plan(more), 0);
const bytes = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** The request and the reply without address and CRC, in hex. */
function ask(device: Device, pdu: string, now = 0): string {
  device.advance(now);
  const reply = Buffer.from(device.answer(framed(1, bytes(pdu)), now) ?? []);
  expect(crc16(reply)).toBe(0);
  return reply.subarray(1, -2).toString('hex');
}

it.each([
  // 'Modbus RTU Relay' and 'Modbus RTU IO 8CH', development protocol.
  ['waveshare-relay-8', '01 05 00 00 FF 00 8C 3A', '01 05 00 00 FF 00 8C 3A'],
  ['waveshare-relay-8', '01 05 02 00 00 07 8D B0', '01 05 02 00 00 07 8D B0'],
  ['waveshare-relay-8', '01 03 80 00 00 01 AD CA', '01 03 02 00 C8 B9 D2'],
  ['waveshare-io-8', '01 02 00 00 00 08 79 CC', '01 02 01 00 A1 88'],
] as const)('answers for %s as its manual says: %s', (kind, request, reply) => {
  expect(modbus.read(bytes(request))).toEqual({ kind: 'request', length: 8, address: 1 });
  expect(open({ kind }).answer(bytes(request), 0)).toEqual(bytes(reply));
});

it('knows when a request is whole', () => {
  const request = bytes('01 05 00 00 FF 00 8C 3A');
  for (let length = 0; length < request.length; length += 1)
    expect(modbus.read(request.subarray(0, length))).toEqual({ kind: 'more' });
  expect(modbus.read(bytes('01 05 00 00 FF 00 8C 3B'))).toEqual({ kind: 'bad' });
  const write = framed(3, bytes('10 0200 0004 08 0001 0002 00000064'));
  expect(modbus.read(write.subarray(0, -1))).toEqual({ kind: 'more' });
  expect(modbus.read(write)).toEqual({ kind: 'request', length: 17, address: 3 });
  expect(modbus.read(framed(0, bytes('10 0200 0004 08 0001 0002 00000064')))).toMatchObject({
    address: 'all',
  });
  // A function no one knows is refused, not ignored.
  expect(modbus.read(framed(1, bytes('64 01')))).toMatchObject({ kind: 'request', length: 5 });
});

it('has coils that flash by themselves', () => {
  const board = open({ kind: 'waveshare-relay-8' });
  expect(ask(board, '05 0203 0005', 1_000)).toBe('0502030005');
  expect(ask(board, '01 0000 0008', 1_499)).toBe('010108');
  expect(ask(board, '01 0000 0008', 1_600)).toBe('010100');
  expect(board.pins.history.map(({ output, on, monotonicMs }) => [output, on, monotonicMs])).toEqual([
    [3, true, 1_000],
    [3, false, 1_500],
  ]);
  expect(ask(board, '05 00ff ff00')).toBe('0500ffff00');
  expect(ask(board, '05 0000 5500')).toBe('0500005500');
  expect(ask(board, '0f 0002 0003 01 05')).toBe('0f00020003');
  expect(ask(board, '01 0000 0008')).toBe('0101f6');
  expect(ask(board, '05 0008 ff00')).toBe('8502');
  expect(ask(board, '05 0000 1234')).toBe('8503');
  expect(ask(board, '05 0200 8000')).toBe('8503');
  expect(ask(board, '02 0000 0008')).toBe('8201');
  expect(ask(board, '01 0001 0008')).toBe('8102');
});

const SETTINGS = '10 0100 0007 0e 0301 0002 00000bb8 0001 00000007';

it('applies a block of settings whole, and keeps it over a restart', () => {
  const io = open({ kind: 'gatehouse-io', hwId: 'GIO-0001' });
  expect(ask(io, SETTINGS)).toBe('1001000007');
  expect(ask(io, '03 0100 0007')).toBe('030e0301000200000bb8000100000007');
  expect(ask(io, '03 0003 0003')).toBe('0306000000070001');
  io.restart(10);
  expect(ask(io, '03 0100 0007')).toBe('030e0301000200000bb8000100000007');
  expect(ask(io, '03 0003 0003')).toBe('0306000000070002');
});

it.each([
  ['pins there are not', '10 0100 0007 0e 0011 0002 00000bb8 0001 00000008'],
  ['a relay there is not', '10 0100 0007 0e 0301 0008 00000bb8 0001 00000008'],
  ['too short a time', '10 0100 0007 0e 0301 0002 00000063 0001 00000008'],
  ['too long a time', '10 0100 0007 0e 0301 0002 000927c1 0001 00000008'],
  ['a flag there is not', '10 0100 0007 0e 0301 0002 00000bb8 0002 00000008'],
  ['half of it', '10 0100 0002 04 0301 0002'],
  ['a wrong count of bytes', '10 0100 0007 0c 0301 0002 00000bb8 0001 0000'],
])('takes none of a block with %s', (_, pdu) => {
  const io = open({ kind: 'gatehouse-io' });
  ask(io, SETTINGS);
  expect(ask(io, pdu)).toBe('9003');
  expect(ask(io, '03 0100 0007')).toBe('030e0301000200000bb8000100000007');
});

it('refuses what it does not have', () => {
  const io = open({ kind: 'gatehouse-io' });
  expect(ask(io, '03 000a 0001')).toBe('8302');
  expect(ask(io, '03 0009 0002')).toBe('8302');
  expect(ask(io, '03 0000 0000')).toBe('8303');
  expect(ask(io, '10 0000 0001 02 0001')).toBe('9002');
  expect(ask(io, '06 0101 0001')).toBe('8601');
  expect(ask(io, '11')).toBe('9101');
});

it('times a pulse, does nothing at its repetition, and extends it by a new id', () => {
  const io = open({ kind: 'gatehouse-io' });
  const pulse = (id: string, relay: string, ms: string) => `10 0200 0004 08 ${id} ${relay} ${ms}`;
  expect(ask(io, pulse('0005', '0002', '000003e8'), 1_000)).toBe('1002000004');
  expect(ask(io, pulse('0005', '0002', '000003e8'), 1_100)).toBe('1002000004');
  expect(ask(io, '03 0007 0003', 1_100)).toBe('0306000500000384');
  // Shorter than what is left does not shorten.
  expect(ask(io, pulse('0006', '0002', '00000064'), 1_200)).toBe('1002000004');
  expect(ask(io, '03 0007 0003', 1_200)).toBe('0306000600000320');
  expect(ask(io, pulse('0007', '0002', '000003e8'), 1_500)).toBe('1002000004');
  expect(ask(io, '03 0002 0001', 2_499)).toBe('03020004');
  expect(ask(io, '03 0002 0001', 2_500)).toBe('03020000');
  expect(io.pins.history.map(({ on, monotonicMs }) => [on, monotonicMs])).toEqual([
    [true, 1_000],
    [false, 2_500],
  ]);
  for (const wrong of [pulse('0008', '0008', '000003e8'), pulse('0008', '0000', '00000063')])
    expect(ask(io, wrong, 3_000)).toBe('9003');
  expect(ask(io, '03 0007 0001', 3_000)).toBe('03020007');
});

it('counts edges modulo 16 while the pin memory is on', () => {
  const io = open({ kind: 'gatehouse-io' });
  io.pins.pulseInput(0, 10, 0);
  expect(ask(io, '03 0000 0002')).toBe('030400010000');
  ask(io, SETTINGS, 100);
  for (let press = 0; press < 17; press += 1) {
    io.pins.setInput(1, true, 200);
    io.pins.setInput(1, false, 200);
  }
  io.pins.setInput(3, true, 200);
  expect(ask(io, '03 0000 0002', 200)).toBe('030400081010');
  ask(io, SETTINGS.replace('0001 00000007', '0000 00000008'), 300);
  expect(ask(io, '03 0000 0002', 300)).toBe('030400080000');
});

it('says who it is', () => {
  const io = open({
    kind: 'gatehouse-io',
    hwId: 'GIO-0001',
    type: 'GIO-48',
    platformVersion: '2.1.0',
    app: { name: 'io', version: '1.4.2' },
  });
  const text = (words: string[]) => words.map((word) => word.padEnd(16, '\0')).join('');
  const registers = Buffer.from(ask(io, '03 0300 0028'), 'hex').subarray(2).toString('latin1');
  expect(registers).toBe(text(['GIO-0001', 'GIO-48', '2.1.0', 'io', '1.4.2']));
  const objects = ['Gatehouse', 'GIO-48', '2.1.0'].map(
    (word, id) => `0${id}0${word.length}${Buffer.from(word).toString('hex')}`,
  );
  expect(ask(io, '2b 0e 01 00')).toBe(`2b0e0181000003${objects.join('')}`);
  expect(ask(io, '2b 0e 04 01')).toBe(`2b0e0481000001${objects[1]}`);
  expect(ask(io, '2b 0e 04 03')).toBe('ab02');
  expect(ask(io, '2b 0e 05 00')).toBe('ab03');
});

it('raises tamper and supply fault', () => {
  const io = open({ kind: 'gatehouse-io' });
  io.alarm({ tamper: true });
  expect(ask(io, '03 0006 0001')).toBe('03020001');
  io.alarm({ supplyFault: true });
  expect(ask(io, '03 0006 0001')).toBe('03020003');
});

it.each(['gatehouse-io', 'icp-das-tm-r5', 'wago-750-do8', 'waveshare-relay-8'] as const)(
  'a %s outlives each frame that is cut or says another length than it has',
  (kind) => {
    const device = open({ kind });
    for (let code = 0; code < 128; code += 1)
      for (let length = 0; length <= 14; length += 1)
        for (const byte of [0, 1, 2, 255]) {
          const frame = framed(1, Buffer.from([code, ...new Array<number>(length).fill(byte)]));
          const reading = modbus.read(frame);
          if (reading.kind === 'request')
            expect(() => device.answer(frame.subarray(0, reading.length), 1)).not.toThrow();
        }
  },
);
