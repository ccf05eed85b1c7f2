/**
 * The composition root: opens everything, in order, in one AsyncDisposableStack. Read this first. The only file that
 * knows every slice and the driver table.
 */
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import type { Log } from './log.ts';

export interface Gateway extends AsyncDisposable {
  readonly systemId: string;
  /** Where the interface is served, base path included. */
  readonly baseUrl: string;
  /** Where encoders connect. */
  readonly encoderUrl: string;
  readonly adminSocket: string;
}

export interface GatewayOptions {
  config: Config;
  clock: Clock;
  log: Log;
}

export async function openGateway(_options: GatewayOptions): Promise<Gateway> {
  throw new Error('under construction');
}
