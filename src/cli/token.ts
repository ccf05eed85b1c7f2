/** `gatehouse token create`, `renew`, `list` and `revoke`. */
import type { Role } from '../platform/principal.ts';
import type { CreatedToken, RenewedToken, Token } from '../services/auth/schema.ts';
import { allItems, type Client } from './client.ts';
import { CommandFailed, confirmed, printJson, type Shell, styled, table } from './shell.ts';

export interface CreateOptions {
  role: Role[];
  label?: string;
  days?: number;
  json?: boolean;
}

/** The token goes to standard output alone, so that a script can take it; what a person should know goes to stderr. */
export async function createToken(options: CreateOptions, client: Client, shell: Shell): Promise<void> {
  const created = await client.call<CreatedToken>('POST', '/tokens', {
    roles: options.role,
    label: options.label ?? options.role.join(', '),
    ...(options.days !== undefined && { expiresInDays: options.days }),
  });
  if (options.json) return printJson(shell, created);
  shell.stdout.write(`${created.token}\n`);
  const roles = options.role.join(', ');
  shell.stderr.write(
    `Token ${created.id} for ${roles}, valid until ${day(created.expiresAt)}. It is shown this once: keep it now.\n`,
  );
}

export async function renewToken(
  id: string,
  options: { days?: number; overlapHours?: number; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const renewed = await client.call<RenewedToken>('POST', `/local/tokens/${encodeURIComponent(id)}/renewal`, {
    ...(options.days !== undefined && { expiresInDays: options.days }),
    ...(options.overlapHours !== undefined && { overlapHours: options.overlapHours }),
  });
  if (options.json) return printJson(shell, renewed);
  shell.stdout.write(`${renewed.token}\n`);
  const { expiresAt, previousUntil } = renewed;
  shell.stderr.write(
    `Token ${id} is valid until ${day(expiresAt)} with this new secret, shown this once. The old one is good until ${previousUntil}.\n`,
  );
}

export async function listTokens(options: { json?: boolean }, client: Client, shell: Shell): Promise<void> {
  const tokens = await allItems<Token>('/tokens', '', client);
  if (options.json) return printJson(shell, tokens);
  if (tokens.length === 0) {
    shell.stderr.write(
      'There are no tokens yet. Make one with: gatehouse token create --role service-tool\n',
    );
    return;
  }
  const rows = tokens.map((token) => [
    token.id,
    token.kind,
    token.status,
    token.roles.join(','),
    day(token.expiresAt),
    token.lastUsedAt ? day(token.lastUsedAt) : 'never',
    token.label,
  ]);
  const [head = '', ...lines] = table([
    ['ID', 'KIND', 'STATUS', 'ROLES', 'EXPIRES', 'LAST USED', 'LABEL'],
    ...rows,
  ]).split(/(?<=\n)/);
  shell.stdout.write(styled(shell.stdout, 'bold', head) + lines.join(''));
}

export async function revokeToken(
  id: string,
  options: { yes?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  if (
    !options.yes &&
    !(await confirmed(shell, `Revoke token ${id}? Anyone who uses it is shut out at once.`))
  )
    throw new CommandFailed('Nothing was revoked.');
  await client.call('DELETE', `/tokens/${encodeURIComponent(id)}?confirm=true`);
  shell.stderr.write(`Token ${id} is revoked.\n`);
}

/** 2026-11-21 of a date-time. */
function day(dateTime: string): string {
  return dateTime.slice(0, 10);
}
