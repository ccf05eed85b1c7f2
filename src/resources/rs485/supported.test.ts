/** 4.5 of a device that is known: what it cannot carry is refused, and not stored. */
import { describe, expect, it } from 'vitest';
import type { Rs485Carries } from '../../../drivers/contract/settings.ts';
import { A, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';

const CARRIES: Rs485Carries = {
  pins: ['input0', 'input1', 'output0', 'output1'],
  relays: 2,
  pinMemory: false,
  unlockMaxMilliseconds: 25_500,
};
const NOTHING: Rs485Carries = { ...CARRIES, pins: ['input0'], relays: 0 };

async function openBed(carries: Rs485Carries | undefined, wanted: object = {}) {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', ...wanted });
  if (carries) bed.report('io-1', { carries });
  return bed;
}
const device = async (bed: Awaited<ReturnType<typeof openBed>>) => (await bed.get(`/${A}`)).body;

describe('of a device that is known', () => {
  it.each([
    ['a pin', { ioPins: { input2: true, output1: true } }, ['/ioPins/input2'], CARRIES],
    ['a relay', { relayIndex: 2 }, ['/relayIndex'], CARRIES],
    ['a relay, where it has none', { relayIndex: 0 }, ['/relayIndex'], NOTHING],
    ['a time', { unlockDurationMilliseconds: 25_600 }, ['/unlockDurationMilliseconds'], CARRIES],
    [
      'a time, without a relay',
      { unlockDurationMilliseconds: 500 },
      ['/unlockDurationMilliseconds'],
      NOTHING,
    ],
    ['pin memory', { useInputPinMemory: true }, ['/useInputPinMemory'], CARRIES],
    [
      'several',
      { ioPins: { output7: true }, relayIndex: 7, useInputPinMemory: true },
      ['/ioPins/output7', '/relayIndex', '/useInputPinMemory'],
      CARRIES,
    ],
  ])('%s that it does not have is refused, and nothing is stored', async (_, edit, paths, carries) => {
    const bed = await openBed(carries);
    const before = await device(bed);
    const { status, body } = await bed.put(A, { name: 'Lobby', ...edit });
    expect([status, body.error]).toEqual([422, 'NOT_SUPPORTED']);
    expect(body.details).toMatchObject(paths.map((path) => ({ path, code: 'NOT_SUPPORTED' })));
    expect(await device(bed)).toEqual(before);
    expect(bed.audits).toEqual([]);
  });

  it('what it can carry is stored', async () => {
    const bed = await openBed(CARRIES);
    const edit = {
      ioPins: { input1: true, output1: true, output7: false },
      relayIndex: 1,
      unlockDurationMilliseconds: 25_500,
      useInputPinMemory: false,
    };
    expect((await bed.put(A, edit)).status).toBe(200);
  });

  it('is refused while it does not answer too', async () => {
    const bed = await openBed(CARRIES);
    bed.report('io-1', { carries: CARRIES, connected: false });
    expect((await bed.put(A, { relayIndex: 2 })).status).toBe(422);
  });

  it('is refused after its revision and its door were looked at', async () => {
    const bed = await openBed(CARRIES);
    const stale = await bed.put(A, { relayIndex: 7 }, undefined, { 'if-match': '"99"' });
    expect(stale.status).toBe(412);
  });
});

describe('what is stored already', () => {
  const STORED = { relayIndex: 5, ioPins: { input3: true }, useInputPinMemory: true };

  it('stays, and keeps no one from changing something else', async () => {
    const bed = await openBed(CARRIES, STORED);
    const same = { ...STORED, name: 'Lobby', ioPins: { input3: true, input0: true } };
    expect((await bed.put(A, same)).status).toBe(200);
    expect(await device(bed)).toMatchObject({ name: 'Lobby', relayIndex: 5, useInputPinMemory: true });
  });

  it('is not replaced by another thing that the device cannot carry', async () => {
    const bed = await openBed(CARRIES, STORED);
    expect((await bed.put(A, { relayIndex: 6 })).status).toBe(422);
  });

  it('is cleared at any time', async () => {
    const bed = await openBed(CARRIES, STORED);
    expect((await bed.put(A, { relayIndex: null, ioPins: null, useInputPinMemory: false })).status).toBe(200);
    expect(await device(bed)).toMatchObject({ relayIndex: null, ioPins: NO_PINS });
  });
});

describe('of a device that is not known', () => {
  it('everything is stored: it was not heard of', async () => {
    const bed = await openBed(undefined);
    expect((await bed.put(A, { relayIndex: 7, useInputPinMemory: true })).status).toBe(200);
  });

  it('everything is stored: it has not said what it can carry', async () => {
    const bed = await openBed(undefined);
    bed.report('io-1');
    expect((await bed.put(A, { relayIndex: 7, useInputPinMemory: true })).status).toBe(200);
  });
});
