/** Doors on a relay that stand open: begun, renewed, ended and lost, and held by pulses that end by themselves. */
import { beforeEach, describe, expect, it } from 'vitest';
import { HOLD_MS } from '../../../drivers/contract/rs485.ts';
import { type DoorSite, openDoorSite, openRelayDoor, playedRelay } from '../../../test/door-site.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { RENEW_EVERY_MS } from './relay-hold.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const OTHER = '90000000-0000-4000-8000-000000000009';
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const away = () => Promise.reject(new GatehouseError('DEVICE_OFFLINE', 'it does not answer'));

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  ({ site, id, end } = await openRelayDoor(playedRelay(DEVICE)));
});

const put = (body: object) => site.desk('PUT', `/doors/${id}`, body);
const stand = (body: object = { seconds: 3_600 }) => site.desk('POST', `/doors/${id}/stand-open`, body);
const remove = () => site.desk('DELETE', `/doors/${id}/stand-open`);
const pulses = () => site.played.held.length;
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body.standingOpen;
const CHANGES = ['begun', 'lost', 'ending', 'ended', 'expired'];
/** What was audited and published, which is the same. */
function recorded() {
  const audited = site.played.audits.filter(
    ({ action, outcome }) => action === 'door.stand-open' && CHANGES.includes(outcome),
  );
  const published = site.played.published.filter(({ type }) => type === 'gatehouse.door.standing-open.v1');
  expect(published.map(({ data }) => data.change)).toEqual(audited.map(({ outcome }) => outcome));
  return published.map(({ data: { change, reason } }) => (reason === null ? change : `${change}: ${reason}`));
}

it('the permission alone holds nothing', async () => {
  await site.applyAll();
  await site.clock.advance(20 * MINUTE);
  expect([pulses(), await state(), recorded()]).toEqual([0, null, []]);
});

describe('a door on a relay that is to stand open', () => {
  it('is held at once, and renewed well before each pulse is over', async () => {
    expect((await stand()).body).toMatchObject({ outcome: 'confirmed', standingOpen: { via: 'rs485' } });
    expect(site.played.held).toEqual([
      {
        deviceId: DEVICE,
        bus: 'b',
        hwId: 'IO-80000000',
        relayIndex: 0,
        milliseconds: HOLD_MS,
        timeoutMs: expect.any(Number),
        at: 0,
      },
    ]);
    const { timeoutMs = 0 } = site.played.held[0] ?? {};
    expect(timeoutMs).toBeLessThan(RENEW_EVERY_MS);
    expect(2 * RENEW_EVERY_MS).toBeLessThan(HOLD_MS);
    const since = new Date(START).toISOString();
    expect(await state()).toMatchObject({ state: 'open', on: true, since, failure: null });
    await site.clock.advance(3 * RENEW_EVERY_MS);
    expect(site.played.held.map(({ at }) => at)).toEqual([0, 8_000, 16_000, 24_000]);
    expect(await state()).toMatchObject({ on: true, since, failure: null });
    expect(recorded()).toEqual(['begun']);
  });

  it('ends at its time, by nothing being sent', async () => {
    await stand({ seconds: 60 });
    await site.clock.advance(MINUTE);
    const before = pulses();
    await site.clock.advance(MINUTE);
    expect([pulses(), await state(), recorded()]).toEqual([
      before,
      null,
      ['begun', 'ended: its time is over'],
    ]);
  });

  it('ends when somebody wants that, also by locking it', async () => {
    await stand();
    expect((await remove()).body).toMatchObject({ outcome: 'accepted', standingOpen: null });
    await stand();
    expect((await site.desk('POST', `/doors/${id}/lock`)).body).toMatchObject({
      outcome: 'accepted',
      via: 'rs485',
    });
    const before = pulses();
    await site.clock.advance(MINUTE);
    expect([pulses(), await state()]).toEqual([before, null]);
    expect(recorded()).toEqual([
      ...['begun', 'ended: ended by request'],
      ...['begun', 'ended: the door was locked'],
    ]);
    expect(await site.desk('POST', `/doors/${id}/lock`)).toMatchObject({ body: { error: 'NO_LOCK' } });
  });

  it('has a renewal that is on its way called off with it', async () => {
    await stand();
    const stopped = Promise.withResolvers<void>();
    site.played.hold = (signal) => {
      signal.addEventListener('abort', () => stopped.resolve());
      return stopped.promise.then(away);
    };
    await site.clock.advance(RENEW_EVERY_MS);
    await remove();
    await stopped.promise;
    await site.clock.advance(MINUTE);
    expect([pulses(), recorded()]).toEqual([2, ['begun', 'ended: ended by request']]);
  });

  it.each<[string, () => unknown]>([
    ['no RS-485 device opens the door', () => site.played.relays.clear()],
    ['another device opens the door now', () => site.played.relays.set(id, playedRelay(OTHER))],
    ['its standOpenEnabled is false', () => put({ standOpenEnabled: false })],
  ])('ends because %s', async (reason, lose) => {
    await stand();
    await lose();
    site.doors.wake(id);
    await site.clock.advance(MINUTE);
    expect([pulses(), await state(), recorded()]).toEqual([1, null, ['begun', `ended: ${reason}`]]);
  });

  it('does not keep an unlock from firing', async () => {
    await stand();
    expect((await site.desk('POST', `/doors/${id}/unlock`)).body).toMatchObject({ outcome: 'confirmed' });
    expect(site.played.pulses).toEqual([DEVICE]);
    await site.clock.advance(RENEW_EVERY_MS);
    expect(pulses()).toBe(2);
  });
});

