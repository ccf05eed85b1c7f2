import { describe, expect, it } from 'vitest';
import { type BusState, busFindings, duringScan, type ScannedAddress } from './bus-findings.ts';
import type { BusOverview } from './bus-schema.ts';

const BUS: BusState = {
  id: 'bus-1',
  protocol: 'modbus',
  port: '/dev/ttyUSB0',
  up: true,
  lastError: null,
  strayBytes: 0,
  lateAddresses: [],
  warnings: [],
  devices: [],
};
const NONE = { replies: 0, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 };

/** A device that answers 20 of 20 within 3 ms, but for what is given. */
function device(
  address: number,
  counters: Partial<ScannedAddress['counters']> = {},
  more: Partial<ScannedAddress> = {},
): ScannedAddress {
  const identity = { hwId: `io-${address}`, type: 'io', version: '1', profile: null };
  return {
    address,
    answered: true,
    identity,
    deviceId: `id-${address}`,
    isNew: false,
    turnaroundMs: { min: 2, median: 3, max: 4 },
    counters: { ...NONE, replies: 20, ...counters },
    ...more,
  };
}
const silent = (address: number, counters: Partial<ScannedAddress['counters']> = { timeouts: 2 }) =>
  device(address, { replies: 0, ...counters }, { answered: false, identity: null, turnaroundMs: null });
const well = [device(1), device(2), device(3)];
const texts = (addresses: ScannedAddress[], bus: Partial<BusState> = {}) =>
  busFindings({ ...BUS, ...bus }, addresses)
    .filter(({ severity }) => severity !== 'good')
    .map(({ severity, subject, text }) => `${severity} ${subject}: ${text}`);

