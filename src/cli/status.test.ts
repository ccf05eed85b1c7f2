import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { busWarning } from '../../drivers/contract/bus-warnings.ts';
import { SINK, WELL } from '../../test/cli/status.ts';
import { testShell } from '../../test/shell.ts';
import type { Status } from '../services/status/schema.ts';
import { absentOf } from './absent.ts';
import type { Client } from './client.ts';
import { run } from './program.ts';
import { findingsOf } from './status.ts';

const OFFLINE = {
  doorId: '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a41',
  name: 'Room 214',
  accessPointId: 214,
  code: 'BATTERY_LOW',
  message: 'The lock was last heard at 2026-01-01T00:00:00.000Z, its battery low (7 %): change the battery.',
};
const LEFT_BEHIND = {
  deviceId: '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40',
  name: 'Floor 2',
  zigbeeChannel: 20,
  locks: [{ doorId: 'd', name: 'Suite', mac: '00124b0001a2b3c4', lastSeen: 0, heardOn: 11 }],
  message: 'Operate it.',
};

const CLUSTER = {
  name: 'a',
  epoch: 3,
  acts: true,
  durability: 'local' as const,
  standby: { name: 'b', takesOver: true, reason: null, behind: 0, seenSeconds: 0.2 },
  waitingBytes: 0,
  lastError: null,
};
const [certificate] = WELL.certificates as [Status['certificates'][number]];
const [bus] = WELL.buses as [Status['buses'][number]];
const said = (changes: Partial<Status>, subject: string) =>
  findingsOf({ ...WELL, ...changes }).find((finding) => finding.subject === subject);

const provider = (changes: Partial<NonNullable<Status['identityProvider']>>) =>
  WELL.identityProvider && { ...WELL.identityProvider, ...changes };

it('finds nothing wrong with an installation that is well', () => {
  expect(findingsOf(WELL).filter(({ severity }) => severity !== 'good')).toEqual([]);
  expect(said({ sinks: [] }, 'upstream')).toMatchObject({ severity: 'good' });
});

