/** Whatever the wall clock is set to, no door opens late, and none stays open longer than was promised. */
import { beforeEach, describe, expect, it } from 'vitest';
import { HOLD_MS } from '../../../drivers/contract/rs485.ts';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { MAC } from '../../../test/resources/doors/doors.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SECONDS = 600;
const JUMPS: [string, number][] = [
  ['back by two days', -48 * HOUR],
  ['back by three hours', -3 * HOUR],
  ['forward by three hours', 3 * HOUR],
  ['forward by two days', 48 * HOUR],
];

let site: DoorSite;
let end: () => Promise<void>;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  end = site.run();
});

async function door(hasLock: boolean): Promise<void> {
  const body = hasLock ? { mac: MAC, gatewayId: GATEWAY, networkId: 'n' } : {};
  id = (await site.desk('POST', '/doors', body)).body.id as string;
  if (!hasLock) site.played.relays.set(id, playedRelay(DEVICE));
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
}
const post = (part: string, body?: object) => site.desk('POST', `/doors/${id}/${part}`, body);
const sent = () => site.played.actuated.map(({ kind, at }) => ({ kind, at }));
const kinds = () => sent().map(({ kind }) => kind);

/** The daemon is stopped, and starts again after `awayMs` in the same boot, with a wall clock that was set meanwhile. */
async function restart(jump: number, awayMs: number): Promise<void> {
  const { clock, played, database } = site;
  await end();
  site = await openDoorSite(database, {
    now: clock.now() + awayMs + jump,
    monotonic: clock.monotonic() + awayMs,
    bootId: played.bootId,
  });
  site.played.relays = played.relays;
  end = site.run();
  await site.clock.advance(0);
}

describe.each(JUMPS)('while the wall clock is set %s', (_, jump) => {
  it('a lock that stands open is locked at its time at the latest, and not sent the command to open again', async () => {
    await door(true);
    const begun = site.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await site.clock.advance(100_000);
    site.clock.jumpWall(jump);
    await site.clock.advance(100_000);
    site.clock.jumpWall(-jump);
    await site.clock.advance(SECONDS * 1_000);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
    expect(sent().at(-1)?.at).toBeLessThanOrEqual(begun + SECONDS * 1_000);
  });

  it('and so it is after a restart', async () => {
    await door(true);
    const begun = site.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await site.clock.advance(100_000);
    await restart(jump, 50_000);
    await site.clock.advance(SECONDS * 1_000);
    expect(new Set(kinds())).toEqual(new Set(['endStandOpen']));
    expect(sent()[0]?.at).toBeLessThanOrEqual(begun + SECONDS * 1_000);
  });

  it('what a former run has sent may still arrive: the end is not certain at once', async () => {
    await door(true);
    await post('stand-open', { seconds: SECONDS });
    await site.clock.advance(1_000);
    await restart(Math.min(jump, 100_000), 1_000);
    const { body } = await site.desk('DELETE', `/doors/${id}/stand-open`);
    expect(body).toMatchObject({ outcome: 'accepted', standingOpen: { state: 'ending' } });
    await site.clock.advance(35_000);
    expect(kinds()).toEqual(['endStandOpen', 'endStandOpen']);
  });

  it.each([false, true])('a relay is held no longer than its time (a restart: %s)', async (isRestarted) => {
    await door(false);
    const begun = site.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await site.clock.advance(100_000);
    if (isRestarted) await restart(jump, 5_000);
    else site.clock.jumpWall(jump);
    await site.clock.advance(2 * SECONDS * 1_000);
    const lastEnd = Math.max(begun, ...site.played.held.map(({ at, milliseconds }) => at + milliseconds));
    expect(lastEnd).toBeLessThanOrEqual(begun + SECONDS * 1_000 + HOLD_MS);
  });

  it('a stand-open that waits for its lock expires after 15 minutes', async () => {
    await door(true);
    site.played.unreachable = 'the gateway is away';
    await post('stand-open', { seconds: 24 * 3_600 });
    await site.clock.advance(MINUTE);
    site.clock.jumpWall(jump);
    await site.clock.advance(14 * MINUTE);
    site.played.unreachable = undefined;
    site.connectGateway(true);
    await site.clock.advance(24 * HOUR);
    expect(kinds()).toEqual([]);
  });

  it('a lock is locked 5 s after its unlock, and at once after a restart', async () => {
    await door(true);
    site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    await post('unlock');
    const opened = site.clock.monotonic();
    await site.clock.advance(1_000);
    site.clock.jumpWall(jump);
    await site.clock.advance(MINUTE);
    expect(sent()).toEqual([{ kind: 'lock', at: opened + 5_000 }]);
    await post('unlock');
    await restart(jump, 2_000);
    expect(sent()).toEqual([{ kind: 'lock', at: site.clock.monotonic() }]);
  });
});
