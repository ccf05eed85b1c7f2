/** What helps a person who helps: the log in every detail for a time, and the bundle. */

import { arch, release } from 'node:os';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log, LogControl } from '../../platform/log.ts';
import type { Caller } from '../../platform/principal.ts';
import { shownUrl } from '../../platform/shown-url.ts';
import type { BusOverview } from '../../resources/rs485/bus-schema.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Exposition } from '../../services/metrics/exposition.ts';
import type { Status } from '../../services/status/schema.ts';
import { VERSION } from '../version.ts';
import type { LogState, SupportBundle } from './schema.ts';

export interface Support extends Disposable {
  debugLog: DebugLog;
  bundle(): Promise<SupportBundle>;
}

export function openSupport(options: BundleOptions & DebugLogOptions): Support {
  const debugLog = openDebugLog(options);
  return {
    debugLog,
    bundle: () => supportBundle(options),
    [Symbol.dispose]: () => debugLog[Symbol.dispose](),
  };
}

// What a person who helps from elsewhere needs to see, in one document, without a secret.

interface BundleOptions {
  config: Config;
  clock: Pick<Clock, 'now'>;
  logControl: Pick<LogControl, 'recent'>;
  status(): Status;
  buses(): BusOverview[];
  metrics: Exposition;
}

async function supportBundle(options: BundleOptions): Promise<SupportBundle> {
  const { config, clock, logControl, metrics } = options;
  const status = options.status();
  const now = clock.now();
  return {
    madeAt: new Date(now).toISOString(),
    program: {
      version: VERSION,
      architecture: arch(),
      kernel: release(),
      uptimeSeconds: Math.max(0, Math.round((now - Date.parse(status.startedAt)) / 1_000)),
    },
    status: { ...status },
    configuration: withoutCredentials(config),
    buses: options.buses().map((bus) => ({ ...bus })),
    metrics: await metrics.text(),
    log: logControl.recent().map((line) => line.trimEnd()),
  };
}

/** Secrets are in files that the configuration names; but an address may have one in it. */
export function withoutCredentials(config: object): Record<string, unknown> {
  const shown = (_name: string, value: unknown) =>
    typeof value === 'string' && URL.canParse(value) && value.includes('://') ? shownUrl(value) : value;
  return JSON.parse(JSON.stringify(config, shown));
}

// The log in every detail for some minutes, after which the configured level is in force again by itself.

const MINUTE_MS = 60_000;

interface DebugLogOptions {
  logControl: LogControl;
  log: Log;
  database: Pick<Database, 'commit'>;
  audit: Audit;
  clock: Pick<Clock, 'now' | 'sleep'>;
}

interface DebugLog extends Disposable {
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
