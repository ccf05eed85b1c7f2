/** Writes settings of a lock one by one, and reads them back: a refusal names the setting, and holds up no other. */
import { type Clock, DriverError, type Plain } from '../contract/driver.ts';
import { lockSettingsApply } from '../contract/lock-settings.ts';
import type { LockSettings } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { HELD_FRAME_MS } from '../contract/zgate.ts';
import { TYPE } from './lock-cluster.ts';
import type { Lock, Locks } from './locks.ts';
import { DOOR_LOCK, type Radio, type ZclReply } from './radio.ts';
import { type AttributeWrite, DOOR_LOCK_ATTRIBUTE, readingOf } from './standard-lock.ts';
import { field, integer, UINT32_LAST } from './values.ts';
import { STATUS_SUCCESS, statusName } from './zcl-status.ts';

/** A lock that sleeps fetches a frame within that time. */
const STEP_MS = HELD_FRAME_MS;

type Name = keyof LockSettings;
/** Attribute and type of each (tables 7-12 to 7-14). */
const ATTRIBUTES: Record<Name, { attrId: number; dataType: number }> = {
  autoRelockSeconds: { attrId: DOOR_LOCK_ATTRIBUTE.autoRelockTime, dataType: TYPE.uint32 },
  soundVolume: { attrId: DOOR_LOCK_ATTRIBUTE.soundVolume, dataType: TYPE.uint8 },
  oneTouchLocking: { attrId: DOOR_LOCK_ATTRIBUTE.oneTouchLocking, dataType: TYPE.boolean },
  wrongCodeLimit: { attrId: DOOR_LOCK_ATTRIBUTE.wrongCodeLimit, dataType: TYPE.uint8 },
  wrongCodeLockoutSeconds: { attrId: DOOR_LOCK_ATTRIBUTE.wrongCodeLockout, dataType: TYPE.uint8 },
};

export interface LockSettingsOptions {
  radio: Pick<Radio, 'send'>;
  clock: Clock;
  locks: Pick<Locks, 'find'>;
}

export function openLockSettings({ radio, clock, locks }: LockSettingsOptions) {
  async function exchange(
    { ieee, endpoint }: Lock,
    sent: { command: string; payload: readonly Record<string, unknown>[] },
    deadline: number,
    signal: AbortSignal,
  ): Promise<unknown> {
    signal.throwIfAborted();
    const notAfter = Math.min(clock.monotonic() + STEP_MS, deadline - HELD_FRAME_MS);
    const request = { ieee, endpoint, cluster: DOOR_LOCK, scope: 'foundation', ...sent } as const;
    const reply: ZclReply = await radio.send({ ...request, notAfter, timeoutMs: STEP_MS, withdrawn: signal });
    if (reply.kind === 'answered') return reply.payload;
    const reason = reply.kind === 'late' ? 'no time was left' : reply.reason;
    throw new DriverError('NO_REPLY', `the lock did not answer: ${reason}`);
  }

  return async (data: Plain, deadline: number, signal: AbortSignal): Promise<null> => {
    const { hwId, settings } = valid(lockSettingsApply, data, 'INVALID_COMMAND');
    const lock = locks.find(hwId);
    if (lock.family?.takesNoCommands !== undefined)
      throw new DriverError('REFUSED', `not sent: ${lock.family.takesNoCommands}`);
    const refusals: string[] = [];
    for (const [name, value] of Object.entries(settings) as [Name, number | boolean][]) {
      const write: AttributeWrite = { ...ATTRIBUTES[name], attrData: Number(value) };
      const answer = await exchange(lock, { command: 'write', payload: [{ ...write }] }, deadline, signal);
      const status = statusOf(answer);
      if (status !== STATUS_SUCCESS) {
        refusals.push(`${name}: the lock refused it (${statusName(status)})`);
        continue;
      }
      const read = readingOf([write.attrId]);
      const now = valueIn(await exchange(lock, read, deadline, signal), write.attrId);
      if (now !== write.attrData)
        refusals.push(`${name}: the lock said that it took it, and has ${now ?? 'nothing'}`);
    }
    if (refusals.length > 0) throw new DriverError('REFUSED', refusals.join('; '));
    return null;
  };
}

/** Of the record, or of a default response. */
function statusOf(payload: unknown): number | undefined {
  const of = Array.isArray(payload) ? field(payload[0], 'status') : field(payload, 'statusCode');
  return integer(of, 0, 0xff);
}

function valueIn(payload: unknown, attrId: number): number | undefined {
  if (!Array.isArray(payload)) return undefined;
  const record = payload.find((one) => field(one, 'attrId') === attrId);
  const value = field(record, 'attrData');
  return typeof value === 'boolean' ? Number(value) : integer(value, 0, UINT32_LAST);
}
