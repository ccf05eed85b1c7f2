/** What the meters have measured of actuations, and of keys. */
import type { Meters } from '../src/services/metrics/meters.ts';

/** `action way outcome` → how many, and their seconds. */
export function measuredActuations({ read }: Meters): Record<string, { count: number; sum: number }> {
  const moved = read().actuations.filter(({ seconds }) => seconds.count > 0);
  return Object.fromEntries(
    moved.map(({ action, way, outcome, seconds: { count, sum } }) => [
      `${action} ${way} ${outcome}`,
      { count, sum },
    ]),
  );
}

/** Outcome → how many, and their seconds. */
export function measuredKeys({ read }: Meters): Record<string, { count: number; sum: number }> {
  const moved = read().keys.filter(({ seconds }) => seconds.count > 0);
  return Object.fromEntries(moved.map(({ outcome, seconds: { count, sum } }) => [outcome, { count, sum }]));
}
