/** `gatehouse login-code`: lets a person sign in. */
import type { Role } from '../platform/principal.ts';
import type { LoginCode } from '../services/auth/schema.ts';
import type { Client } from './client.ts';
import { printJson, type Shell } from './shell.ts';

/** The code goes to standard output, so that a script can take it; what a person should know goes to stderr. */
export async function createLoginCode(
  options: { role: Role[]; label?: string; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const roles = options.role.join(', ');
  const made = await client.call<LoginCode>('POST', '/login-codes', {
    roles: options.role,
    label: options.label ?? roles,
  });
  if (options.json) return printJson(shell, made);
  shell.stdout.write(`${made.code}\n`);
  shell.stderr.write(
    `Good once, within 10 minutes, for ${roles}. Anyone who signs in sends POST /session of the interface with {"code": "${made.code}"}; the cookie in the answer is the session.\n`,
  );
}
