import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import type { Unlocked } from '../../../drivers/contract/zgate.ts';
import { CALLER, type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { measuredActuations } from '../../../test/measured.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';

const MAC = '00124b0001a2b3c4';
const CONFIRMED: Unlocked = { outcome: 'confirmed', relock: 'timedUnlock' };
const DEVICE = '80000000-0000-4000-8000-000000000008';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  id = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
  site.report(MAC, { relock: { by: 'timedUnlock', seconds: null } });
  site.played.audits.length = 0;
});

async function create(body: object): Promise<string> {
  return (await site.desk('POST', '/doors', body)).body.id as string;
}
const unlock = (door = id) => site.desk('POST', `/doors/${door}/unlock`);
const audited = () =>
  site.played.audits
    .filter(({ action }) => action === 'door.unlock')
    .map(({ outcome, detail }) => [outcome, detail]);

describe('unlocking a door with a lock', () => {
  it('has its gateway do it, between an intent and an outcome in the audit', async () => {
    let isIntended = false;
    site.played.unlock = async () => {
      isIntended = audited().length === 1;
      return CONFIRMED;
    };
    const answer = await unlock();
    expect([answer.status, answer.body]).toEqual([
      200,
      { doorId: id, outcome: 'confirmed', via: 'zigbee', reason: null },
    ]);
    expect(isIntended).toBe(true);
    expect(site.played.prepared).toEqual([{ gatewayId: GATEWAY, intents: 0 }]);
    expect(site.played.unlocks).toMatchObject([
      {
        lock: { gatewayId: GATEWAY },
        unlock: { hwId: MAC, relockSeconds: 5, pin: null, gatewayRelocks: false },
      },
    ]);
    expect(audited()).toMatchObject([
      ['accepted', { via: 'zigbee', mac: MAC }],
      ['done', { outcome: 'confirmed' }],
    ]);
  });

  it('is withdrawn when its intent cannot be stored', async () => {
    Object.assign(site.database, {
      commit: () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full')),
    });
    expect(await unlock()).toMatchObject({ status: 503, body: { error: 'STORAGE_UNAVAILABLE' } });
    expect(site.played.prepared).toHaveLength(1);
    expect(site.played.unlocks).toEqual([]);
  });

  it('sends nothing for somebody who has hung up meanwhile', async () => {
    const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test', isGone: async () => true };
    await expect(site.doors.unlock(id, caller)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(site.played.unlocks).toEqual([]);
    expect(audited()).toMatchObject([
      ['accepted', {}],
      ['failed', {}],
    ]);
  });

  it('locks for no one who has hung up meanwhile', async () => {
    const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test', isGone: async () => true };
    await expect(site.doors.lock(id, caller)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(site.played.actuated).toEqual([]);
    const locks = site.played.audits.filter(({ action }) => action === 'door.lock');
    expect(locks.map(({ outcome }) => outcome)).toEqual(['accepted', 'failed']);
  });

  it.each(['accepted', 'jammed'] as const)('says that it was %s', async (outcome) => {
    site.played.unlock = async () => ({ ...CONFIRMED, outcome });
    expect((await unlock()).body).toMatchObject({ outcome });
  });

  it.each<[DriverErrorCode, string]>([
    ['REFUSED', 'refused'],
    ['OUTCOME_UNKNOWN', 'unknown'],
    ['NO_REPLY', 'unknown'],
    ['BAD_REPLY', 'unknown'],
  ])('says after %s that it is %s', async (code, outcome) => {
    site.played.unlock = () => Promise.reject(new DriverError(code, 'because'));
    expect((await unlock()).body).toMatchObject({ outcome, reason: 'because' });
    expect(audited().at(-1)).toMatchObject([outcome, { reason: 'because' }]);
    expect(site.played.unlocks).toHaveLength(1);
  });

  it('says that it is unknown when the gateway itself failed after it was sent', async () => {
    site.played.unlock = () => Promise.reject(new TypeError('a defect'));
    expect((await unlock()).body).toMatchObject({ outcome: 'unknown' });
  });

  it.each<[DriverErrorCode, number, string]>([
    ['LINK_LOST', 503, 'DEVICE_OFFLINE'],
    ['DEVICE_OFFLINE', 503, 'DEVICE_OFFLINE'],
    ['DEADLINE_PASSED', 503, 'DEVICE_OFFLINE'],
    ['INVALID_COMMAND', 500, 'INTERNAL'],
    ['INVALID_OPTIONS', 500, 'INTERNAL'],
    ['BUSY', 422, 'QUEUE_FULL'],
  ])('says after %s that nothing was sent', async (code, status, error) => {
    site.played.unlock = () => Promise.reject(new DriverError(code, 'because'));
    expect(await unlock()).toMatchObject({ status, body: { error } });
    expect(audited().at(-1)).toMatchObject(['failed', { error }]);
  });

  it('sends nothing, and records nothing, while its gateway cannot be reached', async () => {
    site.played.unreachable = 'link zb-1 is down';
    expect(await unlock()).toMatchObject({ status: 503, body: { error: 'DEVICE_OFFLINE' } });
    expect(site.played.unlocks).toEqual([]);
    expect(audited()).toEqual([]);
  });

  it('sends nothing once the disk took so long that a sleeping lock could open late', async () => {
    const commit = site.database.commit.bind(site.database);
    Object.assign(site.database, {
      async commit(...args: Parameters<typeof commit>) {
        await site.clock.advance(2_001);
        return commit(...args);
      },
    });
    expect(await unlock()).toMatchObject({ status: 503, body: { error: 'DEVICE_OFFLINE' } });
    expect(site.played.unlocks).toEqual([]);
  });

  it('sends nothing when the gateway stood still before it read the request', async () => {
    site.played.waitedMs = 2_001;
    expect(await unlock()).toMatchObject({ status: 503, body: { error: 'DEVICE_OFFLINE' } });
    expect(audited().at(-1)).toMatchObject(['failed', { error: 'DEVICE_OFFLINE' }]);
    site.played.waitedMs = 1_500;
    expect((await unlock()).status).toBe(200);
    expect(site.played.unlocks.at(-1)?.timeoutMs).toBe(8_500);
  });

  it('gives the gateway at least the time for which a parent may hold the frame', async () => {
    await unlock();
    expect(site.played.unlocks[0]?.timeoutMs).toBeGreaterThanOrEqual(8_000);
    expect(site.played.unlocks[0]?.timeoutMs).toBeLessThanOrEqual(10_000);
  });

  it('is refused while another is under way at the door, and possible again after it', async () => {
    const { promise, resolve } = Promise.withResolvers<Unlocked>();
    site.played.unlock = () => promise;
    const first = unlock();
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    expect(await unlock()).toMatchObject({ status: 409, body: { error: 'IN_PROGRESS' } });
    resolve(CONFIRMED);
    expect((await first).status).toBe(200);
    expect((await unlock()).status).toBe(200);
    expect(site.played.unlocks).toHaveLength(2);
  });

  it('says what happened also when its outcome cannot be stored', async () => {
    site.played.unlock = async () => {
      Object.assign(site.database, {
        commit: () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full')),
      });
      return CONFIRMED;
    };
    expect(await unlock()).toMatchObject({ status: 200, body: { outcome: 'confirmed' } });
  });
});

it('is measured from the request on, by way and outcome', async () => {
  site.played.unlock = async () => {
    await site.clock.advance(2_000);
    return CONFIRMED;
  };
  const arrivedAt = site.clock.monotonic();
  await site.clock.advance(500);
  await site.doors.unlock(id, { principal: LOCAL_ADMINISTRATOR, correlationId: 'test', arrivedAt });
  const played: [DriverErrorCode, number][] = [
    ['NO_REPLY', 200],
    ['REFUSED', 200],
    ['DEVICE_OFFLINE', 503],
  ];
  for (const [code, status] of played) {
    site.played.unlock = () => Promise.reject(new DriverError(code, 'no'));
    expect((await unlock()).status).toBe(status);
  }
  const relayed = await create({});
  site.played.relays.set(relayed, playedRelay(DEVICE));
  expect((await unlock(relayed)).status).toBe(200);
  await site.desk('POST', `/doors/${id}/lock`);
  // Nothing was sent, so nothing is measured: the answer is among the requests.
  expect((await unlock(await create({}))).status).toBe(409);
  expect(measuredActuations(site.meters)).toMatchObject({
    'door.unlock zigbee done': { count: 1, sum: 2.5 },
    'door.unlock zigbee unknown': { count: 1 },
    'door.unlock zigbee refused': { count: 1 },
    'door.unlock zigbee failed': { count: 1 },
    'door.unlock rs485 done': { count: 1 },
    'door.lock zigbee done': { count: 1 },
  });
});

describe('the last unlock in …/state', () => {
  const last = async () => (await site.desk('GET', `/doors/${id}/state`)).body.lastUnlock;

  it('is null, then under way, then what became of it', async () => {
    expect(await last()).toBeNull();
    const { promise, resolve } = Promise.withResolvers<Unlocked>();
    site.played.unlock = () => promise;
    const answer = unlock();
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    expect(await last()).toMatchObject({ by: CALLER, via: 'zigbee', outcome: null, reason: null });
    resolve({ ...CONFIRMED, outcome: 'jammed' });
    await answer;
    expect(await last()).toMatchObject({ outcome: 'jammed' });
  });

  it('says that nothing was sent, and why', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('LINK_LOST', 'the stick is gone'));
    await unlock();
    const reason = expect.stringContaining('the stick is gone');
    expect(await last()).toMatchObject({ outcome: 'failed', reason });
  });

  it('is unknown, once and for all, when the gateway was stopped meanwhile', async () => {
    site.played.unlock = () => new Promise(() => {});
    void unlock();
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    const intended = site.played.audits.at(-1);
    const reason = 'the gateway was stopped before the outcome was known';
    site = await openDoorSite(site.database);
    expect(site.played.audits).toEqual([
      {
        ...intended,
        principal: { id: CALLER, label: 'front-desk-admin' },
        outcome: 'unknown',
        detail: { ...intended?.detail, outcome: 'unknown', reason },
      },
    ]);
    expect(await last()).toMatchObject({ via: 'zigbee', outcome: 'unknown', reason });
    site = await openDoorSite(site.database);
    expect(site.played.audits).toEqual([]);
    expect(await last()).toMatchObject({ outcome: 'unknown', reason });
  });

  it('is unknown, and settled before the next, when its outcome could not be stored', async () => {
    const { commit } = site.database;
    site.played.unlock = async () => {
      Object.assign(site.database, {
        commit: () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full')),
      });
      return CONFIRMED;
    };
    await unlock();
    expect(await last()).toMatchObject({ outcome: 'unknown' });
    Object.assign(site.database, { commit });
    site.played.unlock = async () => ({ ...CONFIRMED, outcome: 'accepted' });
    await unlock();
    expect(audited().map(([outcome]) => outcome)).toEqual(['accepted', 'unknown', 'accepted', 'done']);
    expect(await last()).toMatchObject({ outcome: 'accepted' });
  });
});

