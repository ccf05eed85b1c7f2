/** Writes settings of a lock one by one, and reads them back: a refusal names the setting, and holds up no other. */
import { z } from 'zod';
import { DriverError, type Plain } from '../contract/driver.ts';
import { type HolidaysShown, type LockSettingsApply, lockSettingsApply } from '../contract/lock-settings.ts';
import { hwId, type LockSettings } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { applyHolidays, readHolidays } from './holidays.ts';
import { TYPE } from './lock-cluster.ts';
import type { Exchanges, LockExchanges } from './lock-exchanges.ts';
import type { Locks } from './locks.ts';
import {
  type AttributeWrite,
  DOOR_LOCK_ATTRIBUTE,
  SETTING_ATTRIBUTES,
  statusesIn,
  valuesIn,
} from './standard-lock.ts';
import type { StateReader } from './state-reader.ts';
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
type Settings = LockSettingsApply['settings'];
const ofLock = z.strictObject({ hwId });

export interface LockSettingsCommands {
  applyLockSettings(data: Plain, deadline: number, signal: AbortSignal): Promise<null>;
  readHolidays(data: Plain, deadline: number, signal: AbortSignal): Promise<HolidaysShown>;
}

export function openLockSettings(
  { during }: Pick<LockExchanges, 'during'>,
  { note }: Pick<Locks, 'note'>,
  states: Pick<StateReader, 'read'>,
): LockSettingsCommands {
  /** Rejects when the lock may have what is written, and has not said so. */
  async function apply({ holidays, ...attributes }: Settings, exchanges: Exchanges): Promise<string[]> {
    const { ieee, endpoint } = exchanges.lock;
    const wanted = Object.entries(attributes) as [Name, number | boolean][];
    // Before the link can be lost: what the lock has shown of them may be so no more from the first frame on.
    const names = wanted.map(([name]) => SETTING_ATTRIBUTES[name]);
    if (names.length > 0) {
      exchanges.radio.doubt(ieee, endpoint, names);
      note(ieee, {});
    }
    const refusals: string[] = [];
    for (const [name, value] of wanted) refusals.push(...(await refusalOf(name, Number(value), exchanges)));
    try {
      if (holidays) await applyHolidays(holidays, exchanges, () => note(ieee, {}));
    } catch (error) {
      if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
      refusals.push(error.message);
    }
    return refusals;
  }

  return {
    async applyLockSettings(data, deadline, signal) {
      const { hwId, settings } = valid(lockSettingsApply, data, 'INVALID_COMMAND');
      return during('settings', { hwId, deadline, signal }, async (exchanges) => {
        const { ieee } = exchanges.lock;
        const refusals = await apply(settings, exchanges)
          .catch((error) => {
            // It may be wanted no more when the lock answers again.
            states.read(ieee);
            throw error;
          })
          .finally(() => note(ieee, {}));
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
  const [status] = statusesIn(await answered('write', [{ ...write }], 'foundation'));
  const { attrId } = write;
  // Also after a refusal: what it had before is not known any more.
  const now = valuesIn(await answered('read', [{ attrId }], 'foundation')).get(attrId);
  if (status !== STATUS_SUCCESS) return [`${name}: the lock refused it (${statusName(status)})`];
  if (now === attrData) return [];
  return [`${name}: the lock said that it took it, and has ${now ?? 'nothing'}`];
}
