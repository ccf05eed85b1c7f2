/**
 * Ends this process by SIGKILL at a time, however it hangs then: a write that a failing disk does not take holds up the event
 * loop, and with it every timer and signal. Hence a thread.
 */
import { Worker } from 'node:worker_threads';

const THREAD = `
const { writeSync } = require('node:fs');
const { workerData: { milliseconds, lastWords } } = require('node:worker_threads');
setTimeout(() => {
  try {
    writeSync(2, lastWords);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}, milliseconds);
`;

/** `lastWords` go to standard error before. Does not keep the process from ending by itself. */
export function killAfter(milliseconds: number, lastWords: string): void {
  const thread = new Worker(THREAD, {
    eval: true,
    execArgv: [],
    env: {},
    workerData: { milliseconds, lastWords },
  });
  thread.unref();
  // Without the thread systemd's own limit is what ends this process.
  thread.on('error', () => undefined);
}
