/** What the database that is replaced has to close, as far as it can be believed (src/resources/doors/restored.ts). */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { openConnection } from '../platform/database/connection.ts';
import { commitsLost } from '../platform/database/write-ahead-log.ts';
import { type Duty, dutiesIn } from '../resources/doors/restored.ts';
import { isUnfinished } from './leftovers.ts';
import { READ_SYSTEM, type SystemRow } from './restore-checks.ts';

/** Undefined: there is none of this system, or it does not say all. A restore that was cut short may have taken its log away. */
export function dutiesInPlace(file: string, systemId: string): Duty[] | undefined {
  try {
    if (!existsSync(file) || isUnfinished(dirname(file)) || commitsLost(file) > 0) return undefined;
    using connection = openConnection(file);
    const system = connection.prepare<[], SystemRow>(READ_SYSTEM).get();
    return system?.system_id === systemId ? dutiesIn(connection) : undefined;
  } catch {
    return undefined;
  }
}
