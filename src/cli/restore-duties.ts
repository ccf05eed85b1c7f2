/** What of the database that is replaced is of use, as what it has to close, as far as it can be believed (src/resources/doors/closings-after-loss.ts). */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Connection, openConnection } from '../platform/database/connection.ts';
import { commitsLost } from '../platform/database/write-ahead-log.ts';
import { type Duty, dutiesIn } from '../resources/doors/closings-after-loss.ts';
import { isUnfinished } from './leftovers.ts';
import { READ_SYSTEM, type SystemRow } from './restore-checks.ts';

/** Undefined: there is none of this system, or it does not say all. A restore that was cut short may have taken its log away. */
export function dutiesInPlace(file: string, systemId: string): Duty[] | undefined {
  return inPlace(file, (connection) =>
    systemIdIn(connection) === systemId ? dutiesIn(connection) : undefined,
  );
}

/** Whose it is; undefined: there is none, or it does not say. */
export function systemInPlace(file: string): string | undefined {
  return inPlace(file, systemIdIn);
}

const systemIdIn = (connection: Connection) =>
  connection.prepare<[], SystemRow>(READ_SYSTEM).get()?.system_id;

function inPlace<Read>(file: string, read: (connection: Connection) => Read): Read | undefined {
  try {
    if (!existsSync(file) || isUnfinished(dirname(file)) || commitsLost(file) > 0) return undefined;
    using connection = openConnection(file);
    return read(connection);
  } catch {
    return undefined;
  }
}
