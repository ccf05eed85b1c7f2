/** `gatehouse support-bundle`: what a person who helps from elsewhere needs to see, as a file to send. */
import type { Client } from './client.ts';
import { printJson, type Shell } from './shell.ts';

export async function printSupportBundle(client: Client, shell: Shell): Promise<void> {
  printJson(shell, await client.call<object>('GET', '/support-bundle'));
}
