/**
 * A process to be killed: commits rows as fast as it can, 20 at a time, and prints the number of each once its promise
 * has resolved. Usage: database-writer.ts FILE FIRST_NUMBER
 */
import { openDatabase } from '../../src/platform/database/database.ts';

const [file = '', first = '1'] = process.argv.slice(2);
const database = await openDatabase({
  file,
  monotonic: () => performance.now(),
  failed: (error) => console.error(error),
});
const insert = database.prepare<[string, string]>(
  `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
   VALUES (0, '', '', ?, ?, '', '{}', '', x'00')`,
);
const CONTENT = 'x'.repeat(300);
let number = Number(first);
for (;;) {
  const batch = Array.from({ length: 20 }, async () => {
    const mine = number++;
    await database.commit(() => insert.run(`${mine}`, CONTENT));
    process.stdout.write(`${mine}\n`);
  });
  await Promise.all(batch);
}
