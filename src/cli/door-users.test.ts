/** PINs and cards from the command line, against a daemon that the test plays. */
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import type { Client } from './client.ts';
import { listUsers, removeUser, setUser } from './door-users.ts';
import { kinds } from './resources.ts';
import { EXIT } from './shell.ts';

const { doors } = kinds('access');
const USER = { userId: 7, status: 'enabled', hasPin: true, hasCard: false, weekDays: null, yearDays: null };

function play(stdin = '') {
  const asked: string[] = [];
  const shell = { ...testShell(), stdin: Readable.from([stdin]) };
  const client: Client = {
    async call(method, path, body) {
      if (path.includes('name=')) return { items: [{ id: 'a', name: '214' }], next: null } as never;
      asked.push(`${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`);
      const refused = { ...USER, userId: 9, state: 'refused', failure: 'pin: duplicate code' };
      const items = [{ ...USER, state: 'applied', failure: null }, refused];
      return (method === 'GET' ? { items, next: null } : items[0]) as never;
    },
    stream: () => {
      throw new Error('nothing is streamed');
    },
  };
  return { asked, shell, client };
}

it('lists users with their state', async () => {
  const { asked, shell, client } = play();
  await listUsers(doors, '214', {}, client, shell);
  expect(asked).toEqual(['GET /access/doors/a/users?limit=100']);
  expect(shell.written.stdout.split('\n').slice(1)).toEqual([
    expect.stringMatching(/^7 +enabled +PIN +applied$/),
    expect.stringMatching(/^9 +enabled +PIN +refused: pin: duplicate code$/),
    '',
  ]);
});

it('takes a code from standard input', async () => {
  const { asked, shell, client } = play('8642\n');
  await setUser(doors, '214', '7', { pin: true, disable: true }, client, shell);
  expect(asked).toEqual(['PUT /access/doors/a/users/7 {"pin":"8642","status":"disabled"}']);
  expect(shell.written.stdout).toBe('User 7 is applied.\n');
});

it.each([{}, { pin: true, card: true }, { enable: true, disable: true }])(
  'is refused: %j',
  async (options) => {
    const { asked, shell, client } = play();
    const wrong = setUser(doors, '214', '7', options, client, shell);
    await expect(wrong).rejects.toMatchObject({ exitCode: EXIT.usage });
    expect(asked).toEqual([]);
  },
);

it('removes one', async () => {
  const { asked, shell, client } = play();
  await removeUser(doors, '214', '7', {}, client, shell);
  expect(asked).toEqual(['DELETE /access/doors/a/users/7']);
});
