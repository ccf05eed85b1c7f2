/** What a lock had before it stood open, while a write of that may still arrive: against a lock that answers as a test says. */
import { expect, it } from 'vitest';
import {
  command,
  OPERATING_MODE,
  openPlayed,
  RELOCK_TIME,
  SILENT,
} from '../../test/drivers/zigbee/played-lock.ts';
import type { ZclRequest } from './radio.ts';

const PASSAGE = 4;
/** ZCL rev. 8, table 7-17. */
const VACATION = 1;
const NORMAL = 0;
const CHANGED = [
  ['its relock time', { [RELOCK_TIME]: 60 }, { [RELOCK_TIME]: 0 }],
  ['its mode', { [OPERATING_MODE]: VACATION, 38: 0b1_0001 }, { [OPERATING_MODE]: PASSAGE }],
] as const;
const HELD = { outcome: 'confirmed', settlesMs: 35_000 };
const isWrite = ({ command: name }: ZclRequest) => name === 'write';

it.each(CHANGED)('gives back %s when the write of it arrives after the end', async (_, attributes, late) => {
  let isHeld = true;
  const reply = (request: ZclRequest) => (isHeld && isWrite(request) ? SILENT : undefined);
  const lock = await openPlayed({ attributes, reply });
  const begin = lock.begin('standOpen');
  const begun = begin.end.catch(() => undefined);
  await lock.clock.advance(0);
  isHeld = false;
  expect(await lock.run('endStandOpen')).toEqual(HELD);
  await begun;
  Object.assign(lock.attributes, late);
  // Once more before the time is over.
  await lock.clock.advance(30_000);
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed', settlesMs: 5_000 });
  expect(lock.attributes).toMatchObject(attributes);
  Object.assign(lock.attributes, late);
  await lock.clock.advance(5_000);
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(lock.attributes).toMatchObject(attributes);
  expect(lock.meta.standing).toBeNull();
});

it('gives back the relock time when the first of two writes arrives after the end', async () => {
  let writes = 0;
  const lock = await openPlayed({
    attributes: { [RELOCK_TIME]: 60 },
    reply(request) {
      if (isWrite(request)) writes += 1;
      return isWrite(request) && writes === 1 ? SILENT : undefined;
    },
  });
  const { end } = lock.begin('standOpen', command, 60_000);
  await lock.clock.advance(2_000);
  expect(await end).toEqual({ outcome: 'confirmed' });
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed', settlesMs: 33_000 });
  lock.attributes[RELOCK_TIME] = 0;
  await lock.clock.advance(33_000);
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(lock.attributes[RELOCK_TIME]).toBe(60);
});

it.each(CHANGED)('gives back %s when a process before this one wrote it', async (name, attributes, late) => {
  const standing = name === 'its mode' ? { operatingMode: VACATION } : { autoRelockTime: 60 };
  const lock = await openPlayed({ attributes, meta: { standing }, startedMs: 0 });
  expect(await lock.run('endStandOpen')).toEqual(HELD);
  Object.assign(lock.attributes, late);
  await lock.clock.advance(35_000);
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(lock.attributes).toMatchObject(attributes);
});

it('keeps what a lock had that refuses to change it after a write without an answer', async () => {
  let writes = 0;
  const lock = await openPlayed({
    attributes: { [RELOCK_TIME]: 60 },
    reply(request) {
      if (isWrite(request)) writes += 1;
      if (!isWrite(request) || writes > 2) return undefined;
      // READ_ONLY (ZCL rev. 8, table 2-12).
      return writes === 1 ? SILENT : { kind: 'answered', payload: [{ status: 0x88, attrId: RELOCK_TIME }] };
    },
  });
  const ended = lock.begin('standOpen', command, 60_000).end.catch((error: unknown) => error);
  await lock.clock.advance(2_000);
  expect(await ended).toMatchObject({ code: 'REFUSED' });
  lock.attributes[RELOCK_TIME] = 0;
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed', settlesMs: 33_000 });
  expect(lock.attributes[RELOCK_TIME]).toBe(60);
});

it.each(CHANGED)('keeps nothing of %s for a write that did not leave', async (_, attributes) => {
  let isFull = true;
  const unsent = { kind: 'unsent', reason: 'the coordinator has no memory left' } as const;
  const reply = (request: ZclRequest) => (isFull && isWrite(request) ? unsent : undefined);
  const lock = await openPlayed({ attributes, reply });
  await expect(lock.run('standOpen')).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect(lock.meta.standing).toEqual({});
  // Changed at the lock meanwhile, by a hand.
  const own = { [RELOCK_TIME]: 30, [OPERATING_MODE]: NORMAL };
  Object.assign(lock.attributes, own);
  isFull = false;
  await lock.run('standOpen');
  await lock.run('endStandOpen');
  expect(lock.attributes).toMatchObject(own);
});

it.each(CHANGED)('keeps %s of a lock that stands open when a further write did not leave', async (...one) => {
  const [, attributes] = one;
  let isFull = false;
  const unsent = { kind: 'unsent', reason: 'the coordinator has no memory left' } as const;
  const reply = (request: ZclRequest) => (isFull && isWrite(request) ? unsent : undefined);
  const lock = await openPlayed({ attributes, reply });
  await lock.run('standOpen');
  isFull = true;
  await lock.run('standOpen').catch(() => undefined);
  isFull = false;
  await lock.run('endStandOpen');
  expect(lock.attributes).toMatchObject(attributes);
});

it('is certain at once of a lock that answers, also soon after a start', async () => {
  const lock = await openPlayed({ attributes: { [RELOCK_TIME]: 60 }, startedMs: 0 });
  await lock.run('standOpen');
  expect(await lock.run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect([lock.attributes[RELOCK_TIME], lock.meta.standing]).toEqual([60, null]);
});