it.each<[Partial<Status>, string, string, RegExp]>([
  [{ encoders: { ...WELL.encoders, connected: 1 } }, 'encoders', 'doubtful', /1 of 2 connected/],
  [{ identityProvider: provider({ ageSeconds: 8 * 86_400 }) }, 'identity provider', 'doubtful', /of 8 d ago/],
  [
    { identityProvider: provider({ isUsable: false, lastError: 'no answer' }) },
    'identity provider',
    'bad',
    /refused: no answer/,
  ],
  [
    { doors: { ...WELL.doors, notLocked: 1, notSeenLocked: [{ ...OFFLINE, message: 'has to be locked' }] } },
    'door 214 Room 214',
    'bad',
    /^has to be locked$/,
  ],
  [
    { doors: { ...WELL.doors, offline: [OFFLINE] } },
    'door 214 Room 214',
    'doubtful',
    /^The lock was last heard at .*: change the battery\.$/,
  ],
  [
    {
      missingDevices: [
        {
          deviceId: 'd',
          name: 'Lobby',
          hwId: 'io-1',
          bus: 'bus-1',
          code: 'SILENT',
          message: 'io-1 does not answer',
          parameters: {},
        },
      ],
    },
    'rs485 device Lobby',
    'doubtful',
    /^io-1 does not answer$/,
  ],
  [{ cluster: CLUSTER }, 'cluster', 'good', /^a is active \(epoch 3\); b takes over .*, 0 messages behind$/],
  [{ cluster: { ...CLUSTER, acts: false } }, 'cluster', 'bad', /nothing moves until it does/],
  [{ cluster: { ...CLUSTER, lastError: 'no answer' } }, 'cluster', 'bad', /stores no commits: no answer/],
  [{ cluster: { ...CLUSTER, standby: null } }, 'cluster', 'doubtful', /nothing takes over/],
  [
    { cluster: { ...CLUSTER, standby: { ...CLUSTER.standby, takesOver: false, reason: 'another version' } } },
    'cluster',
    'doubtful',
    /b would not take over: another version/,
  ],
  [{ clock: { ...WELL.clock, synchronised: false } }, 'clock', 'doubtful', /timedatectl/],
  [
    {
      clock: {
        ...WELL.clock,
        synchronised: false,
        jump: { known: '2026-01-03T04:00:05.000Z', acceptedInSeconds: 21_600 },
      },
    },
    'clock',
    'bad',
    /but by what has passed it is 2026-01-03T04:00:05.000Z: it is believed in 6 h/,
  ],
  [
    {
      sinks: [
        {
          ...SINK,
          connected: false,
          lastError: 'refused',
          waiting: 1,
          waitingBytes: 1_500,
          oldestSeconds: 90,
          autonomyHours: 48,
        },
      ],
    },
    'upstream',
    'bad',
    /not connected since .*; refused; 1 event waiting \(1\.5 kB\), the oldest for 1 min 30 s; the first is dropped in 2 d/,
  ],
  [{ sinks: [{ ...SINK, gaps: 2 }] }, 'upstream', 'doubtful', /2 gaps/],
  [
    { sinks: [{ ...SINK, lastError: 'refused (HTTP 500)', waiting: 1, oldestSeconds: 1 }] },
    'upstream',
    'bad',
    /, connected since .*; nothing was taken since: refused \(HTTP 500\)/,
  ],
  [
    { sinks: [SINK, { ...SINK, name: 'cloud', waiting: 1, oldestSeconds: 1, autonomyHours: 23 }] },
    'sink cloud',
    'bad',
    /, connected since .*; the first is dropped in 23 h/,
  ],
  [
    { database: { ...WELL.database, failures: 1, failing: true } },
    'database',
    'bad',
    /1 failed commit: check the disk/,
  ],
  [{ database: { ...WELL.database, failures: 1 } }, 'database', 'good', /1 failed commit before, good since/],
  [
    { database: { ...WELL.database, damagedRows: ['door/1'] } },
    'database',
    'bad',
    /cannot be read and is left out of lists: door\/1; restore a backup/,
  ],
  [
    {
      database: {
        ...WELL.database,
        check: {
          verdict: 'damaged',
          endedAt: null,
          ageSeconds: 60,
          findings: ['row 2 missing from index i'],
        },
      },
    },
    'database',
    'bad',
    /found damaged 1 min ago \(row 2 missing from index i\): stop gatehouse.*gatehouse restore FILE/,
  ],
  [
    {
      database: {
        ...WELL.database,
        check: { verdict: 'failed', endedAt: null, ageSeconds: 60, findings: ['no room'] },
      },
    },
    'database',
    'doubtful',
    /its check was not completed 1 min ago: no room/,
  ],
  [{ database: { ...WELL.database, lastCommitMilliseconds: 800 } }, 'database', 'doubtful', /800\.0 ms/],
  [
    { field: { hosts: [{ id: 'f', pid: null, restarts: 2, heartbeatAgeMs: null }], links: [] } },
    'host f',
    'bad',
    /not running, 2 restarts/,
  ],
  [
    { field: { hosts: [{ id: 'f', pid: 1, restarts: 0, heartbeatAgeMs: 5_000 }], links: [] } },
    'host f',
    'bad',
    /no heartbeat/,
  ],
  [
    { field: { hosts: [], links: [{ id: 'l', host: 'f', up: false, since: null, lastError: 'gone' }] } },
    'link l',
    'bad',
    /^down, on host f: gone$/,
  ],
  [{ doors: { ...WELL.doors, unknown: 2 } }, 'doors', 'doubtful', /3 of 5 locks connected, 2 unknown since/],
  [
    { apply: { ...WELL.apply, doors: { waiting: 1, refused: 0 } } },
    'doors',
    'good',
    /3 of 3 locks connected; 1 setting waiting$/,
  ],
  [
    { apply: { ...WELL.apply, zgates: { waiting: 0, refused: 1 } } },
    'zigbee gateways',
    'doubtful',
    /1 of 1 connected; 1 setting refused/,
  ],
  [
    { zgates: { registered: 2, connected: 1, stayedBehind: [], warnings: [] } },
    'zigbee gateways',
    'doubtful',
    /1 of 2 connected/,
  ],
  [
    {
      zgates: {
        registered: 1,
        connected: 1,
        stayedBehind: [],
        warnings: [
          { deviceId: 'x', name: 'Floor 3', message: 'coordinator firmware 20230507: it is unstable' },
        ],
      },
    },
    'zigbee gateway Floor 3',
    'doubtful',
    /firmware 20230507/,
  ],
  [
    { zgates: { registered: 1, connected: 1, stayedBehind: [LEFT_BEHIND], warnings: [] } },
    'zigbee gateway Floor 2',
    'bad',
    /on channel 20, 1 lock stayed behind.*Suite \(00124b0001a2b3c4, channel 11\)\. Operate it/,
  ],
  [
    { apply: { ...WELL.apply, rs485: { waiting: 7, refused: 2 } } },
    'rs485 devices',
    'doubtful',
    /^7 settings waiting; 2 settings refused/,
  ],
  [
    {
      buses: [
        {
          ...bus,
          silent: 1,
          exchanges: { ...bus.exchanges, timeouts: 9 },
          warnings: [busWarning('ECHO', {})],
        },
      ],
    },
    'bus bus-1',
    'doubtful',
    /^5 of 6 devices answering, busy 34 %, 12\.3 polls\/s; 1000 good exchanges, 9 timeouts; the adapter hears what it sends/,
  ],
  [
    {
      jobs: [
        {
          id: 'ffffffff-0000-4000-8000-000000000000',
          kind: 'scan',
          object: 'bus-1',
          percent: 42,
          startedAt: '2026-01-04T04:00:00.000Z',
        },
      ],
    },
    'job scan',
    'good',
    /^bus-1, 42 % since 2026-01-04T04:00:00.000Z, ffffffff-/,
  ],
  [{ certificates: [{ ...certificate, daysLeft: 20 }] }, 'certificate https', 'doubtful', /20 days left/],
  [{ certificates: [{ ...certificate, daysLeft: -1 }] }, 'certificate https', 'bad', /expired 1 day ago/],
  [
    { certificates: [{ ...certificate, notBefore: '2029-05-26T00:00:00.000Z', daysLeft: 1_494 }] },
    'certificate https',
    'bad',
    /not yet valid, clients refuse it before 2029-05-26: set the clock/,
  ],
])('sees %j', (changes, subject, severity, text) => {
  expect(said(changes, subject)).toMatchObject({ severity, text: expect.stringMatching(text) });
});