describe('what a scan says', () => {
  it('is nothing of a bus that is well, but who answers and how fast', () => {
    expect(busFindings(BUS, [...well, device(4, {}, { isNew: true })])).toEqual([
      {
        severity: 'good',
        subject: 'bus bus-1',
        text: 'devices that answer: 4 (1 new), the slowest within 3 ms',
        code: 'ANSWERING',
        parameters: { bus: 'bus-1', count: 4, added: 1, milliseconds: 3 },
      },
    ]);
    expect(texts([device(1, { replies: 99, crc: 1 }), device(2), device(3)])).toEqual([]);
  });

  it.each<[string, ScannedAddress[], Partial<BusState>, RegExp[]]>([
    [
      'a link that is down',
      [],
      { up: false, lastError: 'no such file' },
      [/^bad bus bus-1: down: no such file/],
    ],
    ['no one at all', [silent(1)], {}, [/^bad bus bus-1: no one answers at all: .*A and B/]],
    [
      'no one in a range, though the bus is well',
      [],
      { devices: [3, 4, 5].map((address) => ({ address, alive: address > 3 })) },
      [
        /^doubtful bus bus-1: no one answers in this range; on the bus, address 4, 5 does$/,
        /^doubtful address 3: a device is known to be here and does not answer/,
      ],
    ],
    [
      'a device in a range of its own',
      [silent(3)],
      { devices: [{ address: 4, alive: true }] },
      [/^bad address 3: .*does not answer/, /^doubtful bus bus-1: no one answers in this range/],
    ],
    [
      'noise on the wire',
      [...well, ...[5, 6, 7, 8].map((address) => ({ ...silent(address, { framing: 10 }), deviceId: null }))],
      { strayBytes: 2_196 },
      [/^doubtful bus bus-1: 2196 bytes came while no one was asked/],
    ],
    [
      'no one that can be understood',
      [silent(1, { timeouts: 1, framing: 1 })],
      {},
      [/^bad bus bus-1: no one can be understood.*baudRate/],
    ],
    [
      'damage at one address',
      [device(1, { crc: 5 }), ...well.slice(1)],
      {},
      [/^bad address 1: 20 % of its frames are damaged/],
    ],
    [
      'damage at most addresses, said once',
      [device(1, { crc: 5 }), device(2, { crc: 3 }), device(3)],
      {},
      [/^bad bus bus-1: damaged frames at most addresses: 120 ohm/],
    ],
    [
      'two devices at one address',
      [device(1, { crc: 6 }, { turnaroundMs: { min: 2, median: 5, max: 30 } }), ...well.slice(1)],
      {},
      [/^bad address 1: 23 % damaged.*two devices may have this address/],
    ],
    [
      'two devices at one address whose frames interleave',
      [device(1, { crc: 6, collisions: 3 }), ...well.slice(1)],
      {},
      [/^bad address 1: .*two devices may have this address/],
    ],
    [
      'answers to no question',
      [device(1, { collisions: 2 }), ...well.slice(1)],
      {},
      [/^bad address 1: answers that belong to no question.*localEcho/],
    ],
    [
      'two devices at one address that answer at once',
      [device(1, { framing: 4 }), ...well.slice(1)],
      {},
      [/^bad address 1: 17 % of what comes is no frame.*two devices may have this address/],
    ],
    [
      'another parity everywhere',
      [device(1, { framing: 4 }), device(2, { framing: 9 }), device(3)],
      {},
      [/^bad bus bus-1: characters that are none at most addresses/],
    ],
    [
      'a dead device',
      [...well, silent(7)],
      {},
      [/^bad address 7: a device is known to be here and does not/],
    ],
    [
      'a loose terminal',
      [...well, device(7, { replies: 15, timeouts: 5 })],
      {},
      [/^doubtful address 7: no answer to 25 %/],
    ],
    [
      'the wrong product',
      [...well, device(7, { refusals: 5 })],
      {},
      [/^doubtful address 7: it answers 20 % with an error/],
    ],
    [
      'a slow device',
      [...well, device(7, {}, { turnaroundMs: { min: 60, median: 61, max: 62 } })],
      {},
      [/^doubtful address 7: it takes 61 ms/],
    ],
    [
      'a device without a name',
      [...well, device(7, {}, { identity: null })],
      {},
      [/^doubtful address 7: it answers and cannot say who it is/],
    ],
    [
      'late replies, which are no noise',
      [device(1), device(2, { replies: 17, late: 3 }), device(3)],
      { strayBytes: 21 },
      [
        /^doubtful bus bus-1: 21 bytes came after their time, as do replies of address 2: raise turnaroundMaxMs/,
        /^doubtful address 2: 3 of its replies came too late: raise turnaroundMaxMs/,
      ],
    ],
    [
      'late replies to polls alone',
      well,
      { strayBytes: 14, lateAddresses: [9, 4] },
      [
        /^doubtful bus bus-1: 14 bytes came after their time, as do replies of address 4, 9: raise turnaroundMaxMs/,
      ],
    ],
    [
      'a dead device behind noise',
      [...well, { ...silent(5), deviceId: null }],
      { strayBytes: 3, devices: [{ address: 5, alive: false }] },
      [/^doubtful bus bus-1: 3 bytes came while no one/, /^bad address 5: a device is known to be here/],
    ],
    [
      'an adapter that waits, and noise',
      well,
      {
        warnings: [{ code: 'LATENCY_TIMER', message: 'latency timer 16 ms', parameters: {} }],
        strayBytes: 9,
      },
      [
        /^doubtful bus bus-1: latency timer 16 ms$/,
        /^doubtful bus bus-1: 9 bytes came while no one was asked/,
      ],
    ],
  ])('is what to check for %s', (_name, addresses, bus, expected) => {
    const said = texts(addresses, bus);
    expect(said).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(said[index]).toMatch(pattern);
  });
});

describe('what came during a scan', () => {
  const polled = (address: number, late: number): BusOverview['devices'][number] => ({
    address,
    alive: true,
    hwId: null,
    deviceId: null,
    turnaroundMs: null,
    refreshMs: null,
    replyAge: null,
    counters: { ...NONE, late },
  });
  const state = (strayBytes: number | null, ...late: number[]): BusOverview => ({
    ...BUS,
    since: null,
    warnings: [],
    pairing: null,
    reportAge: null,
    utilisation: null,
    pollsPerSecond: null,
    strayBytes,
    devices: late.map((count, address) => polled(address, count)),
  });

  it.each([
    ['is what is more than before', state(5, 1, 2), state(7, 1, 3), 2, [1]],
    ['is all, where the host began to count again', state(50, 9), state(3, 0), 3, []],
    ['is all, where the bus was not known before', undefined, state(3, 1), 3, [0]],
    ['is not known while the bus has reported nothing', state(5), state(null), null, []],
  ])('%s', (_, before, after, strayBytes, lateAddresses) => {
    expect(duringScan(before, after)).toMatchObject({ strayBytes, lateAddresses });
  });
});