it('a relay whose watchdog no one proved is not held: it is refused, and nothing waits', async () => {
  const message = 'run: gatehouse bus watchdog-test io-1';
  const unproven = new GatehouseError('WATCHDOG_NOT_PROVEN', message);
  site.played.assertRelayProven = () => {
    throw unproven;
  };
  const { status, body } = await stand();
  expect([status, body.error, body.message]).toEqual([409, 'WATCHDOG_NOT_PROVEN', message]);
  expect([pulses(), await state(), recorded()]).toEqual([0, null, []]);
});

describe.each([
  ['its watchdog counts as not proven any more', 'WATCHDOG_NOT_PROVEN'],
  ['its watchdog is being tested', 'IN_PROGRESS'],
] as const)('a relay is held no more when %s', (_, code) => {
  const message = 'the words of the refusal';
  const refuse = () => {
    site.played.assertRelayProven = () => {
      throw new GatehouseError(code, message);
    };
  };

  it('and a door that stood open ends', async () => {
    await stand();
    refuse();
    await site.clock.advance(RENEW_EVERY_MS);
    expect([pulses(), await state(), recorded()]).toEqual([1, null, ['begun', `ended: ${message}`]]);
    site.played.assertRelayProven = () => undefined;
    await site.clock.advance(MINUTE);
    expect(pulses()).toBe(1);
  });

  it('and one that waited for its device expires', async () => {
    site.played.hold = away;
    await stand();
    refuse();
    await site.clock.advance(RENEW_EVERY_MS);
    expect([pulses(), await state(), recorded()]).toEqual([1, null, [`expired: ${message}`]]);
  });
});

it('a relay without settings in force for a while is tried on', async () => {
  await stand();
  site.played.assertRelayProven = () => {
    throw new GatehouseError('NO_RELAY', 'its settings are on their way');
  };
  await site.clock.advance(RENEW_EVERY_MS);
  expect([pulses(), recorded()]).toEqual([2, ['begun']]);
});

describe('DELETE of a door on a relay', () => {
  const LETS_GO = 'the gateway does not renew the relay pulse any more, and the relay opens within 20 s';
  const NOTHING = 'the door did not stand open: there was nothing to end';
  const ended = async () => {
    const { outcome, reason, standingOpen } = (await remove()).body;
    expect(standingOpen).toBeNull();
    return [outcome, reason];
  };

  it('is accepted until the last pulse is over, and says afterwards that nothing stood open', async () => {
    await stand();
    expect(await ended()).toEqual(['accepted', LETS_GO]);
    await site.clock.advance(HOLD_MS - 1);
    expect(await ended()).toEqual(['accepted', LETS_GO]);
    await site.clock.advance(1);
    expect(await ended()).toEqual(['confirmed', NOTHING]);
  });

  it('is accepted also where nothing confirmed the last pulse', async () => {
    site.played.hold = async () => ({ outcome: 'unknown' });
    await stand();
    expect(await ended()).toEqual(['accepted', LETS_GO]);
    await site.clock.advance(HOLD_MS);
    expect(await ended()).toEqual(['confirmed', NOTHING]);
  });

  it('says that it never began, and records no end', async () => {
    site.played.hold = away;
    expect((await stand()).body).toMatchObject({ outcome: 'waiting' });
    const reason = 'the door did not stand open yet: the waiting request was withdrawn';
    expect(await ended()).toEqual(['confirmed', reason]);
    expect(recorded()).toEqual(['expired: ended by request']);
  });

  it('is accepted after a restart too, while the pulse of the former run may go on', async () => {
    await stand();
    await end();
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.played.relays.set(id, playedRelay(DEVICE));
    expect(await ended()).toEqual(['accepted', LETS_GO]);
    await site.clock.advance(HOLD_MS);
    expect(await ended()).toEqual(['confirmed', NOTHING]);
  });
});

