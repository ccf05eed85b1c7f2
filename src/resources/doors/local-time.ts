/** A time by the clock of a lock: as people give it, such as 2027-01-31T14:00, and as the lock has it (localTime of drivers/contract/settings.ts). */
import { z } from '@hono/zod-openapi';

const YEARS = /^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]$/;
export const localTime = z
  .string()
  .regex(YEARS, 'expected a local time such as 2027-01-31T14:00')
  .refine((time) => new Date(`${time}Z`).toJSON()?.startsWith(time) === true, 'is no day of the calendar');
const ZCL_EPOCH_MS = Date.UTC(2000, 0, 1);

export function localSeconds(time: string): number {
  return (Date.parse(`${time}:00Z`) - ZCL_EPOCH_MS) / 1_000;
}

/** To the minute. */
export function localTimeOf(seconds: number): string {
  return new Date(ZCL_EPOCH_MS + 1_000 * seconds).toISOString().slice(0, '2000-01-01T00:00'.length);
}
