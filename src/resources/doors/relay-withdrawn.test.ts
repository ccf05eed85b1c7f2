/** A stand-open that is withdrawn while its first pulse is on its way: what is answered and audited is what the relay did. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, openRelayDoor, playedRelay } from '../../../test/door-site.ts';
import { GatehouseError } from '../../platform/errors.ts';

const RELAY = playedRelay('80000000-0000-4000-8000-000000000008');
const CHANGED = 'the relayIndex of the device was changed from 0 to 3';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openRelayDoor(RELAY));
});

const stand = () => site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
const audited = () =>
  site.played.audits.filter(({ action }) => action === 'door.stand-open').map(({ outcome }) => outcome);

type Settle = 'confirmed' | 'unknown' | 'nothing was sent';

/** A pulse that settles so once it is withdrawn, or when `settle` says. */
function playPulse(how: Settle) {
  const { promise, resolve, reject } = Promise.withResolvers<{ outcome: 'confirmed' | 'unknown' }>();
  const settle = () => {
    if (how === 'nothing was sent')
      reject(new GatehouseError('NO_RELAY', 'Nothing was fired: it was changed.'));
    else resolve({ outcome: how });
  };
  site.played.hold = (signal) => {
    signal.addEventListener('abort', settle, { once: true });
    return promise;
  };
  return settle;
}

function changeRelay(): void {
  site.played.relays.set(id, { ...RELAY, relayIndex: 3 });
}

const WITHDRAWN: [string, () => unknown, string][] = [
  ['DELETE', () => site.desk('DELETE', `/doors/${id}/stand-open`), 'ended by request'],
  ['POST …/lock', () => site.desk('POST', `/doors/${id}/lock`), 'the door was locked'],
  [
    'another relay',
    () => {
      changeRelay();
      site.doors.wake(id);
    },
    CHANGED,
  ],
  [
    'another device',
    () => {
      site.played.relays.set(id, playedRelay('80000000-0000-4000-8000-000000000009'));
      site.doors.wake(id);
    },
    'another device opens the door now',
  ],
  [
    'a device that is gone',
    () => {
      site.played.relays.clear();
      site.doors.wake(id);
    },
    'no RS-485 device opens the door',
  ],
  ['the permission', () => site.desk('PUT', `/doors/${id}`, { standOpenEnabled: false }), 'standOpenEnabled'],
];

describe.each(WITHDRAWN)('by %s', (_name, withdraw, reason) => {
  it.each<[Settle, object, string[]]>([
    ['confirmed', { status: 200, body: { outcome: 'confirmed' } }, ['begun', 'done', 'ended']],
    ['unknown', { status: 200, body: { outcome: 'unknown' } }, ['ended', 'unknown']],
    ['nothing was sent', { status: 503, body: { error: 'DEVICE_OFFLINE' } }, ['expired', 'failed']],
  ])('%s', async (how, answer, outcomes) => {
    playPulse(how);
    const answered = stand();
    await expect.poll(() => site.played.held.length).toBe(1);
    const withdrawn = withdraw();
    await site.clock.advance(10);
    await withdrawn;
    const { status, body } = await answered;
    expect({ status, body }).toMatchObject(answer);
    if (how === 'nothing was sent') expect(body.message).toContain(reason);
    await site.clock.advance(1_000);
    expect(
      audited()
        .filter((one) => one !== 'accepted')
        .toSorted(),
    ).toEqual(outcomes);
    expect((await site.desk('GET', `/doors/${id}/state`)).body.standingOpen).toBeNull();
  });
});

it('by the device, before the door knows of the change: nothing waits for the former relay', async () => {
  const settle = playPulse('nothing was sent');
  const answered = stand();
  await expect.poll(() => site.played.held.length).toBe(1);
  changeRelay();
  settle();
  const { status, body } = await answered;
  expect([status, body.error, body.message]).toEqual([
    503,
    'DEVICE_OFFLINE',
    expect.stringContaining(CHANGED),
  ]);
  expect(audited()).toEqual(['accepted', 'expired', 'failed']);
});

it('after its pulse was confirmed, and before the answer: it stood open, and has ended', async () => {
  const settle = playPulse('confirmed');
  const { commit } = site.database;
  const answered = stand();
  await expect.poll(() => site.played.held.length).toBe(1);
  // What comes of the pulse is stored as slowly as a disk may be.
  const { promise: stored, resolve } = Promise.withResolvers<void>();
  site.database.commit = (...job) => stored.then(() => commit(...job));
  settle();
  await site.clock.advance(0);
  changeRelay();
  site.doors.wake(id);
  await site.clock.advance(0);
  site.database.commit = commit;
  resolve();
  expect((await answered).body).toMatchObject({ outcome: 'confirmed' });
  await site.clock.advance(1_000);
  expect(
    audited()
      .filter((one) => one !== 'accepted')
      .toSorted(),
  ).toEqual(['begun', 'done', 'ended']);
});
