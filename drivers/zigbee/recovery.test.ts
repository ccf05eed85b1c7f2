/** Locks that moved while no one heard them: with another address, or from the coordinator to a router. */
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  CONFIRMED,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import { MAKE } from '../../test/simulators/zigbee/make.ts';
import type { ZclReply } from './radio.ts';
import { openRecovery } from './recovery.ts';

const ROUTER = '00158d00010000aa';
/** A parent may hold an actuation for 8 s, and the rest is what a busy machine takes to send it. */
const SHORT_MS = 12_000;
const A_MINUTE = { timeout: 60_000, interval: 100 };

const unlock = (gateway: TestGateway) => gateway.execute('unlock', unlockOf(LOCK), SHORT_MS);
const isConnected = (gateway: TestGateway) =>
  (gateway.reports.get(`device:${LOCK}`) as { connected?: boolean } | undefined)?.connected;

/** What it executed, each by a command of its own. */
async function executed(site: SimulatedGateway): Promise<unknown[]> {
  const { executed: all } = await site.state(LOCK);
  return all.filter(({ what }) => what === 'unlock').map(({ tsn }) => tsn);
}

/** By itself, unless something has to `happen`. */
async function healed(
  site: SimulatedGateway,
  gateway: TestGateway,
  happen?: () => Promise<unknown>,
): Promise<void> {
  // It may be found before the command has ended.
  const unknown = expect(unlock(gateway)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await vi.waitFor(() => expect(isConnected(gateway)).toBe(false));
  const { received } = await site.state(LOCK);
  await happen?.();
  await vi.waitFor(() => expect(isConnected(gateway)).toBe(true), A_MINUTE);
  await unknown;
  // It was asked, and sent nothing by itself.
  if (!happen) expect((await site.state(LOCK)).received.length).toBeGreaterThan(received.length);
  expect(await unlock(gateway)).toEqual(CONFIRMED);
  // The first one was never delivered, and is not delivered now.
  expect(await executed(site)).toHaveLength(1);
}

it('finds a lock with another network address within a minute, without a word of it', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { readdress: 'silently' });
  await healed(site, gateway);
}, 90_000);

// EmberZNet holds frames for it until it announces itself, or its place is too old.
it('finds a sleeping lock that went from the coordinator to a router', async () => {
  const site = await simulated({
    locks: [{ ieee: LOCK, sleepy: {} }],
    routers: [{ ieee: ROUTER, joined: true }],
  });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { missedParent: ROUTER });
  await healed(site, gateway, MAKE.seeksChildren ? undefined : () => site.set(LOCK, { announce: true }));
}, 90_000);

/** A coordinator of which nothing is heard, with a lock that is asked and never answers by itself. */
function searching() {
  const asked: { known: AbortSignal | undefined; reply(reply: ZclReply): void }[] = [];
  const calls: string[] = [];
  const recovery = openRecovery({
    radio: () => ({
      locate: async () => undefined,
      reroute: async () => undefined,
      async disown() {
        calls.push('disown');
        return { restore: async () => void calls.push('restore'), confirm: () => void calls.push('confirm') };
      },
      send({ known }) {
        const { promise, resolve } = Promise.withResolvers<ZclReply>();
        known?.addEventListener('abort', () => resolve({ kind: 'unanswered', reason: 'no one waits' }));
        asked.push({ known, reply: resolve });
        return promise;
      },
    }),
    locks: { find: () => ({ ieee: LOCK, endpoint: 1, hasOwnCluster: false }) as never },
    context: {
      clock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms === 1_000 ? 0 : ms, signal) },
      log: { debug: () => undefined } as never,
    },
    signal: new AbortController().signal,
  });
  const unanswered = { kind: 'unanswered', reason: 'nothing came' } as const;
  return {
    calls,
    recovery,
    asked: async (count: number) => {
      await vi.waitFor(() => expect(asked).toHaveLength(count));
      const last = asked[count - 1];
      if (!last) throw new Error('nothing was asked');
      return { reply: last.reply, fails: () => last.reply(unanswered) };
    },
  };
}

it('leaves the lock its parent when an actuation ends the question whether it is there', async () => {
  const { recovery, asked, calls } = searching();
  recovery.failed(LOCK);
  await asked(1);
  recovery.yield(LOCK);
  // Two are asked at a time: the last of these begins when the round of the first is over.
  recovery.failed(OTHER_LOCK);
  recovery.failed(ROUTER);
  await asked(3);
  expect(calls).toEqual([]);
});

it('restores a disowned child that speaks of an earlier command, or is needed for an actuation', async () => {
  for (const how of ['heard', 'yield'] as const) {
    const { recovery, asked, calls } = searching();
    recovery.failed(LOCK);
    (await asked(1)).fails();
    await asked(2);
    recovery[how](LOCK);
    await vi.waitFor(() => expect(calls).toEqual(['disown', 'restore']));
  }
});

it('leaves a lock disowned that answers by its route', async () => {
  const { recovery, asked, calls } = searching();
  recovery.failed(LOCK);
  (await asked(1)).fails();
  const second = await asked(2);
  recovery.heard(LOCK);
  second.reply({ kind: 'answered', payload: [] });
  await vi.waitFor(() => expect(calls).toEqual(['disown', 'confirm']));
});
