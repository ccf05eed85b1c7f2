import { describe, expect, it } from 'vitest';
import type { LockApply } from '../contract/settings.ts';
import { commandFrame, crc16, reportOf, transferOf, transferStatus } from './lock-cluster.ts';

const door = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
const apply: LockApply = {
  hwId: '00124b0001020304',
  configVersion: 7,
  doorVersion: 9,
  scheduleVersion: 3,
  templateVersion: 0,
  systemConfigVersion: 1,
  configuration: {
    name: 'Room 101',
    number: 101,
    type: null,
    relaySetup: null,
    standOpenEnabled: true,
    onlineEnabled: false,
    accessInternal: { doors: [door], interval: { start: 480, end: 1_080 } },
    outputs: [{ doorId: door, doors: [] }],
    schedule: [{ weekdays: 0b1_1111, start: 0, end: 1_440 }],
  },
};
const id = `50${door.replaceAll('-', '')}`;
/** By RFC 8949: a map of 7 pairs; 3 and 4 hold maps, door ids are byte strings of 16 bytes. */
const cbor = [
  'a7 01f5 02f4',
  `03 a2 01 81 ${id} 02 82 1901e0 190438`,
  `04 81 a2 01 ${id} 02 80`,
  '05 81 83 181f 00 1905a0',
  '08 1865',
  `09 68 ${Buffer.from('Room 101').toString('hex')}`,
]
  .join('')
  .replaceAll(' ', '');

describe('the configuration of a lock', () => {
  const frames = transferOf(apply, 5);

  it('travels as one map in chunks that fit a frame', () => {
    const chunks = frames.filter(({ command }) => command === 'chunk');
    expect(Buffer.concat(chunks.map(({ payload }) => payload.data as Buffer)).toString('hex')).toBe(cbor);
    expect(chunks.map(({ payload }) => payload.offset)).toEqual([0, 48]);
    expect(chunks.map(({ bytes }) => bytes.length)).toEqual([52, 4 + cbor.length / 2 - 48]);
    expect(Buffer.from(chunks[1]?.bytes ?? []).toString('hex')).toBe(
      `053000${(cbor.length / 2 - 48).toString(16)}${cbor.slice(96)}`,
    );
  });

  it('is announced with its length and checksum, and put in force at the end', () => {
    expect(frames.map(({ command }) => command)).toEqual(['begin', 'chunk', 'chunk', 'commit']);
    const data = Buffer.from(cbor, 'hex');
    expect(frames[0]?.payload).toEqual({
      transferId: 5,
      configVersion: 7,
      length: data.length,
      crc16: crc16(data),
    });
    expect(Buffer.from(frames[3]?.bytes ?? []).toString('hex')).toBe('0509000000030000000000000001000000');
  });

  it('is kept as the frames that were sent', () => {
    const [begin] = frames;
    if (!begin) throw new Error('no frame');
    const frame = commandFrame(begin, { manufacturerCode: 0x12_34, tsn: 0x21 });
    expect(Buffer.from(frame).toString('hex')).toMatch(/^15341221000507000000/);
  });

  it('has a checksum as install codes have', () => {
    // CRC-16/X-25 of "123456789" by the catalogue of CRC algorithms; and the install code of BDB 3.0.1, 10.1.1.
    expect(crc16(Buffer.from('123456789'))).toBe(0x90_6e);
    expect(crc16(Buffer.from('83fed3407a939723a5c639b26916d505', 'hex'))).toBe(0xb5_c3);
  });

  it('names a door that has no UUID by its text', () => {
    const named = { ...apply.configuration, outputs: [{ doorId: 'lift-1', doors: [] }] };
    const [, chunk] = transferOf({ ...apply, configuration: named }, 1);
    expect(Buffer.from(chunk?.bytes ?? []).includes('lift-1')).toBe(true);
  });
});

describe('a result of a transfer', () => {
  it.each([
    [0, 'ok'],
    [1, 'lost'],
    [2, 'lost'],
    [3, 'unsupported'],
    [4, 'busy'],
    [5, 'older'],
    [6, 'nonsense'],
    [Number.NaN, 'nonsense'],
  ])('with status %s is %s', (status, said) => {
    expect(transferStatus({ transferId: 5, status, configVersion: 7 }, 5, 7)).toBe(said);
  });

  it('is believed only of this transfer and configuration', () => {
    expect(transferStatus({ transferId: 6, status: 0, configVersion: 7 }, 5, 7)).toBe('nonsense');
    expect(transferStatus({ transferId: 5, status: 0, configVersion: 8 }, 5, 7)).toBe('nonsense');
    expect(transferStatus({ transferId: 5, status: 0, configVersion: 6 }, 5, undefined)).toBe('ok');
  });
});

describe('attributes of the cluster', () => {
  it('become what is reported, without what is missing or nonsense', () => {
    const reported = { configVersion: 7, doorVersion: Number.NaN, lccVersion: '1.0\0', samVersion: 5, 99: 1 };
    expect(reportOf({ ...reported, dueBatteryUnderLoad: 2_900, capabilities: 0b10_0001, hwId: 'x' })).toEqual(
      {
        configVersion: 7,
        lccVersion: '1.0',
        dueBatteryUnderLoad: 2_900,
        capabilities: ['standOpen', 'relay'],
      },
    );
    expect(reportOf(null)).toEqual({});
  });
});
