/** A service that asks for more is asked again all the same: its figure may be a mistake, and events wait. */
export const RETRY_AFTER_MAX_MS = 3_600_000;

/** RFC 9110, 10.2.3: seconds, or a date. `now` is epoch milliseconds. Undefined: there is none, or none that can be read. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, ms));
}
