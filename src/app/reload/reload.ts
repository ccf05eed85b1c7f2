/**
 * The configuration read again while the gateway runs. Links, gateways and networks follow it at once; other settings wait
 * for a restart and are named until then. A file with a mistake changes nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigurationSource } from '../../platform/config/config-file.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Caller } from '../../platform/principal.ts';
import { FileError } from '../../platform/yaml/yaml-file.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Rewired, Wiring } from '../wiring.ts';
import type { Reloaded } from './schema.ts';

/** Sections that are followed without a restart. */
const FOLLOWED: readonly string[] = ['links', 'networks', 'zgates'] satisfies (keyof Wiring)[];

export interface ReloadOptions {
  source: ConfigurationSource;
  /** What the gateway was started with. */
  started: Config;
  /** Brings the field to what is wanted (wiring.ts). */
  rewire(wanted: Wiring): Promise<Rewired>;
  /** Files that the configuration names are looked at again. */
  reread(): void;
  database: Pick<Database, 'commit'>;
  audit: Audit;
  clock: Pick<Clock, 'now'>;
  log: Log;
}

export interface Reload {
  /** One at a time. Throws CONFIGURATION_INVALID, and has changed nothing then. */
  reload(caller: Caller): Promise<Reloaded>;
  /** For the status. */
  state(): {
    file: string;
    /** Of the last file that was followed, epoch milliseconds. */
    readAt: number;
    /** Why the last reload changed nothing; null: it was followed. */
    error: string | null;
    needsRestart: readonly string[];
  };
}

export function openReload(options: ReloadOptions): Reload {
  const { source, started, rewire, reread, database, audit, clock, log } = options;
  let readAt = clock.now();
  let error: string | null = null;
  let needsRestart: string[] = [];
  let turn: Promise<unknown> = Promise.resolve();

  function read(): Config {
    try {
      return source.read({ checkFiles: true, checkAdapters: true });
    } catch (cause) {
      if (!(cause instanceof FileError)) throw cause;
      error = cause.message;
      log.error({ file: source.file }, `the configuration was not reloaded, nothing has changed: ${error}`);
      throw new GatehouseError('CONFIGURATION_INVALID', `Nothing has changed: ${error}`);
    }
  }

  async function reload({ principal, correlationId }: Caller): Promise<Reloaded> {
    const config = read();
    reread();
    const { busy, ...links } = await rewire(config).catch((cause: unknown) => {
      error = `it could not be followed: ${(cause as Error).message}`;
      log.error({ err: cause }, 'the configuration was read, but could not be followed: reload again');
      throw cause;
    });
    needsRestart = [...differing(started, config), ...busy.map((id) => `links.${id}`)];
    readAt = clock.now();
    error = null;
    const detail = { ...links, needsRestart };
    log.info(detail, 'the configuration was reloaded');
    for (const id of busy)
      log.warn({ link: id }, `link ${id} is executing a command and was not changed: reload again later`);
    const others = needsRestart.filter((setting) => !busy.includes(setting.replace(/^links\./, '')));
    if (others.length > 0)
      log.warn({ needsRestart }, `these settings have changed and need a restart: ${others.join(', ')}`);
    await database.commit(() =>
      audit.record({
        principal,
        action: 'configuration.reload',
        object: 'configuration',
        outcome: 'done',
        detail,
        correlationId,
      }),
    );
    return detail;
  }

  return {
    reload(caller) {
      const done = turn.then(() => reload(caller));
      turn = done.catch(() => undefined);
      return done;
    },
    state: () => ({ file: source.file, readAt, error, needsRestart }),
  };
}

/** The settings that differ and are not followed, the innermost ones. */
function differing(before: object, after: object, path: readonly string[] = []): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    if (path.length === 0 && FOLLOWED.includes(name)) return [];
    const [one, other] = [before, after].map((section) => (section as Record<string, unknown>)[name]);
    if (isDeepStrictEqual(one, other)) return [];
    return isSection(one) && isSection(other)
      ? differing(one, other, [...path, name])
      : [[...path, name].join('.')];
  });
}

/** A group of settings, and no address, which is one setting of the file. */
function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('host' in value);
}
