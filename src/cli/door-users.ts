/** `gatehouse doors users`, `set-user` and `remove-user`: PINs and cards on the lock of a door. */
import { text } from 'node:stream/consumers';
import type { LockUser } from '../resources/doors/lock-memory-schema.ts';
import { allItems, type Client } from './client.ts';
import { found, type Kind } from './resources.ts';
import { CommandFailed, EXIT, printJson, type Shell, styled, table } from './shell.ts';
import { printable } from './terminal-text.ts';

const usersOf = async (doors: Kind, door: string, client: Client) =>
  `${doors.path}/${(await found(doors, door, client)).itsId}/users`;

export async function listUsers(
  doors: Kind,
  door: string,
  { json }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const users = await allItems<LockUser>(await usersOf(doors, door, client), '', client);
  if (json) return printJson(shell, users);
  const rows = users.map((user) => [String(user.userId), user.status ?? '-', codesOf(user), stateOf(user)]);
  const [first = '', ...lines] = table([['USER', 'STATUS', 'HAS', 'STATE'], ...rows]).split(/(?<=\n)/);
  shell.stdout.write(styled(shell.stdout, 'bold', first) + lines.join(''));
}

function codesOf({ hasPin, hasCard, weekDays, yearDays }: LockUser): string {
  const has = [hasPin && 'PIN', hasCard && 'card', (weekDays ?? yearDays) && 'times'];
  return has.filter(Boolean).join(', ') || '-';
}

const stateOf = ({ state, failure }: LockUser) =>
  failure === null ? state : `${state}: ${printable(failure)}`;

export interface SetUserOptions {
  pin?: boolean;
  card?: boolean;
  disable?: boolean;
  enable?: boolean;
  json?: boolean;
}

/** A code comes by standard input: what stands in a command line is in the history of the shell, and other users see it. */
export async function setUser(
  doors: Kind,
  door: string,
  user: string,
  { pin, card, disable, enable, json }: SetUserOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  if ((pin && card) || (disable && enable) || !(pin || card || disable || enable))
    throw new CommandFailed('Expected --pin or --card, or --disable or --enable.', EXIT.usage);
  const code = pin || card ? (await text(shell.stdin)).trim() : undefined;
  const body = {
    ...(pin && { pin: code }),
    ...(card && { card: code }),
    ...((disable || enable) && { status: disable ? 'disabled' : 'enabled' }),
  };
  const path = `${await usersOf(doors, door, client)}/${encodeURIComponent(user)}`;
  const changed = await client.call<LockUser>('PUT', path, body);
  if (json) return printJson(shell, changed);
  shell.stdout.write(`User ${changed.userId} is ${stateOf(changed)}.\n`);
}

export async function removeUser(
  doors: Kind,
  door: string,
  user: string,
  { json }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const path = `${await usersOf(doors, door, client)}/${encodeURIComponent(user)}`;
  const removed = await client.call<LockUser>('DELETE', path);
  if (json) return printJson(shell, removed);
  shell.stdout.write(`User ${removed.userId} is removed as soon as the lock has confirmed it.\n`);
}
