/** The log in every detail for some minutes, after which the configured level is in force again by itself. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log, LogControl } from '../../platform/log.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LogState } from './schema.ts';

const MINUTE_MS = 60_000;

export interface DebugLogOptions {
  logControl: LogControl;
  log: Log;
  database: Pick<Database, 'commit'>;
  audit: Audit;
  clock: Pick<Clock, 'now' | 'sleep'>;
}

export interface DebugLog extends Disposable {
  state(): LogState;
  /** Another call begins the time again. */
  begin(minutes: number, caller: Caller): Promise<LogState>;
  end(caller: Caller): Promise<LogState>;
}

export function openDebugLog({ logControl, log, database, audit, clock }: DebugLogOptions): DebugLog {
  const configured = logControl.level();
  let until: number | undefined;
  let waiting = new AbortController();
  const state = (): LogState => ({
    level: logControl.level(),
    configured,
    debugUntil: until === undefined ? null : new Date(until).toISOString(),
  });
  const revert = () => {
    until = undefined;
    logControl.setLevel(configured);
    log.info({ level: configured }, 'the log has its configured level again');
  };
  const record = ({ principal, correlationId }: Caller, detail: Record<string, unknown>) =>
    database.commit(() =>
      audit.record({ principal, correlationId, action: 'log.debug', object: 'log', outcome: 'done', detail }),
    );
  const forget = () => {
    waiting.abort();
    waiting = new AbortController();
  };
  return {
    state,
    async begin(minutes, caller) {
      await record(caller, { minutes });
      forget();
      until = clock.now() + minutes * MINUTE_MS;
      logControl.setLevel('debug');
      log.info({ minutes }, 'the log has every detail for some minutes');
      clock.sleep(minutes * MINUTE_MS, waiting.signal).then(revert, () => undefined);
      return state();
    },
    async end(caller) {
      if (until === undefined) return state();
      await record(caller, { minutes: 0 });
      forget();
      revert();
      return state();
    },
    [Symbol.dispose]: () => waiting.abort(),
  };
}
