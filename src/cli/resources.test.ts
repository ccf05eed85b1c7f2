/** Commands on doors, devices and encoders, against a daemon that the test plays. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import type { Client } from './client.ts';
import { run } from './program.ts';
import { addDoor, kinds, listItems, setItem, showItem } from './resources.ts';
import { EXIT } from './shell.ts';
import { unlockDoor } from './unlock.ts';
import { writeKeys } from './write-keys.ts';

const { doors, encoder } = kinds('access');
const door = (id: string, name: string) => ({
  id,
  name,
  accessPointId: 1,
  connectionState: { lqi: 80 },
  state: { presence: 'connected', battery: 'low', applied: true },
});
const DOORS = [door('a', '214'), door('b', '2140'), door('c', 'Lobby'), door('d', 'lobby')];

function play(answer: (asked: string, body: unknown) => unknown = () => undefined) {
  const asked: string[] = [];
  const shell = testShell();
  const client: Client = {
    async call(method, path, body) {
      const line = `${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`;
      asked.push(line);
      const name = /[?&]name=(\w+)/.exec(path)?.[1] ?? '';
      const some = DOORS.filter(
        (one) => one.name.toLowerCase().includes(name.toLowerCase()) || one.id === name,
      );
      return (answer(line, body) ?? { items: some, next: null }) as never;
    },
    stream: () => {
      throw new Error('nothing is streamed');
    },
  };
  return { asked, shell, client };
}

it('are listed by filters, all pages of them', async () => {
  const { asked, shell, client } = play((line) =>
    line.includes('cursor') ? undefined : { items: [DOORS[0]], next: '7' },
  );
  await listItems(doors, { where: ['battery=low', 'sort=lqi'] }, client, shell);
  expect(asked).toEqual([
    'GET /access/doors?limit=100&battery=low&sort=lqi',
    'GET /access/doors?limit=100&battery=low&sort=lqi&cursor=7',
  ]);
  expect(shell.written.stdout).toMatch(/^NUMBER {2}NAME {3}PRESENCE .*\n1 {7}214 /);
  const wrong = listItems(doors, { where: ['battery'] }, client, shell);
  await expect(wrong).rejects.toMatchObject({ exitCode: EXIT.usage });
});

it('are shown by their name, and not by a part of it', async () => {
  const { shell, client } = play((line) =>
    line.includes('?') ? undefined : { at: line, name: 'n', id: 'a' },
  );
  await showItem(doors, '214', {}, client, shell);
  expect(shell.written.stdout).toBe(
    'id: a\nname: n\nat: GET /access/doors/a\nstate:\n  at: GET /access/doors/a/state\n  name: n\n  id: a\n',
  );
  await expect(showItem(doors, '21', {}, client, shell)).rejects.toThrow(
    /There is no door 21\. There are:\n {2}a {2}214/,
  );
  await expect(showItem(doors, 'LOBBY', {}, client, shell)).rejects.toThrow(
    '2 have the name LOBBY: give the id',
  );
});

it('are changed field by field, as text where that is what the field holds', async () => {
  const { asked, shell, client } = play();
  await setItem(
    doors,
    '214',
    ['pmsId=101', 'standOpenEnabled=true', 'groupId=null', 'name=a=b'],
    {},
    client,
    shell,
  );
  expect(asked.at(-1)).toBe(
    'PUT /access/doors/a {"pmsId":"101","standOpenEnabled":true,"groupId":null,"name":"a=b"}',
  );
  await setItem(encoder, 'a', ['metadata={"x":"y"}'], {}, client, shell);
  expect(asked.at(-1)).toBe('POST /encoder/a {"metadata":{"x":"y"}}');
  await expect(setItem(doors, '214', ['number=ten'], {}, client, shell)).rejects.toMatchObject({
    exitCode: EXIT.usage,
  });
});

it.each([
  ['confirmed', undefined, 'is open'],
  ['unknown', EXIT.failed, 'which is not known: go and look before you try again (silence).'],
] as const)('a door that is %s to be open ends with %s', async (outcome, exitCode, words) => {
  const { asked, shell, client } = play((line) =>
    line.startsWith('POST')
      ? { doorId: 'a', via: 'zigbee', outcome, reason: exitCode ? 'silence' : null }
      : undefined,
  );
  await expect(unlockDoor(doors, '214', {}, client, shell)).rejects.toMatchObject({ exitCode: EXIT.usage });
  expect(asked.filter((line) => line.startsWith('POST'))).toEqual([]);
  const ended = await unlockDoor(doors, '214', { yes: true }, client, shell).then(
    () => ({ exitCode: undefined, message: shell.written.stdout }),
    (error: { exitCode: number; message: string }) => error,
  );
  expect(ended.exitCode).toBe(exitCode);
  expect(ended.message).toContain(words);
  expect(asked.at(-1)).toBe('POST /access/doors/a/unlock');
});

const KEY = 'd3b0c2a4-7f1e-4b6a-9c8d-1e2f3a4b5c6d';
/** Answers to a PUT and the looks after it. */
function cards(...statuses: [status: string, entry: string][]) {
  const file = join(temporaryFolder(), 'keys.json');
  writeFileSync(file, `{"data": [{"keyId": "${KEY}", "blocks": ["00"]}]}`);
  let look = -1;
  const played = play((line) => {
    if (!line.startsWith('DELETE')) look = Math.min(look + 1, statuses.length - 1);
    const [status, entry] = statuses[look] ?? [];
    const isOpen = status === 'queued' || status === 'inProgress';
    return { status, position: isOpen ? 0 : null, entries: [{ keyId: KEY, status: entry }] };
  });
  return { ...played, file };
}