it('prints the worst first, aligned, and JSON as the daemon gave it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-status-'));
  const socket = join(folder, 'admin.sock');
  const status = { ...WELL, version: '0.0.1', certificates: [{ ...certificate, daysLeft: 1 }] };
  const server = createServer((_request, response) => response.end(JSON.stringify(status)));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  try {
    const shell = testShell();
    expect(await run(['status', '-s', socket], shell)).toBe(0);
    const [head, empty, first, second] = shell.written.stdout.split('\n');
    expect(head).toBe(`Gatehouse 0.0.1, system ${WELL.systemId}, up 3 d 4 h`);
    expect(empty).toBe('');
    expect(first).toBe('✗  certificate https  1 day left');
    expect(second).toBe('✓  interface          https://127.0.0.1:8443');
    expect(shell.written.stderr).toMatch(/^The daemon runs version 0\.0\.1 .* restart the daemon/);

    const machine = testShell();
    await run(['status', '-s', socket, '--json'], machine);
    expect(JSON.parse(machine.written.stdout)).toEqual(status);
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});

it('names who is missing', async () => {
  const answers: Record<string, unknown> = {
    '/encoder?revoked=false&connected=false&limit=6': { items: [{ id: 'desk-2' }] },
    '/network/rs485/buses': {
      items: [{ id: 'bus-1', devices: [17, 18, 20].map((address) => ({ address, alive: address === 18 })) }],
    },
  };
  const client = { call: async (_method: string, path: string) => answers[path] } as unknown as Client;
  const status = {
    ...WELL,
    encoders: { ...WELL.encoders, registered: 3, connected: 2 },
    buses: [{ ...bus, silent: 2 }],
  };
  const texts = findingsOf(status, await absentOf(status, client)).map(({ text }) => text);
  expect(texts).toContainEqual(expect.stringMatching(/^2 of 3 connected, .*; not connected: desk-2$/));
  expect(texts).toContainEqual(expect.stringMatching(/polls\/s; silent: 17, 20; /));
  // No one is asked where no one is missing, and an answer that does not come costs the names alone.
  const away = { call: () => Promise.reject(new Error('gone')) } as unknown as Client;
  expect(await absentOf(WELL, away)).toEqual({ encoders: [], zgates: [], buses: {} });
  expect(await absentOf(status, away)).toEqual({ encoders: [], zgates: [], buses: {} });
});

it('draws the status again every second on a terminal, also while the daemon is away, until a signal', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-status-'));
  const socket = join(folder, 'admin.sock');
  let registered = 2;
  const server = createServer((_request, response) => {
    const encoders = { ...WELL.encoders, registered, connected: registered };
    response.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify({ ...WELL, encoders }));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const shell = testShell();
  const watch = () => run(['status', '--watch', '--socket', socket], shell);
  expect(await watch()).toBe(2);
  expect(shell.written.stderr).toMatch(/draws on a terminal/);

  shell.stdout.isTTY = true;
  const watched = watch();
  const shows = (text: string) =>
    vi.waitFor(async () => {
      await shell.clock.advance(1_000);
      expect(shell.written.stdout.split('\x1b[H').at(-1)).toContain(text);
    });
  await shows('2 of 2 connected');
  registered = 3;
  await shows('3 of 3 connected');
  await new Promise((resolve) => server.close(resolve));
  await shows('Gatehouse is not running');
  shell.stop();
  expect(await watched).toBe(0);
  expect(shell.written.stdout.endsWith('\x1b[?25h')).toBe(true);
  rmSync(folder, { recursive: true, force: true });
});
