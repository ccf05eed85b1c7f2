/**
 * A process with a database: each line of standard input is committed as the action of an audit row, and what became of
 * it is printed as a line of JSON. Usage: line-writer.ts FILE
 */
import { createInterface } from 'node:readline';
import { openDatabase } from '../../src/platform/database/database.ts';

const [file = ''] = process.argv.slice(2);
const database = await openDatabase({ file, monotonic: () => performance.now(), failed: () => {} });
const insert = database.prepare<[string]>(
  `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
   VALUES (0, '', '', ?, '', '', '{}', '', x'00')`,
);
process.stdout.write('{}\n');
for await (const line of createInterface(process.stdin)) {
  const outcome = await database
    .commit(() => insert.run(line))
    .then(
      () => ({ stored: true }),
      ({ code, message, details }) => ({ stored: false, code, message, details }),
    );
  const { outcomeUnknown } = database.figures();
  process.stdout.write(`${JSON.stringify({ ...outcome, outcomeUnknown })}\n`);
}