describe('a renewal that fails', () => {
  it('shows in the state; the second in a row is recorded once as lost, and the door is tried on', async () => {
    await stand();
    site.played.hold = away;
    await site.clock.advance(RENEW_EVERY_MS);
    const failure = { code: 'DEVICE_OFFLINE', message: 'it does not answer' };
    expect(await state()).toMatchObject({ on: true, since: expect.any(String), failure });
    expect(recorded()).toEqual(['begun']);
    await site.clock.advance(5 * RENEW_EVERY_MS);
    expect([pulses(), recorded()]).toEqual([7, ['begun', 'lost: it does not answer']]);
    expect(await state()).toMatchObject({ state: 'lost', on: false, since: null, failure });
    site.played.hold = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(RENEW_EVERY_MS);
    expect(recorded()).toEqual(['begun', 'lost: it does not answer', 'begun']);
    expect(await state()).toMatchObject({ on: true, failure: null });
  });

  it('once is not recorded', async () => {
    await stand();
    for (const hold of [away, async () => ({ outcome: 'confirmed' }) as const, away]) {
      site.played.hold = hold;
      await site.clock.advance(RENEW_EVERY_MS);
    }
    expect(recorded()).toEqual(['begun']);
  });

  it('is one whose outcome no one knows, or that broke here, too: it was sent, and is given up after 15 minutes', async () => {
    site.played.hold = async () => ({ outcome: 'unknown' });
    const reason = 'the command to close the relay was sent, and the device did not confirm it';
    expect((await stand()).body).toMatchObject({
      outcome: 'unknown',
      reason,
      standingOpen: { state: 'sent', on: false, expiresAt: expect.any(String) },
    });
    const audited = site.played.audits.filter(({ action }) => action === 'door.stand-open');
    expect(audited.map(({ outcome }) => outcome)).toEqual(['accepted', 'unknown']);
    const failure = { code: 'OUTCOME_UNKNOWN', message: reason };
    expect(await state()).toMatchObject({ state: 'sent', on: false, failure });
    site.played.hold = () => Promise.reject(new Error('secret detail'));
    await site.clock.advance(RENEW_EVERY_MS);
    const message = 'the gateway itself failed; its log says why';
    expect(await state()).toMatchObject({ on: false, failure: { code: 'INTERNAL', message } });
    await site.clock.advance(15 * MINUTE);
    expect([await state(), recorded()]).toEqual([null, [`ended: ${message}`]]);
    const before = pulses();
    await site.clock.advance(MINUTE);
    expect(pulses()).toBe(before);
  });

  it('of the first pulse, of which no one knows whether it was sent, is given up at a restart, and never begins', async () => {
    site.played.hold = async () => ({ outcome: 'unknown' });
    await stand();
    await end();
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.played.relays.set(id, playedRelay(DEVICE));
    end = site.run();
    await site.clock.advance(RENEW_EVERY_MS);
    expect([await state(), pulses()]).toEqual([null, 0]);
    expect(recorded()).toEqual([expect.stringMatching(/^ended: the gateway was restarted/)]);
    const { error, message } = (await site.desk('POST', `/doors/${id}/lock`)).body;
    expect([error, message]).toEqual(['NO_LOCK', expect.stringContaining('within 20 s')]);
  });

  it('that is ended while its first pulse is under way has an end, as it may have been sent', async () => {
    site.played.hold = () => new Promise(() => {});
    const answer = stand();
    await expect.poll(pulses).toBe(1);
    const removed = remove();
    await site.clock.advance(2_000);
    expect((await removed).body).toMatchObject({ outcome: 'accepted' });
    expect(recorded()).toEqual(['ended: ended by request']);
    void answer;
  });

  it('goes on, unrecorded, while the disk takes nothing', async () => {
    const { commit } = site.database;
    await stand();
    site.database.commit = () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full'));
    await site.clock.advance(RENEW_EVERY_MS);
    site.database.commit = commit;
    expect([pulses(), recorded()]).toEqual([2, ['begun']]);
  });
});

