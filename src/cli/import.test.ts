import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type DoorSite, NOWHERE, openDoorSite, SYSTEM } from '../../test/door-site.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { systemClock } from '../platform/clock.ts';
import { listenUnix } from '../platform/http/server.ts';
import { silentLog } from '../platform/log.ts';
import { uuidV5 } from '../platform/uuid.ts';
import { run } from './program.ts';

const SITE = `groups:
  - { id: lobby, name: Lobby }
doors:
  - accessPointId: 7
    name: Gate
    groupId: lobby
`;

/** UUIDv5 of access point 7 in the namespace of the system. */
const DRAWN = uuidV5(SYSTEM, '["door","7",0]');

let site: DoorSite;
let shell: TestShell;
let folder: string;
let socket: string;
beforeEach(async () => {
  site = await openDoorSite();
  folder = temporaryFolder();
  socket = join(folder, 'admin.sock');
  shell = testShell({ clock: systemClock as TestShell['clock'] });
  const server = await listenUnix({
    app: site.local,
    clock: site.clock,
    log: silentLog,
    path: socket,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
});

/** Runs the command on a file with this text. */
function imported(text: string, ...options: string[]): Promise<number> {
  const file = join(folder, 'site.yaml');
  writeFileSync(file, text);
  shell.written.stdout = '';
  shell.written.stderr = '';
  return run(['import', file, '--socket', socket, ...options], shell);
}
const doorNames = async () => {
  const { body } = await site.desk('GET', '/doors');
  return (body.items as { name: string }[]).map(({ name }) => name);
};

it('gatehouse export prints a file that import takes back', async () => {
  await imported(SITE, '--yes');
  shell.written.stdout = '';
  expect(await run(['export', '--socket', socket], shell)).toBe(0);
  const text = shell.written.stdout;
  expect(text).toMatch(/^# A site, .*\ngroups:\n {2}- id: lobby\n {4}name: Lobby\n/);
  expect(await imported(text)).toBe(0);
  expect(shell.written.stdout).toBe('Nothing to do.\n');
  shell.written.stdout = '';
  await run(['export', '--socket', socket, '--json'], shell);
  expect(JSON.parse(shell.written.stdout).doors).toMatchObject([{ id: DRAWN, accessPointId: 7 }]);
});

describe('gatehouse import', () => {
  it('shows what changes, writes it, and has nothing to do the second time', async () => {
    expect(await imported(SITE, '--yes')).toBe(0);
    expect(shell.written.stdout).toBe(
      [
        '+ group lobby (Lobby)',
        '    name: "Lobby"',
        `+ door ${DRAWN} (Gate)`,
        '    name: "Gate"',
        '    groupId: "lobby"',
        '    accessPointId: 7',
        'Written: 2 added, 0 changed, 0 unchanged.',
        '',
      ].join('\n'),
    );
    expect(await doorNames()).toEqual(['Gate']);
    expect(await imported(SITE)).toBe(0);
    expect(shell.written.stdout).toBe('Nothing to do.\n');
  });

  it('says from what to what, and what it leaves alone', async () => {
    await imported(SITE, '--yes');
    expect(await imported('doors: [{ accessPointId: 7, name: Main gate }]', '--yes')).toBe(0);
    expect(shell.written.stdout).toMatch(
      /^~ door [0-9a-f-]{36} \(Main gate\)\n {4}name: "Gate" → "Main gate"\n1 entry that is on the site and not in the file: left alone, nothing is ever deleted\.\nWritten: 0 added, 1 changed, 0 unchanged\.\n$/,
    );
  });

  it('writes nothing in a dry run', async () => {
    expect(await imported(SITE, '--dry-run')).toBe(0);
    expect(shell.written.stdout).toContain(`+ door ${DRAWN} (Gate)`);
    expect(shell.written.stdout).toContain('Nothing was written: this was a dry run.');
    expect(await doorNames()).toEqual([]);
  });

  it.each([
    ['y', 0, ['Gate']],
    ['', 1, []],
  ])('asks on a terminal; %j', async (answer, exitCode, names) => {
    shell.stdin.isTTY = true;
    shell.stdin.write(`${answer}\n`);
    expect(await imported(SITE)).toBe(exitCode);
    expect(shell.written.stderr).toContain('Write these 2 changes? [y/N]');
    expect(await doorNames()).toEqual(names);
  });

  it('writes nothing but what it showed: who changed the site meanwhile is not overwritten', async () => {
    await imported(SITE, '--yes');
    shell.stdin.isTTY = true;
    const running = imported(SITE.replace('name: Gate', 'name: Main gate'));
    await vi.waitFor(() => expect(shell.written.stderr).toContain('Write this change? [y/N]'));
    await site.desk('PUT', `/doors/${DRAWN}`, { name: 'Side gate' });
    shell.stdin.write('y\n');
    expect(await running).toBe(1);
    expect(shell.written.stderr).toContain(
      'The site changed meanwhile, and nothing was written: import again and look at the new changes.',
    );
    expect(await doorNames()).toEqual(['Side gate']);
  });

  it('writes nothing when no one can be asked, and says what to do', async () => {
    for (const options of [[], ['--json']]) {
      expect(await imported(SITE, ...options)).toBe(2);
      expect(shell.written.stderr).toBe(
        'Write these 2 changes? No one is there to answer: add --yes to go on.\n',
      );
      expect(await doorNames()).toEqual([]);
    }
  });

  it('shows the same ids each time, and stores them', async () => {
    await imported(SITE, '--dry-run');
    const { stdout } = shell.written;
    await imported(SITE, '--dry-run');
    expect(shell.written.stdout).toBe(stdout);
    expect(stdout).toContain(`+ door ${DRAWN} (Gate)`);
    await imported(SITE, '--yes');
    expect((await site.desk('GET', `/doors/${DRAWN}`)).body).toMatchObject({ accessPointId: 7 });
  });

  it('stores what no one knows, and says so at its place', async () => {
    expect(await imported(SITE.replace('groupId: lobby', 'groupId: loby'), '--yes')).toBe(0);
    expect(shell.written.stdout).toMatch(
      /! .*site\.yaml:6:14: doors\[0\]\.groupId: there is no group loby, in the file or on the site \(did you mean "lobby"\?\): stored as unknown\nWritten: 2 added/,
    );
    expect(await doorNames()).toEqual(['Gate']);
  });

  it('does not ask with --yes, nor when there is nothing to do', async () => {
    shell.stdin.isTTY = true;
    expect(await imported(SITE, '--yes')).toBe(0);
    expect(await imported(SITE)).toBe(0);
    expect(shell.written.stderr).toBe('');
  });

  it('prints one JSON document for a program', async () => {
    await imported(SITE, '--json', '--dry-run');
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ written: false, counts: { added: 2 } });
    await imported(SITE, '--json', '--yes');
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ written: true, counts: { added: 2 } });
    await imported(SITE, '--json');
    expect(JSON.parse(shell.written.stdout)).toMatchObject({ written: false, counts: { unchanged: 2 } });
  });
});

