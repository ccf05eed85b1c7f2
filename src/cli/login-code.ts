/** `gatehouse login-code`: lets a person into the console. */
import type { LoginCode } from '../auth/schema.ts';
import type { Role } from '../principal.ts';
import type { Client } from './client.ts';
import { printJson, type Shell } from './shell.ts';

export interface LoginCodeOptions {
  role: Role[];
  label?: string;
  json?: boolean;
}

/** Code and address go to standard output, so that a script can take them; what a person should know goes to stderr. */
export async function createLoginCode(
  options: LoginCodeOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const roles = options.role.join(', ');
  const made = await client.call<LoginCode>('POST', '/local/login-codes', {
    roles: options.role,
    label: options.label ?? roles,
  });
  if (options.json) return printJson(shell, made);
  shell.stdout.write(`${made.code}\n${made.url}\n`);
  shell.stderr.write(
    `Type the code into the console, or open the address, within 10 minutes; it is good once, for ${roles}.\n`,
  );
}