describe('unlocking a door on a relay', () => {
  beforeEach(() => site.played.relays.set(id, playedRelay(DEVICE)));

  it('fires the relay, and not the lock', async () => {
    expect((await unlock()).body).toMatchObject({ outcome: 'confirmed', via: 'rs485' });
    expect([site.played.pulses, site.played.unlocks]).toEqual([[DEVICE], []]);
    expect(audited()).toMatchObject([
      ['accepted', { deviceId: DEVICE }],
      ['done', { via: 'rs485' }],
    ]);
  });

  it('says what the relay says', async () => {
    site.played.pulse = async () => ({ outcome: 'unknown' });
    expect((await unlock()).body).toMatchObject({ outcome: 'unknown' });
    site.played.pulse = () => Promise.reject(new GatehouseError('NO_RELAY', 'none'));
    expect(await unlock()).toMatchObject({ status: 409, body: { error: 'NO_RELAY' } });
    expect(audited().at(-1)).toMatchObject(['failed', { error: 'NO_RELAY' }]);
  });
});

it('a door with neither is not unlocked, nor is one that does not exist', async () => {
  expect(await unlock(await create({}))).toMatchObject({ status: 409, body: { error: 'NO_LOCK' } });
  expect(await unlock(DEVICE)).toMatchObject({ status: 404 });
});