describe('what the device reports of its relay', () => {
  const report = async (isClosed: boolean) => {
    site.doors.standOpen.relayReported(id, playedRelay(DEVICE), isClosed);
    await site.clock.advance(0);
  };
  const LOST =
    'the device reports that its relay is open; the gateway closes it again at the next renewal, within 8 s';
  const failure = { code: 'REPORTED_OPEN', message: LOST };

  it('ends that the door counts as open at once, and the next renewal closes it again', async () => {
    await stand();
    await report(true);
    await report(false);
    expect(await state()).toMatchObject({ state: 'lost', on: false, since: null, failure });
    expect((await stand()).body).toMatchObject({ outcome: 'waiting', reason: LOST });
    expect(pulses()).toBe(1);
    await site.clock.advance(RENEW_EVERY_MS);
    const since = new Date(site.clock.now()).toISOString();
    expect(await state()).toMatchObject({ state: 'open', on: true, since, failure: null });
    expect([pulses(), recorded()]).toEqual([2, ['begun', `lost: ${LOST}`, 'begun']]);
  });

  it('from before a pulse does not count; of a relay that is never reported closed it counts in the end', async () => {
    await stand();
    await report(false);
    expect(await state()).toMatchObject({ state: 'open', on: true });
    await site.clock.advance(6_000);
    await report(false);
    expect(await state()).toMatchObject({ state: 'lost', on: false, failure });
  });

  it('shows that a pulse of unknown outcome has closed it', async () => {
    site.played.hold = async () => ({ outcome: 'unknown' });
    await stand();
    await report(true);
    expect(await state()).toMatchObject({ state: 'open', on: true, failure: null });
    await site.clock.advance(RENEW_EVERY_MS);
    await report(false);
    expect(await state()).toMatchObject({ state: 'lost', on: false });
    await report(true);
    expect(await state()).toMatchObject({ on: false });
  });

  it('means nothing at a door that is not to stand open', async () => {
    await report(true);
    await report(false);
    expect([await state(), recorded()]).toEqual([null, []]);
  });

  it('counts also when a request for another end is being stored', async () => {
    await stand();
    await report(true);
    const { commit } = site.database;
    site.database.commit = (job, urgency) => {
      site.database.commit = commit;
      site.doors.standOpen.relayReported(id, playedRelay(DEVICE), false);
      return commit(job, urgency);
    };
    expect((await stand()).body).toMatchObject({ outcome: 'unknown', reason: LOST });
    await site.clock.advance(0);
    expect(await state()).toMatchObject({ state: 'lost', on: false, failure });
  });
});

it('after a restart what stood open goes on until its time', async () => {
  await stand({ seconds: 600 });
  await end();
  const before = pulses();
  await site.clock.advance(MINUTE);
  expect([before, pulses(), recorded()]).toEqual([1, 1, ['begun']]);
  site = await openDoorSite(site.database, { now: site.clock.now() });
  site.played.relays.set(id, playedRelay(DEVICE));
  const interrupted = 'lost: the gateway was restarted, and has not closed the relay again yet';
  expect(await state()).toMatchObject({ state: 'lost', on: false, since: null });
  site.played.hold = away;
  site.run();
  await site.clock.advance(0);
  expect(await state()).toMatchObject({ state: 'lost', on: false, since: null });
  expect(recorded()).toEqual([interrupted]);
  site.played.hold = async () => ({ outcome: 'confirmed' });
  await site.clock.advance(RENEW_EVERY_MS);
  const since = new Date(site.clock.now()).toISOString();
  expect(await state()).toMatchObject({ state: 'open', on: true, since });
  expect([pulses(), recorded()]).toEqual([2, [interrupted, 'begun']]);
  await site.clock.advance(10 * MINUTE);
  expect([await state(), recorded()]).toEqual([null, [interrupted, 'begun', 'ended: its time is over']]);
});
