/** src/main.ts for tests: a daemon whose hosts simulate its loopback links (host.ts). */
import { join } from 'node:path';
import { run } from '../../../src/cli/program.ts';
import { systemClock } from '../../../src/platform/clock.ts';

process.umask(0o077);
const stopping = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopping.abort(signal));

process.exit(
  await run(process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    journal: false,
    nodeVersion: process.versions.node,
    clock: systemClock,
    processes: {
      execPath: process.execPath,
      kill: (pid) => void process.kill(pid, 'SIGKILL'),
      hostEntry: join(import.meta.dirname, 'host.ts'),
    },
    stopping: stopping.signal,
    onHangup: (listener) => void process.on('SIGHUP', listener),
    reportCrashes: () => undefined,
  }),
);
