/** Firing a relay: what is sent, audited and answered. */
import { describe, expect, it } from 'vitest';
import { DriverError, type DriverErrorCode, type Plain } from '../../../drivers/contract/driver.ts';
import type { Pulse } from '../../../drivers/contract/rs485.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { heldCommits } from '../../../test/held-commits.ts';
import { measuredActuations } from '../../../test/measured.ts';
import { A, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';

const IN_FORCE = {
  ioPins: NO_PINS,
  relayIndex: 2,
  unlockDurationMilliseconds: 1_250,
  useInputPinMemory: false,
};
/** A device that is there with its settings in force. */
async function ready(settings: Record<string, unknown> = IN_FORCE, database?: Database) {
  const bed = await openTestbed(database);
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', doorId: DOOR, ...settings });
  bed.report('io-1', { reportedSettingsVersion: 1, settings: { ...IN_FORCE, ...settings } });
  bed.answer((data) => {
    const { relay, milliseconds } = data as unknown as Pulse;
    return { relay, milliseconds: Math.ceil(milliseconds / 100) * 100, timedBy: 'device' };
  });
  return bed;
}
const pulses = (bed: Awaited<ReturnType<typeof ready>>) =>
  bed.commands.filter(({ kind }) => kind === 'pulse');
const outcomes = (bed: Awaited<ReturnType<typeof ready>>) => bed.audits.map(({ outcome }) => outcome);

describe('a pulse', () => {
  it('fires the relay in force for the time in force, with an intent before and an outcome after', async () => {
    const bed = await ready();
    bed.answer(() => {
      expect(outcomes(bed)).toEqual(['accepted']);
      return { relay: 2, milliseconds: 1_300, timedBy: 'device' };
    });
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body]).toEqual([
      200,
      { relay: 2, milliseconds: 1_300, outcome: 'confirmed', timedBy: 'device' },
    ]);
    expect(pulses(bed)).toMatchObject([
      { link: 'bus-1', data: { hwId: 'io-1', relay: 2, milliseconds: 1_250, settingsVersion: 1 } },
    ]);
    expect(bed.audits).toMatchObject([
      {
        action: 'rs485.pulse',
        object: `rs485/${A}`,
        outcome: 'accepted',
        detail: { relay: 2, milliseconds: 1_250, doorId: DOOR },
      },
      { action: 'rs485.pulse', outcome: 'done', detail: body },
    ]);
    expect(bed.audits[0]?.correlationId).toBe(bed.audits[1]?.correlationId);
  });

  it('is measured, by its outcome', async () => {
    const bed = await ready();
    const fired = bed.post(`/${A}/pulse`);
    expect((await fired).status).toBe(200);
    const faults: DriverErrorCode[] = ['OUTCOME_UNKNOWN', 'DEVICE_OFFLINE'];
    for (const code of faults) {
      bed.answer(() => Promise.reject(new DriverError(code, 'no')));
      await bed.post(`/${A}/pulse`);
    }
    expect(measuredActuations(bed.meters)).toMatchObject({
      'rs485.pulse rs485 done': { count: 1 },
      'rs485.pulse rs485 unknown': { count: 1 },
      'rs485.pulse rs485 failed': { count: 1 },
    });
  });

  it('is said to be unknown at the next start, once, when the gateway was stopped meanwhile', async () => {
    const bed = await ready();
    bed.answer(() => new Promise(() => {}));
    void bed.post(`/${A}/pulse`);
    await expect.poll(() => pulses(bed).length).toBe(1);
    const [intent] = bed.audits;
    const reason = 'the gateway was stopped before the outcome was known';
    const again = await openTestbed(bed.database);
    expect(again.audits).toEqual([
      {
        ...intent,
        principal: { id: intent?.principal.id, label: intent?.principal.label },
        outcome: 'unknown',
        detail: { ...intent?.detail, outcome: 'unknown', reason },
      },
    ]);
    expect(again.rs485.state(A).lastPulse).toMatchObject({
      by: intent?.principal.id,
      relay: 2,
      outcome: 'unknown',
      reason,
    });
    expect((await openTestbed(bed.database)).audits).toEqual([]);
  });

  it('goes by what the device has, while other settings are on their way', async () => {
    const bed = await ready();
    await bed.put(A, { relayIndex: 5, unlockDurationMilliseconds: 9_000 });
    await bed.post(`/${A}/pulse`);
    expect(pulses(bed)).toMatchObject([{ data: { relay: 2, milliseconds: 1_250, settingsVersion: 1 } }]);
  });

  it('is withdrawn when the client hangs up while it waits for its turn on the bus', async () => {
    const bed = await ready();
    const client = new AbortController();
    bed.answer(async (_data, _kind, signal) => {
      const withdrawn = new Promise((resolve) => signal.addEventListener('abort', resolve));
      client.abort(new Error('the connection was closed'));
      await withdrawn;
      throw new DriverError('DEADLINE_PASSED', 'it was withdrawn');
    });
    const caller = { ...bed.caller, hungUp: client.signal };
    await expect(bed.rs485.pulse(A, caller)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(outcomes(bed)).toEqual(['accepted', 'failed']);
    // Nothing is handed over for a client that is gone already.
    bed.answer((_data, _kind, signal) => signal.throwIfAborted() ?? null);
    await expect(bed.rs485.pulse(A, caller)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(outcomes(bed)).toEqual(['accepted', 'failed', 'accepted', 'failed']);
  });

  it('has its deadline 5 s after the request, however long the look for a hang-up takes', async () => {
    const bed = await ready();
    const waiting = (milliseconds: number) => async () => {
      await bed.clock.advance(milliseconds);
      return false;
    };
    await bed.rs485.pulse(A, { ...bed.caller, isGone: waiting(1_000) });
    expect(pulses(bed)).toMatchObject([{ timeoutMs: 4_000 }]);
    await expect(bed.rs485.pulse(A, { ...bed.caller, isGone: waiting(5_000) })).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    expect(pulses(bed)).toHaveLength(1);
  });

  it('is not fired for somebody who has hung up meanwhile', async () => {
    const bed = await ready();
    const isGone = async () => outcomes(bed).length > 0;
    await expect(bed.rs485.pulse(A, { ...bed.caller, isGone })).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    expect([pulses(bed), outcomes(bed)]).toEqual([[], ['accepted', 'failed']]);
  });

  it('takes 5 s where no one named a time', async () => {
    const bed = await ready({ relayIndex: 0, unlockDurationMilliseconds: null });
    await bed.post(`/${A}/pulse`);
    expect(pulses(bed)).toMatchObject([{ data: { relay: 0, milliseconds: 5_000 } }]);
  });

  it.each<[string, DriverErrorCode | Plain]>([
    ['no one knows', 'OUTCOME_UNKNOWN'],
    ['no reply came', 'NO_REPLY'],
    ['nonsense came back', 'BAD_REPLY'],
    ['the driver answered nonsense', { relay: 'two' }],
  ])('is said to be unknown when %s, and is not sent again', async (_name, answer) => {
    const bed = await ready();
    bed.run();
    bed.answer(typeof answer === 'string' ? (answer as DriverErrorCode) : () => answer);
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body]).toEqual([
      200,
      { relay: 2, milliseconds: 1_250, outcome: 'unknown', timedBy: null },
    ]);
    await bed.clock.advance(600_000);
    expect(pulses(bed)).toHaveLength(1);
    expect(outcomes(bed)).toEqual(['accepted', 'unknown']);
  });

  it.each<[DriverErrorCode, string]>([
    ['LINK_LOST', '503 DEVICE_OFFLINE'],
    ['DEVICE_OFFLINE', '503 DEVICE_OFFLINE'],
    ['DEADLINE_PASSED', '503 DEVICE_OFFLINE'],
    ['BUSY', '422 QUEUE_FULL'],
    ['REFUSED', '409 NO_RELAY'],
    ['INVALID_COMMAND', '500 INTERNAL'],
    ['INVALID_OPTIONS', '500 INTERNAL'],
  ])('that ended %s was not fired, and says so', async (code, answer) => {
    const bed = await ready();
    bed.answer(code);
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect(`${status} ${body.error}`).toBe(answer);
    expect(bed.audits).toMatchObject([
      { outcome: 'accepted' },
      { outcome: 'failed', detail: { error: body.error } },
    ]);
  });

  it('is not sent at all to a device that is away', async () => {
    const bed = await ready();
    bed.report('io-1', { connected: false, reportedSettingsVersion: 1, settings: IN_FORCE });
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error]).toEqual([503, 'DEVICE_OFFLINE']);
    expect([pulses(bed), bed.audits]).toEqual([[], []]);
  });

  it.each<[string, Partial<Rs485Report>, string]>([
    ['refuses its key', { sessionFault: 'wrongKey' }, 'refuses the key that is stored for it'],
    ['was reset', { sessionFault: 'downgrade' }, 'as after a reset'],
    ['wants a secure channel', { sessionFault: 'securityRequired' }, 'requires a secure channel'],
    ['shares its address', { sessionFault: 'duplicateAddress' }, 'Disconnect one of the two'],
    ['has no key', { security: 'unpaired' }, 'gatehouse osdp pair bus-1 7'],
  ])(
    'of a device that %s is refused with what to do, whatever else is known of it',
    async (_name, reported, what) => {
      const bed = await ready();
      bed.report('io-1', { connected: false, settings: null, address: 7, security: 'none', ...reported });
      const { status, body } = await bed.post(`/${A}/pulse`);
      expect([status, body.error]).toEqual([503, 'DEVICE_OFFLINE']);
      expect(body.message).toContain(what);
      expect(body.message).not.toMatch(/does not answer|power/);
      const { sessionFault } = (await bed.get(`/${A}/state`)).body;
      expect(sessionFault).toBe(reported.sessionFault ?? null);
      expect([pulses(bed), bed.audits]).toEqual([[], []]);
    },
  );

  it('says that the bus is down rather than what the device said before', async () => {
    const bed = await openTestbed();
    await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-2', relayIndex: 2 });
    bed.report('io-1', { connected: false, sessionFault: 'wrongKey' }, 'bus-2');
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error]).toEqual([503, 'DEVICE_OFFLINE']);
    expect(body.message).toContain('its bus is down');
  });

  it('is the last one that the state shows, from its intent to its outcome', async () => {
    const bed = await ready();
    const last = () => bed.rs485.state(A).lastPulse;
    expect((await bed.get(`/${A}/state`)).body.lastPulse).toBeNull();
    const answered = Promise.withResolvers<Plain>();
    bed.answer(() => answered.promise);
    const fired = bed.post(`/${A}/pulse`);
    await expect.poll(() => pulses(bed).length).toBe(1);
    const by = bed.audits[0]?.principal.id;
    const begun = { at: new Date(bed.clock.now()).toISOString(), by, relay: 2, outcome: null, reason: null };
    expect(last()).toEqual(begun);
    answered.resolve({ relay: 2, milliseconds: 1_300, timedBy: 'device' });
    await fired;
    expect(last()).toEqual({ ...begun, outcome: 'confirmed' });
    await bed.clock.advance(1_000);
    bed.answer('NO_REPLY');
    await bed.post(`/${A}/pulse`);
    const at = new Date(bed.clock.now()).toISOString();
    expect(last()).toEqual({ ...begun, at, outcome: 'unknown', reason: 'it said NO_REPLY' });
    bed.answer('LINK_LOST');
    const { body } = await bed.post(`/${A}/pulse`);
    expect(last()).toEqual({ ...begun, at, outcome: 'failed', reason: body.message });
  });

  it.each<[string, Record<string, unknown>, object]>([
    ['no relay', { relayIndex: null }, { reportedSettingsVersion: 1 }],
    ['settings that never arrived', {}, { reportedSettingsVersion: 0, settings: null }],
  ])('needs a relay in force: with %s it is 409', async (_name, settings, reported) => {
    const bed = await openTestbed();
    await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 2, ...settings });
    bed.report('io-1', reported);
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error]).toEqual([409, 'NO_RELAY']);
    expect([pulses(bed), bed.audits]).toEqual([[], []]);
  });

  it('is one at a time for a device', async () => {
    const bed = await ready();
    const answered = Promise.withResolvers<Plain>();
    bed.answer(() => answered.promise);
    const first = bed.post(`/${A}/pulse`);
    await expect.poll(() => pulses(bed).length).toBe(1);
    const second = await bed.post(`/${A}/pulse`);
    expect([second.status, second.body.error]).toEqual([409, 'IN_PROGRESS']);
    answered.resolve({ relay: 2, milliseconds: 1_300, timedBy: 'gateway' });
    expect((await first).body).toMatchObject({ outcome: 'confirmed', timedBy: 'gateway' });
    expect(pulses(bed)).toHaveLength(1);
    expect((await bed.post(`/${A}/pulse`)).status).toBe(200);
  });

  it('is not fired when its intent cannot be stored, or only too late', async () => {
    const bed = await ready();
    const { commit } = bed.database;
    bed.database.commit = () => Promise.reject(new Error('the disk is gone'));
    expect((await bed.post(`/${A}/pulse`)).status).toBe(500);
    bed.database.commit = async (job, urgency) => {
      expect(urgency).toBe('urgent');
      await bed.clock.advance(5_000);
      return commit(job, urgency);
    };
    const late = await bed.post(`/${A}/pulse`);
    expect([late.status, late.body.error]).toEqual([503, 'DEVICE_OFFLINE']);
    expect(pulses(bed)).toEqual([]);
  });

  it('that was fired is reported, although its outcome could not be stored', async () => {
    const bed = await ready();
    const { commit } = bed.database;
    bed.answer(() => {
      bed.database.commit = () => Promise.reject(new DriverError('BUSY', 'the disk is gone'));
      return { relay: 2, milliseconds: 1_300, timedBy: 'device' };
    });
    expect((await bed.post(`/${A}/pulse`)).body).toMatchObject({ outcome: 'confirmed' });
    bed.database.commit = commit;
  });

  it.each([
    ['its relay', { relayIndex: 1 }],
    ['its door', { doorId: 'dddddddd-0000-4000-8000-0000000000dd' }],
  ])('is not fired when %s is changed while it is stored', async (_name, change) => {
    const held = heldCommits(await temporaryDatabase());
    const bed = await ready(IN_FORCE, held.database);
    held.hold();
    const pulsed = bed.post(`/${A}/pulse`);
    await expect.poll(() => held.waiting).toHaveLength(1);
    const intent = held.waiting.splice(0);
    held.release();
    expect((await bed.put(A, change)).status).toBe(200);
    for (const store of intent) store();
    expect((await pulsed).body).toMatchObject({ error: 'NO_RELAY' });
    expect([pulses(bed), outcomes(bed).sort()]).toEqual([[], ['accepted', 'done', 'failed']]);
  });

  it('is for the service tool', async () => {
    const bed = await ready();
    for (const as of ['front-desk-admin', 'front-desk', 'pms'])
      expect((await bed.post(`/${A}/pulse`, undefined, as)).status).toBe(403);
    expect((await bed.post('/no one/pulse')).status).toBe(404);
  });
});