describe('a file that cannot be used ends with 2 and shows the place', () => {
  beforeEach(() => {
    shell.stderr.isTTY = true;
  });
  it.each([
    ['what only the daemon can see', SITE.replace('groupId: lobby', `gatewayId: ${NOWHERE}`), 6, 16],
    ['a duplicate', `${SITE}  - accessPointId: 7\n`, 7, 20],
    ['a circle', 'templates:\n  - { id: a, extends: b }\n  - { id: b, extends: a }\n', 2, 23],
    ['a setting no one knows', 'doors:\n  - accesPointId: 7\n', 2, 5],
    ['a value out of bounds', 'doors:\n  - accessPointId: 0\n', 2, 20],
    [
      'a time that is none',
      'schedules:\n  - id: s\n    intervals: [{ days: [mon], start: 8:00, end: 09:00 }]',
      3,
      39,
    ],
    ['broken YAML', 'doors: [', 1, 9],
  ])('%s', async (_name, text, line, column) => {
    expect(await imported(text)).toBe(2);
    expect(shell.written.stderr).toContain(`site.yaml:${line}:${column}: `);
    expect(shell.written.stderr).toContain('^');
    expect(await doorNames()).toEqual([]);
  });

  it('says what is wrong in the words of the file', async () => {
    await imported(SITE.replace('groupId: lobby', `gatewayId: ${NOWHERE}`));
    expect(shell.written.stderr).toContain(
      'doors[0].gatewayId: there is no Zigbee gateway nowhere: see zgates of the configuration\n    6 |     gatewayId: nowhere\n      |                ^',
    );
    await imported('doors:\n  - accesPointId: 7\n');
    expect(shell.written.stderr).toContain('did you mean "accessPointId"?');
  });

  it('says what the file and what the daemon finds at once, each once', async () => {
    const templates =
      'templates:\n  - { id: a, extends: b }\n  - { id: b, extends: a }\n  - { id: c, extends: gone }\n';
    expect(await imported(`${templates}doors:\n  - accessPointId: 7\n  - accessPointId: 7\n`)).toBe(2);
    const { stderr } = shell.written;
    expect(stderr.match(/site\.yaml:\d+:\d+: .*/g)).toEqual([
      'site.yaml:2:23: templates[0].extends: goes in a circle: a → b → a',
      'site.yaml:4:23: templates[2].extends: there is no template gone, in the file or on the site',
      'site.yaml:7:20: doors[1].accessPointId: another one of doors has 7 as well: see line 6',
    ]);
  });

  it('a file that is not there', async () => {
    expect(await run(['import', join(folder, 'none.yaml'), '--socket', socket], shell)).toBe(2);
    expect(shell.written.stderr).toMatch(/cannot read the site's file .*: there is no such file/);
  });
});

it('ends with 3 when the daemon does not run', async () => {
  const file = join(folder, 'site.yaml');
  writeFileSync(file, SITE);
  expect(await run(['import', file, '--socket', join(folder, 'none.sock')], shell)).toBe(3);
});
