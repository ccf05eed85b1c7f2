/** How many locks of doors have which battery and which link quality: which of them it is is in the list of doors. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Conditions } from './conditions.ts';
import type { Directory } from './directory.ts';
import type { Thresholds } from './evaluated.ts';
import type { Locks } from './locks.ts';

export interface LockCountsOptions {
  directory: Pick<Directory, 'entries'>;
  locks: Pick<Locks, 'report'>;
  conditions: Pick<Conditions, 'levelOf'>;
  thresholds: Pick<Thresholds, 'lqiMin'>;
}

/** Percent, each the end of a range. */
const CHARGES = [10, 20, 40, 60, 80, 100];

export interface LockCounts {
  battery: Record<'low' | 'ok' | 'unknown', number>;
  /** By the range of the charge that the lock reported last, such as `20-40`, without its lower end; `unknown`: none was reported. */
  charge: Record<string, number>;
  /** ok: from doors.lqiMin of the configuration on. */
  lqi: Record<'low' | 'ok' | 'unknown', number>;
}

export function lockCounts({ directory, locks, conditions, thresholds }: LockCountsOptions): LockCounts {
  const counts: LockCounts = {
    battery: { low: 0, ok: 0, unknown: 0 },
    charge: Object.fromEntries([...CHARGES.map(rangeTo), 'unknown'].map((range) => [range, 0])),
    lqi: { low: 0, ok: 0, unknown: 0 },
  };
  for (const entry of directory.entries()) {
    if (entry.mac === null) continue;
    const { battery, lqi }: Partial<LockReport> = locks.report(entry) ?? {};
    const range = CHARGES.findIndex((end) => battery !== undefined && battery <= end);
    const charge = range < 0 ? 'unknown' : rangeTo(CHARGES[range] ?? 0, range);
    counts.charge[charge] = (counts.charge[charge] ?? 0) + 1;
    counts.battery[conditions.levelOf(entry)] += 1;
    counts.lqi[lqi === undefined ? 'unknown' : lqi < thresholds.lqiMin ? 'low' : 'ok'] += 1;
  }
  return counts;
}

const rangeTo = (end: number, index: number) => `${CHARGES[index - 1] ?? 0}-${end}`;
