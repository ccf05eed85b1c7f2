/** `gatehouse reload`: has the daemon read its configuration again, and says what came of it. */
import type { Reloaded } from '../app/reload/schema.ts';
import type { Client } from './client.ts';
import { printJson, type Shell } from './shell.ts';

export async function reload({ json }: { json?: boolean }, client: Client, shell: Shell): Promise<void> {
  const done = await client.call<Reloaded>('POST', '/local/reload');
  if (json) return printJson(shell, done);
  const { opened, reopened, closed, needsRestart } = done;
  const lists: [string, string[]][] = [
    ['opened', opened],
    ['opened again with other settings', reopened],
    ['closed', closed],
  ];
  const changes = lists.filter(([, links]) => links.length > 0);
  for (const [what, links] of changes) shell.stdout.write(`Links ${what}: ${links.join(', ')}\n`);
  if (changes.length === 0) shell.stdout.write('No link has changed.\n');
  if (needsRestart.length > 0)
    shell.stderr.write(
      `Not in force yet: ${needsRestart.join(', ')}. Restart the daemon (systemctl restart gatehouse); a link that was busy follows at the next reload, too.\n`,
    );
}