it('cards are followed one by one', async () => {
  const { shell, client, file, asked } = cards(
    ['queued', 'queued'],
    ['inProgress', 'cardRequested'],
    ['inProgress', 'cardRequested'],
    ['written', 'written'],
  );
  const written = writeKeys('desk-1', file, { request: 'r1' }, client, shell);
  await shell.clock.advance(1_000);
  await written;
  expect(shell.written.stdout).toBe(
    `card 1 of 1, key ${KEY}: put it on the encoder\ncard 1 of 1, key ${KEY}: is written\n`,
  );
  expect(asked[0]).toMatch(/^PUT \/encoder\/desk-1\/write-request\/r1 \{"data"/);
});

it('cards are cancelled by a signal, and their outcome is printed', async () => {
  const { shell, client, file, asked } = cards(['inProgress', 'writing'], ['unknown', 'unknown']);
  shell.stop();
  const written = writeKeys('desk-1', file, {}, client, shell);
  await expect(written).rejects.toThrow(/is unknown\.$/);
  expect(asked.map((line) => line.split(' ')[0])).toEqual(['PUT', 'DELETE', 'GET']);
  expect(shell.written.stdout).toContain('read it before it is used');
});

it('a shell completes commands and options', async () => {
  const shell = testShell();
  expect(await run(['completion'], shell)).toBe(0);
  const complete = (...words: string[]) => {
    const line = `COMP_WORDS=(gatehouse ${words.join(' ')} ''); COMP_CWORD=${words.length + 1}; _gatehouse; echo "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', `${shell.written.stdout}${line}`]);
    expect(stderr.toString()).toBe('');
    return stdout.toString().trim().split(' ');
  };
  expect(complete()).toEqual(expect.arrayContaining(['doors', 'unlock', 'token']));
  expect(complete('token')).toEqual(expect.arrayContaining(['create', 'revoke', '--help']));
  expect(complete('doors', 'list')).toEqual(expect.arrayContaining(['--where', '--json']));
  expect(complete('doors', 'list')).not.toContain('token');
});

it('a door is made, and its id printed', async () => {
  const { asked, shell, client } = play(() => ({ id: 'e', name: 'Room 101' }));
  await addDoor(doors, 'Room 101', ['groupId=lobby'], {}, client, shell);
  expect(asked).toEqual(['POST /access/doors {"groupId":"lobby","name":"Room 101"}']);
  expect(shell.written.stdout).toBe('The door Room 101 is made: e\n');
});

it('one card is written from the command line alone, and not beside a file', async () => {
  const { asked, shell, client } = play(() => ({ status: 'written', position: null, entries: [] }));
  await writeKeys('desk-1', undefined, { block: ['6a1f', '09c2'], request: 'r' }, client, shell);
  expect(asked[0]).toMatch(
    /^PUT \/encoder\/desk-1\/write-request\/r \{"data":\[\{"keyId":"[\da-f-]{36}","blocks":\["6a1f","09c2"\]\}\]\}$/,
  );
  for (const [file, options] of [
    [undefined, {}],
    ['keys.json', { block: ['6a1f'] }],
  ] as const)
    await expect(
      writeKeys('desk-1', file, options as { block?: string[] }, client, shell),
    ).rejects.toMatchObject({
      exitCode: EXIT.usage,
    });
});
