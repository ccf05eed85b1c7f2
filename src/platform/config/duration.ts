/** Lengths of time as the configuration writes them. */
import { z } from 'zod';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** "30s", "15m", "90d" in the file; milliseconds in the program. */
export function duration(minimumMs: number, maximumMs: number) {
  const form = 'expected a duration such as 30s, 15m, 12h or 90d';
  return z
    .string(form)
    .regex(/^\d{1,9}(ms|s|m|h|d)$/, form)
    .transform(durationMs)
    .refine(
      (ms) => ms >= minimumMs && ms <= maximumMs,
      `expected between ${inWords(minimumMs)} and ${inWords(maximumMs)}`,
    );
}

/** Of a text that `duration` takes. */
export function durationMs(text: string): number {
  const unit = /[a-z]+$/.exec(text)?.[0] as keyof typeof UNIT_MS;
  return Number.parseInt(text, 10) * UNIT_MS[unit];
}

/** The same length of time as the file would say it: 90000 becomes "90s". */
function inWords(ms: number): string {
  const units = Object.entries(UNIT_MS).reverse();
  const [unit, size] = units.find(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
