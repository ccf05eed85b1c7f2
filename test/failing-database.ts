/** A database that a test has fail: nothing can be stored, and nothing read either while its file cannot be opened. */
import { vi } from 'vitest';
import type { Database } from '../src/platform/database/database.ts';
import { GatehouseError } from '../src/platform/errors.ts';
import { temporaryDatabase } from './temporary.ts';

/** Of commits alone: the jobs run, and COMMIT fails after them. */
type Fault = 'commits' | 'reads and commits';

const refusal = () => new GatehouseError('STORAGE_UNAVAILABLE', 'the disk has failed');

/** The job runs, and its COMMIT fails. */
const commitFailed: (commit: Database['commit']) => Database['commit'] = (commit) => (job, urgency) =>
  commit(() => {
    job();
    throw refusal();
  }, urgency);

/** Commits of this database fail after their jobs, until what is returned is called. */
export function failCommits(database: Database): () => void {
  const failing = commitFailed(database.commit);
  const spy = vi.spyOn(database, 'commit').mockImplementation(failing);
  return () => spy.mockRestore();
}

export async function failingDatabase() {
  const database = await temporaryDatabase();
  let fault: Fault | undefined;
  function readable<T>(read: () => T): T {
    if (fault === 'reads and commits') throw refusal();
    return read();
  }
  const faulty: Database = {
    ...database,
    prepare(sql) {
      const { run, get, all } = database.prepare(sql);
      return {
        run,
        get: (...parameters) => readable(() => get(...parameters)) as never,
        all: (...parameters) => readable(() => all(...parameters)) as never,
      };
    },
    commit(job, urgency) {
      if (fault === undefined) return database.commit(job, urgency);
      if (fault === 'reads and commits') return Promise.reject(refusal());
      return commitFailed(database.commit)(job, urgency);
    },
  };
  return {
    database: faulty,
    fail(kind: Fault): void {
      fault = kind;
    },
    heal(): void {
      fault = undefined;
    },
  };
}
