import { onTestFinished } from 'vitest';

type Task = (signal: AbortSignal) => Promise<unknown>;

/** Runs what the daemon keeps running, until the test ends or what it returns is called. */
export function runUntilTestEnds(...tasks: Task[]): () => Promise<void> {
  const stop = new AbortController();
  const ended = Promise.allSettled(tasks.map((run) => run(stop.signal)));
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(end);
  return end;
}
