/**
 * The process: argv, signals, crashes, exit code; started by start.js. With that, start-host.js and src/platform/field/host/host.ts the only
 * file that touches `process`.
 */
import { fstatSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import type { Shell } from './cli/shell.ts';
import { systemClock } from './platform/clock.ts';
import { killAfter } from './platform/host/kill-after.ts';

const stopping = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // The second one means now.
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort(signal);
  });
}

let reportCrash = (error: unknown) => console.error('gatehouse crashed:', error);
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error) => {
    reportCrash(error);
    process.exit(1);
  });
}
// A reader that went away (`gatehouse token list | head`) is no reason to crash.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const codeCache = getCompileCacheDir();
/** Else glibc keeps what each thread has ever freed for that thread (mallopt(3), M_ARENA_MAX). */
const MALLOC = { MALLOC_ARENA_MAX: '2' };
const { GATEHOUSE_BUNDLE } = process.env;
const shell: Shell = {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  journal: isJournal(),
  nodeVersion: process.versions.node,
  clock: systemClock,
  processes: {
    execPath: process.execPath,
    kill: (pid) => void process.kill(pid, 'SIGKILL'),
    environment: {
      ...MALLOC,
      ...(codeCache !== undefined && { NODE_COMPILE_CACHE: codeCache }),
      ...(GATEHOUSE_BUNDLE !== undefined && { GATEHOUSE_BUNDLE }),
    },
  },
  ...(process.geteuid?.() === 0 && { become }),
  killAfter,
  stopping: stopping.signal,
  onHangup: (listener) => void process.on('SIGHUP', listener),
  reportCrashes: (report) => {
    reportCrash = report;
  },
};
const { run } = await import('./cli/program.ts');
process.exit(await run(process.argv.slice(2), shell));

/** The effective ids alone: that user can neither signal nor trace this process, whose real and saved ids stay root's. */
function become({ uid, gid, groups = [] }: Parameters<NonNullable<Shell['become']>>[0]): Disposable {
  const own = process.getgroups?.() ?? [];
  process.setgroups?.([gid, ...groups]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
  return {
    [Symbol.dispose]() {
      process.seteuid?.(0);
      process.setegid?.(0);
      process.setgroups?.(own);
    },
  };
}

/** systemd names the socket it has given us in JOURNAL_STREAM; a redirected output is another one (systemd.exec(5)). */
function isJournal(): boolean {
  const { dev, ino } = fstatSync(1);
  return process.env.JOURNAL_STREAM === `${dev}:${ino}`;
}
