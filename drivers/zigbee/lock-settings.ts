/** Writes settings of a lock one by one, and reads them back: a refusal names the setting, and holds up no other. */
import { z } from 'zod';
import { DriverError, type Plain } from '../contract/driver.ts';
import { type HolidaysShown, lockSettingsApply } from '../contract/lock-settings.ts';
import { hwId, type LockSettings } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { applyHolidays, readHolidays } from './holidays.ts';
import { TYPE } from './lock-cluster.ts';
import type { Exchanges, LockExchanges } from './lock-exchanges.ts';
import type { Locks } from './locks.ts';
import { type AttributeWrite, DOOR_LOCK_ATTRIBUTE } from './standard-lock.ts';
import { field, integer, UINT32_LAST } from './values.ts';
import { STATUS_SUCCESS, statusName } from './zcl-status.ts';

type Name = Exclude<keyof LockSettings, 'holidays'>;
/** Attribute and type of each (tables 7-12 to 7-14). */
const ATTRIBUTES: Record<Name, { attrId: number; dataType: number }> = {
  autoRelockSeconds: { attrId: DOOR_LOCK_ATTRIBUTE.autoRelockTime, dataType: TYPE.uint32 },
  soundVolume: { attrId: DOOR_LOCK_ATTRIBUTE.soundVolume, dataType: TYPE.uint8 },
  oneTouchLocking: { attrId: DOOR_LOCK_ATTRIBUTE.oneTouchLocking, dataType: TYPE.boolean },
  wrongCodeLimit: { attrId: DOOR_LOCK_ATTRIBUTE.wrongCodeLimit, dataType: TYPE.uint8 },
  wrongCodeLockoutSeconds: { attrId: DOOR_LOCK_ATTRIBUTE.wrongCodeLockout, dataType: TYPE.uint8 },
};
const ofLock = z.strictObject({ hwId });

export interface LockSettingsCommands {
  applyLockSettings(data: Plain, deadline: number, signal: AbortSignal): Promise<null>;
  readHolidays(data: Plain, deadline: number, signal: AbortSignal): Promise<HolidaysShown>;
}

export function openLockSettings(
  { during }: Pick<LockExchanges, 'during'>,
  { note }: Pick<Locks, 'note'>,
): LockSettingsCommands {
  return {
    async applyLockSettings(data, deadline, signal) {
      const { hwId, settings } = valid(lockSettingsApply, data, 'INVALID_COMMAND');
      return during('settings', { hwId, deadline, signal }, async (exchanges) => {
        const { holidays, ...attributes } = settings;
        const refusals: string[] = [];
        for (const [name, value] of Object.entries(attributes) as [Name, number | boolean][])
          refusals.push(...(await refusalOf(name, Number(value), exchanges)));
        try {
          if (holidays) await applyHolidays(holidays, exchanges);
        } catch (error) {
          if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
          refusals.push(error.message);
        } finally {
          // Those of before are not what it has shown any more.
          if (holidays) note(exchanges.lock.ieee, {});
        }
        if (refusals.length > 0) throw new DriverError('REFUSED', refusals.join('; '));
        return null;
      });
    },
    async readHolidays(data, deadline, signal) {
      const { hwId } = valid(ofLock, data, 'INVALID_COMMAND');
      return during('settings', { hwId, deadline, signal }, async (exchanges) => {
        const holidays = await readHolidays(exchanges);
        note(exchanges.lock.ieee, {});
        return { holidays };
      });
    },
  };
}

/** Writes it and reads it back; at most one reason. */
async function refusalOf(name: Name, attrData: number, { answered }: Exchanges): Promise<string[]> {
  const write: AttributeWrite = { ...ATTRIBUTES[name], attrData };
  const status = statusOf(await answered('write', [{ ...write }], 'foundation'));
  if (status !== STATUS_SUCCESS) return [`${name}: the lock refused it (${statusName(status)})`];
  const { attrId } = write;
  const now = valueIn(await answered('read', [{ attrId }], 'foundation'), attrId);
  if (now === attrData) return [];
  return [`${name}: the lock said that it took it, and has ${now ?? 'nothing'}`];
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