describe('unlocking with an Idempotency-Key', () => {
  const keyed = () => site.desk('POST', `/doors/${id}/unlock`, undefined, { 'idempotency-key': 'k1' });

  it('is answered as the first time when it is repeated, and fires once', async () => {
    site.played.unlock = async () => CONFIRMED;
    const first = await keyed();
    const second = await keyed();
    expect([first.status, second.status, second.body]).toEqual([200, 200, first.body]);
    expect(site.played.unlocks).toHaveLength(1);
  });

  it('is joined while the first one is under way', async () => {
    const held = Promise.withResolvers<Unlocked>();
    site.played.unlock = () => held.promise;
    const both = [keyed(), keyed()];
    held.resolve(CONFIRMED);
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
    expect(site.played.unlocks).toHaveLength(1);
  });

  it('never fires after a gateway that was killed between firing and answering', async () => {
    const fired = Promise.withResolvers<void>();
    site.played.unlock = () => {
      fired.resolve();
      return new Promise(() => {});
    };
    void keyed();
    await fired.promise;
    const restarted = await openDoorSite(site.database);
    const again = await restarted.desk('POST', `/doors/${id}/unlock`, undefined, { 'idempotency-key': 'k1' });
    expect(again).toMatchObject({ status: 409, body: { error: 'OUTCOME_UNKNOWN' } });
    expect(restarted.played.unlocks).toEqual([]);
    expect(restarted.played.audits).toMatchObject([{ action: 'door.unlock', outcome: 'unknown' }]);
  });
});
