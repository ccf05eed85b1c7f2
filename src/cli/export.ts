/** `gatehouse export`: the site as a file that `gatehouse import` takes back. */
import { yamlText } from '../platform/yaml/yaml-file.ts';
import type { Client } from './client.ts';
import { printJson, type Shell } from './shell.ts';

export async function exportSite(options: { json?: boolean }, client: Client, shell: Shell): Promise<void> {
  const site = await client.call<object>('GET', '/site');
  if (options.json) return printJson(shell, site);
  shell.stdout.write(`# A site, by gatehouse export. gatehouse import takes it back.\n${yamlText(site)}`);
}

export async function printSupportBundle(client: Client, shell: Shell): Promise<void> {
  printJson(shell, await client.call<object>('GET', '/support-bundle'));
}
