/** What a lock does while no one hears it is known after the next start. */
import { expect, it, vi } from 'vitest';
import {
  folder,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import type { LockReport } from '../contract/settings.ts';
import type { ZclReply, ZclRequest } from './radio.ts';
import { openStateReader } from './state-reader.ts';

const reportOf = ({ reports }: TestGateway) => reports.get(`device:${LOCK}`) as LockReport;

it('a start reads the bolt, the door and the relock time again', { timeout: 60_000 }, async () => {
  const plan = { ieee: LOCK, mains: true, vendorCluster: false, lacksCommands: [3], autoRelockSeconds: 60 };
  const site = await simulated({ locks: [plan] });
  const stateDirectory = folder();
  const before = await opened(site, { stateDirectory });
  await joined(before, site);
  expect(reportOf(before)).toMatchObject({
    lockState: { value: 'locked' },
    relock: { by: 'autoRelock', seconds: 60 },
  });
  await before.close();
  await site.set(LOCK, { manual: 'unlock', door: 'open', autoRelockSeconds: 0 });
  const after = await opened(site, { stateDirectory });
  await vi.waitFor(() =>
    expect(reportOf(after)).toMatchObject({
      lockState: { value: 'unlocked' },
      doorState: { value: 'open' },
      relock: { by: 'gateway' },
    }),
  );
  // It is reported, too.
  await site.set(LOCK, { autoRelockSeconds: 45 });
  await vi.waitFor(() =>
    expect(reportOf(after)).toMatchObject({ relock: { by: 'autoRelock', seconds: 45 } }),
  );
});

function open(ieees: string[], doubt?: string) {
  const clock = manualClock();
  const sent: { request: ZclRequest; answer: (reply: ZclReply) => void }[] = [];
  const reader = openStateReader({
    radio: () => ({
      send: (request) =>
        new Promise((resolve) => {
          sent.push({ request, answer: resolve });
          request.known?.addEventListener('abort', () => resolve({ kind: 'unanswered', reason: 'freed' }));
        }),
    }),
    locks: {
      find: (ieee) => ({ ieee, endpoint: 1, hasOwnCluster: false }),
      all: () => ieees.map((ieee) => ({ ieee, endpoint: 1, hasOwnCluster: false })),
      exchange: () => () => undefined,
    },
    addresses: { reason: () => doubt },
    clock,
    isMoving: () => false,
    signal: new AbortController().signal,
  });
  return { clock, sent, reader, asked: () => sent.map(({ request }) => request.ieee) };
}

it('few locks are read at once, and the next one when one has answered', async () => {
  const third = '00158d0001000003';
  const { clock, sent, reader, asked } = open([LOCK, OTHER_LOCK, third]);
  reader.readAll();
  expect(asked()).toEqual([LOCK, OTHER_LOCK]);
  sent[0]?.answer({ kind: 'answered', payload: [] });
  await clock.advance(0);
  expect(asked()).toEqual([LOCK, OTHER_LOCK, third]);
});

it('an actuation does not wait for a read, which is sent again when the lock speaks later', async () => {
  const { clock, sent, reader, asked } = open([LOCK]);
  reader.readAll();
  reader.yield(LOCK);
  expect(sent[0]?.request.known?.aborted).toBe(true);
  await clock.advance(1_000);
  reader.heard(LOCK);
  expect(asked()).toEqual([LOCK]);
  await clock.advance(4_000);
  reader.heard(LOCK);
  expect(asked()).toEqual([LOCK, LOCK]);
});

it.each<[string, ZclReply, string | undefined]>([
  ['does not answer', { kind: 'unanswered', reason: 'no answer in time' }, undefined],
  ['has an address that another one may have', { kind: 'answered', payload: [] }, 'two have it'],
])('a lock that %s is read again in time, and less often each time', async (_, reply, doubt) => {
  const { clock, sent, reader, asked } = open([LOCK], doubt);
  reader.readAll();
  for (const [waitMs, count] of [
    [60_000, 2],
    [60_000, 2],
    [60_000, 3],
  ] as const) {
    sent.at(-1)?.answer(reply);
    await clock.advance(waitMs);
    reader.review();
    expect(asked()).toHaveLength(count);
  }
});
