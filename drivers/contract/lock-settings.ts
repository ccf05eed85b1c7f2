/**
 * Settings of a standard lock (ZCL rev. 8, 7.3.2.12 and 7.3.2.13), and its holidays (7.3.2.17.19 to 21).
 *
 * Commands of a Zigbee gateway link (DriverCommand.kind, data → answer):
 *  - `applyLockSettings`  LockSettingsApply → null  writes those that are named, and reads them back. The same again is harmless.
 *      REFUSED when the lock does not have one, said no, or says yes and has something else
 *  - `readHolidays`  {hwId} → HolidaysShown  all that the lock has, also those that somebody set at it
 */
import { z } from 'zod';
import { HOLIDAYS_MAX, holiday, hwId, lockSettings } from './settings.ts';

/** In the others the lock takes no command to lock by radio, or stays open. */
export const HOLIDAY_MODES = ['normal', 'vacation'] as const;

export const lockSettingsApply = z.strictObject({
  hwId,
  settings: lockSettings.extend({
    holidays: z
      .array(holiday.extend({ mode: z.enum(HOLIDAY_MODES) }))
      .max(HOLIDAYS_MAX)
      .optional(),
  }),
});
export type LockSettingsApply = z.infer<typeof lockSettingsApply>;

export const holidaysShown = z.object({ holidays: z.array(holiday).max(HOLIDAYS_MAX) });
export type HolidaysShown = z.infer<typeof holidaysShown>;
