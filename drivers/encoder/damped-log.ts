/** Log lines that strangers can cause as often as they like: one about each of them, then one a minute with a count. */
import type { Clock } from '../contract/driver.ts';

const QUIET_MS = 60_000;
/** Subjects that are distinguished; the others share one line a minute. */
const SUBJECTS_MAX = 64;
const OTHERS = 'others';

/** `fields` of a line that is not left out get `leftOut`, how many of its subject were since the last one. */
export type DampedLog = (subject: string, fields: Record<string, unknown>) => void;

export function openDampedLog(
  { monotonic }: Pick<Clock, 'monotonic'>,
  write: (fields: Record<string, unknown>) => void,
): DampedLog {
  /** In the order of their last lines. */
  const lines = new Map<string, { at: number; leftOut: number }>();

  /** The subject itself, while there is room; those that have been quiet make room for it. */
  function placeOf(subject: string, now: number): string {
    if (lines.has(subject)) return subject;
    for (const [oldest, { at }] of lines) {
      if (lines.size < SUBJECTS_MAX) break;
      if (now - at < QUIET_MS) return OTHERS;
      lines.delete(oldest);
    }
    return subject;
  }

  return (subject, fields) => {
    const now = monotonic();
    const place = placeOf(subject, now);
    const last = lines.get(place);
    if (last && now - last.at < QUIET_MS) {
      last.leftOut += 1;
      return;
    }
    lines.delete(place);
    lines.set(place, { at: now, leftOut: 0 });
    write(last?.leftOut ? { ...fields, leftOut: last.leftOut } : fields);
  };
}