describe('a relay that is held', () => {
  const HOLD = { milliseconds: 20_000, timeoutMs: 5_000 };
  const RELAY = { deviceId: A, bus: 'bus-1', hwId: 'io-1', relayIndex: 2 };
  const { signal } = new AbortController();

  it('is fired for so long, in time or not at all, and not audited', async () => {
    const bed = await ready();
    expect(await bed.rs485.holdRelay(RELAY, HOLD, signal)).toMatchObject({ relay: 2, outcome: 'confirmed' });
    expect(pulses(bed)).toMatchObject([
      { link: 'bus-1', timeoutMs: 5_000, data: { hwId: 'io-1', relay: 2, milliseconds: 20_000 } },
    ]);
    expect(bed.audits).toEqual([]);
  });

  it.each([
    ['index', { relayIndex: 1 }],
    ['hardware', { hwId: 'io-9' }],
    ['bus', { bus: 'bus-2' }],
  ])('is not fired when another %s is in force', async (_name, other) => {
    const bed = await ready();
    await expect(bed.rs485.holdRelay({ ...RELAY, ...other }, HOLD, signal)).rejects.toMatchObject({
      code: 'NO_RELAY',
      message: expect.stringMatching(/^Nothing was fired: /),
    });
    expect(pulses(bed)).toEqual([]);
  });

  it('keeps no one from a pulse, and is kept by none', async () => {
    const bed = await ready();
    const answered = Promise.withResolvers<Plain>();
    bed.answer(() => answered.promise);
    const all = [bed.rs485.holdRelay(RELAY, HOLD, signal), bed.rs485.pulse(A, bed.caller)];
    await expect.poll(() => pulses(bed).length).toBe(2);
    all.push(bed.rs485.holdRelay(RELAY, HOLD, signal));
    await expect.poll(() => pulses(bed).length).toBe(3);
    answered.resolve({ relay: 2, milliseconds: 20_000, timedBy: 'device' });
    for (const one of all) expect(await one).toMatchObject({ outcome: 'confirmed' });
  });

  it('says what was not fired, and what no one knows', async () => {
    const bed = await ready();
    bed.answer('LINK_LOST');
    await expect(bed.rs485.holdRelay(RELAY, HOLD, signal)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    bed.answer('OUTCOME_UNKNOWN');
    expect(await bed.rs485.holdRelay(RELAY, HOLD, signal)).toMatchObject({ outcome: 'unknown' });
    bed.report('io-1', { connected: false, reportedSettingsVersion: 1, settings: IN_FORCE });
    await expect(bed.rs485.holdRelay(RELAY, HOLD, signal)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect([pulses(bed).length, bed.audits]).toEqual([2, []]);
  });
});
