/** A Shell (src/cli/shell.ts) without a process: what was written is kept, and a test types and sends the signals. */
import { PassThrough, Writable } from 'node:stream';
import type { Shell } from '../src/cli/shell.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';

export interface TestShell extends Shell {
  readonly clock: ManualClock;
  readonly stdin: PassThrough & { isTTY?: boolean };
  written: { stdout: string; stderr: string };
  /** As SIGTERM would. */
  stop(): void;
  /** As SIGHUP would. */
  hangUp?: () => void;
  /** What serve is asked to report of crashes. */
  crash?: (error: unknown) => void;
}

export function testShell(changes: Partial<Shell> = {}): TestShell {
  const written = { stdout: '', stderr: '' };
  const stopping = new AbortController();
  const stream = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        written[name] += chunk;
        done();
      },
    });
  const shell: TestShell = {
    env: {},
    stdin: new PassThrough(),
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    journal: false,
    nodeVersion: '24.0.0',
    processes: { execPath: process.execPath, kill: (pid) => void process.kill(pid, 'SIGKILL') },
    clock: manualClock(),
    stopping: stopping.signal,
    onHangup: (listener) => {
      shell.hangUp = listener;
    },
    reportCrashes: (report) => {
      shell.crash = report;
    },
    written,
    stop: () => stopping.abort('SIGTERM'),
    ...(changes as Partial<TestShell>),
  };
  return shell;
}
