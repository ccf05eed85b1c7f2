/** What must work for the daemon to count as alive, besides that its interface answers (src/cli/serve.ts). */
import type { Database } from '../database/database.ts';
import type { Field } from '../field/field.ts';
import type { Vital } from './watchdog.ts';

/** A host is replaced after 3 s without a heartbeat; one this silent means that no one minds the hosts any more. */
const HOST_UNMINDED_MS = 15_000;

/** A writer that refuses, because the disk is full or broken, works: another start would not mend the disk. */
export function vitalsOf(database: Pick<Database, 'commit'>, field: Pick<Field, 'state'>): Vital[] {
  return [
    { name: 'database writer', check: () => database.commit(() => {}, 'urgent').catch(() => {}) },
    {
      name: 'supervisor of hosts',
      async check() {
        // A daemon held up by its disk runs timers before it reads: first let it hear what hosts sent meanwhile.
        await new Promise((resolve) => setImmediate(resolve));
        const unminded = field.state().hosts.find((host) => (host.heartbeatAgeMs ?? 0) > HOST_UNMINDED_MS);
        if (unminded) throw new Error(`host ${unminded.name} is silent and no one replaces it`);
      },
    },
  ];
}
