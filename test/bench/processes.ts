/** What Linux says of a process, and holding it up. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** USER_HZ, which Linux has had at 100 on all its platforms for these files. */
const TICKS_PER_SECOND = 100;

export function cpuSeconds(pid: number): number {
  // The name of the program may hold spaces and parentheses; what is counted begins after its last one.
  const [, rest = ''] = /^.*\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  const [userTicks, systemTicks] = rest.split(' ').slice(11, 13);
  return (Number(userTicks) + Number(systemTicks)) / TICKS_PER_SECOND;
}

/** Stops the process for `stoppedMs` of every `everyMs` until disposed, and lets it go on then. */
export function stallProcess(pid: number, stoppedMs: number, everyMs: number): AsyncDisposable {
  const stop = new AbortController();
  const stalling = (async () => {
    while (!stop.signal.aborted) {
      process.kill(pid, 'SIGSTOP');
      await sleep(stoppedMs);
      process.kill(pid, 'SIGCONT');
      await sleep(everyMs - stoppedMs);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await stalling;
    },
  };
}

export function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
