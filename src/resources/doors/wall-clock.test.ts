/** Whatever the wall clock is set to, no door opens late, and none stays open longer than was promised. */
import { beforeEach, describe, expect, it } from 'vitest';
import { HOLD_MS } from '../../../drivers/contract/rs485.ts';
import { type Estate, GATEWAY, openEstate, playedRelay } from '../../../test/estate.ts';
import { MAC } from './test-doors.ts';

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

let estate: Estate;
let end: () => Promise<void>;
let id: string;
beforeEach(async () => {
  estate = await openEstate();
  end = estate.run();
});

async function door(hasLock: boolean): Promise<void> {
  const body = hasLock ? { mac: MAC, gatewayId: GATEWAY, networkId: 'n' } : {};
  id = (await estate.desk('POST', '/doors', body)).body.id as string;
  if (!hasLock) estate.played.relays.set(id, playedRelay(DEVICE));
  await estate.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
}
const post = (part: string, body?: object) => estate.desk('POST', `/doors/${id}/${part}`, body);
const sent = () => estate.played.actuated.map(({ kind, at }) => ({ kind, at }));
const kinds = () => sent().map(({ kind }) => kind);

/** The daemon is stopped, and starts again after `awayMs` in the same boot, with a wall clock that was set meanwhile. */
async function restart(jump: number, awayMs: number): Promise<void> {
  const { clock, played, database } = estate;
  await end();
  estate = await openEstate(database, {
    now: clock.now() + awayMs + jump,
    monotonic: clock.monotonic() + awayMs,
    bootId: played.bootId,
  });
  estate.played.relays = played.relays;
  end = estate.run();
  await estate.clock.advance(0);
}

describe.each(JUMPS)('while the wall clock is set %s', (_, jump) => {
  it('a lock that stands open is locked at its time at the latest, and not sent the command to open again', async () => {
    await door(true);
    const begun = estate.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await estate.clock.advance(100_000);
    estate.clock.jumpWall(jump);
    await estate.clock.advance(100_000);
    estate.clock.jumpWall(-jump);
    await estate.clock.advance(SECONDS * 1_000);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
    expect(sent().at(-1)?.at).toBeLessThanOrEqual(begun + SECONDS * 1_000);
  });

  it('and so it is after a restart', async () => {
    await door(true);
    const begun = estate.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await estate.clock.advance(100_000);
    await restart(jump, 50_000);
    await estate.clock.advance(SECONDS * 1_000);
    expect(new Set(kinds())).toEqual(new Set(['endStandOpen']));
    expect(sent()[0]?.at).toBeLessThanOrEqual(begun + SECONDS * 1_000);
  });

  it('what a former run has sent may still arrive: the end is not certain at once', async () => {
    await door(true);
    await post('stand-open', { seconds: SECONDS });
    await estate.clock.advance(1_000);
    await restart(Math.min(jump, 100_000), 1_000);
    const { body } = await estate.desk('DELETE', `/doors/${id}/stand-open`);
    expect(body).toMatchObject({ outcome: 'accepted', standingOpen: { state: 'ending' } });
    await estate.clock.advance(35_000);
    expect(kinds()).toEqual(['endStandOpen', 'endStandOpen']);
  });

  it.each([false, true])('a relay is held no longer than its time (a restart: %s)', async (isRestarted) => {
    await door(false);
    const begun = estate.clock.monotonic();
    await post('stand-open', { seconds: SECONDS });
    await estate.clock.advance(100_000);
    if (isRestarted) await restart(jump, 5_000);
    else estate.clock.jumpWall(jump);
    await estate.clock.advance(2 * SECONDS * 1_000);
    const lastEnd = Math.max(begun, ...estate.played.held.map(({ at, milliseconds }) => at + milliseconds));
    expect(lastEnd).toBeLessThanOrEqual(begun + SECONDS * 1_000 + HOLD_MS);
  });

  it('a stand-open that waits for its lock expires after 15 minutes', async () => {
    await door(true);
    estate.played.unreachable = 'the gateway is away';
    await post('stand-open', { seconds: 24 * 3_600 });
    await estate.clock.advance(MINUTE);
    estate.clock.jumpWall(jump);
    await estate.clock.advance(14 * MINUTE);
    estate.played.unreachable = undefined;
    estate.connectGateway(true);
    await estate.clock.advance(24 * HOUR);
    expect(kinds()).toEqual([]);
  });

  it('a lock is locked 5 s after its unlock, and at once after a restart', async () => {
    await door(true);
    estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    await post('unlock');
    const opened = estate.clock.monotonic();
    await estate.clock.advance(1_000);
    estate.clock.jumpWall(jump);
    await estate.clock.advance(MINUTE);
    expect(sent()).toEqual([{ kind: 'lock', at: opened + 5_000 }]);
    await post('unlock');
    await restart(jump, 2_000);
    expect(sent()).toEqual([{ kind: 'lock', at: estate.clock.monotonic() }]);
  });
});
