/**
 * Has the whole database checked in a process of its own, which reads it with a connection of its own and gives way to
 * everything else. Reading it in the daemon would stop the event loop for seconds.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';

/** Links come up first. */
const AFTER_START_MS = 60_000;
const EVERY_MS = 86_400_000;
/** While it reads, the write-ahead log cannot shrink. */
const DEADLINE_MS = 15 * 60_000;
/** It holds no data beside SQLite's cache. */
const NODE_FLAGS = ['--max-semi-space-size=1', '--max-old-space-size=64', '--no-opt'];
const START = join(import.meta.dirname, '../../start.js');

/** What the process prints (src/cli/check-database.ts). */
export const checkResult = z.object({ findings: z.array(z.string()) });

export interface CheckState {
  /** failed: the check itself was not completed. */
  verdict: 'pending' | 'sound' | 'damaged' | 'failed';
  /** When the last check ended, by the wall clock; null before the first. */
  endedAt: string | null;
  ageSeconds: number | null;
  /** What is damaged, or why the check was not completed. */
  findings: string[];
}

export interface Checker {
  state(): CheckState;
  /** Checks a minute after this is called, then once a day. */
  keep(signal: AbortSignal): Promise<never>;
}

export interface CheckerOptions {
  file: string;
  /** The node to run: process.execPath. */
  execPath: string;
  environment?: Readonly<Record<string, string>> | undefined;
  clock: Clock;
  log: Log;
}

export function openChecker({ file, execPath, environment = {}, clock, log }: CheckerOptions): Checker {
  let last: (Pick<CheckState, 'verdict' | 'findings' | 'endedAt'> & { endedMonotonic: number }) | undefined;

  async function check(signal: AbortSignal): Promise<void> {
    const started = clock.monotonic();
    const found = await run(signal);
    signal.throwIfAborted();
    const endedMonotonic = clock.monotonic();
    last = { ...found, endedAt: new Date(clock.now()).toISOString(), endedMonotonic };
    const { verdict, findings } = found;
    const fields = { findings, milliseconds: Math.round(endedMonotonic - started) };
    if (verdict === 'sound') log.info(fields, 'the whole database was checked and is sound');
    if (verdict === 'damaged')
      log.error(
        fields,
        'the database is damaged: stop Gatehouse, keep a copy of its data directory, then bring a backup back with gatehouse restore FILE',
      );
    if (verdict === 'failed') log.warn(fields, 'the check of the database was not completed');
  }

  function run(signal: AbortSignal): Promise<Pick<CheckState, 'verdict' | 'findings'>> {
    const { promise, resolve } = Promise.withResolvers<Pick<CheckState, 'verdict' | 'findings'>>();
    const options = { timeout: DEADLINE_MS, killSignal: 'SIGKILL', env: { ...environment }, signal } as const;
    execFile(execPath, [...NODE_FLAGS, START, 'check-database', file], options, (error, stdout, stderr) => {
      const result = error ? undefined : parsed(stdout);
      if (!result) {
        const reason = error?.killed ? `it took more than ${DEADLINE_MS / 60_000} minutes` : stderr.trim();
        resolve({ verdict: 'failed', findings: [reason || String(error?.message)] });
      } else resolve({ verdict: result.findings.length > 0 ? 'damaged' : 'sound', ...result });
    });
    return promise;
  }

  return {
    state() {
      if (!last) return { verdict: 'pending', endedAt: null, ageSeconds: null, findings: [] };
      const { verdict, findings, endedAt, endedMonotonic } = last;
      const ageSeconds = Math.floor((clock.monotonic() - endedMonotonic) / 1_000);
      return { verdict, endedAt, ageSeconds, findings };
    },
    async keep(signal) {
      await clock.sleep(AFTER_START_MS, signal);
      for (;;) {
        await check(signal);
        await clock.sleep(EVERY_MS, signal);
      }
    },
  };
}

function parsed(text: string): z.infer<typeof checkResult> | undefined {
  try {
    return checkResult.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
