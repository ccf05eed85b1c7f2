/** What a person who helps from elsewhere needs to see, in one document, without a secret. */
import { arch, release } from 'node:os';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import type { LogControl } from '../../platform/log.ts';
import { shownUrl } from '../../platform/shown-url.ts';
import type { BusOverview } from '../../resources/rs485/bus-schema.ts';
import type { Exposition } from '../../services/metrics/exposition.ts';
import type { Status } from '../../services/status/schema.ts';
import { VERSION } from '../version.ts';
import type { SupportBundle } from './schema.ts';

export interface BundleOptions {
  config: Config;
  clock: Pick<Clock, 'now'>;
  logControl: Pick<LogControl, 'recent'>;
  status(): Status;
  buses(): BusOverview[];
  metrics: Exposition;
}

export async function supportBundle(options: BundleOptions): Promise<SupportBundle> {
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
