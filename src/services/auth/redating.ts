/** Tokens that were made while the clock was ahead: they have the life they were given, from now on (known-time.ts). */
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { TokenTable } from './table.ts';
import type { Collect } from './upkeep.ts';

/** A clock may be corrected by so much without any harm to lives that are counted in days. */
const SLACK_MS = 3_600_000;

export function redating({
  table,
  time,
  log,
}: {
  table: Pick<TokenTable, 'areCreatedAfter' | 'redate'>;
  time: Pick<KnownTime, 'now' | 'doubt'>;
  log: Log;
}): Collect {
  return () => {
    // While the clock is in doubt, its time may turn out to be right.
    if (time.doubt() || !table.areCreatedAfter(time.now() + SLACK_MS)) return undefined;
    let tokens = 0;
    return {
      write() {
        const now = time.now();
        tokens = table.redate(now + SLACK_MS, now);
      },
      written: () =>
        log.warn(
          { tokens },
          'tokens were made while the clock was ahead: their lives are counted from now on',
        ),
    };
  };
}
