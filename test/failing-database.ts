/** A database that a test has fail: nothing can be stored, and nothing read either while its file cannot be opened. */
import type { Database } from '../src/database/database.ts';
import { GatehouseError } from '../src/errors.ts';
import { temporaryDatabase } from './temporary.ts';

type Fault = 'commits' | 'reads and commits';

export async function failingDatabase() {
  const database = await temporaryDatabase();
  let fault: Fault | undefined;
  const refusal = () => new GatehouseError('STORAGE_UNAVAILABLE', 'the disk has failed');
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
    commit: (job, urgency) => (fault ? Promise.reject(refusal()) : database.commit(job, urgency)),
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
