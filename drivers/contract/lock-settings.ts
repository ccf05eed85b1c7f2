/**
 * Settings of a standard lock (ZCL rev. 8, 7.3.2.12 and 7.3.2.13).
 *
 * Command of a Zigbee gateway link (DriverCommand.kind, data → answer):
 *  - `applyLockSettings`  LockSettingsApply → null  writes those that are named, and reads them back. The same again is harmless.
 *      REFUSED when the lock does not have one, said no, or says yes and has something else
 */
import { z } from 'zod';
import { hwId, lockSettings } from './settings.ts';

export const lockSettingsApply = z.strictObject({ hwId, settings: lockSettings });
export type LockSettingsApply = z.infer<typeof lockSettingsApply>;
