/** A row with a text that a disk has changed: the lists go on without it, and the status names it. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openConnection } from '../src/platform/database/connection.ts';
import { openTestGateway } from './gateway.ts';
import { openTestStream } from './services/events/stream.ts';
import { temporaryFolder } from './temporary.ts';

interface Listed {
  items: Record<string, unknown>[];
}

/** Milliseconds beyond the last day that a date can be. */
const NO_TIME = 9_000_000_000_000_000;
const ONE = '10000000-0000-4000-8000-000000000001';
const OTHER = '10000000-0000-4000-8000-000000000002';
const ENCODER =
  'encoder (id, generation, connected_changed_at, alarm_changed_at, created_at, created_by, updated_at, updated_by)';
const CREDENTIAL =
  'credential (encoder_id, generation, fingerprint, spki_sha256, status, not_after, created_at)';

/** Of an encoder that is registered. */
const encoders = (...ids: string[]) =>
  [
    [ENCODER, ...ids.map((id) => `'${id}', 1, 0, 0, 0, 'x', 0, 'x'`)],
    [CREDENTIAL, ...ids.map((id) => `'${id}', 1, '${id}', 'x', 'active', 0, 0`)],
  ] as const;

const WRITE_REQUESTS = [
  [
    'write_request (job_id, encoder_id, request_id, digest, status, accepted_at, correlation_id, expires_at, finished_at)',
    ...['one', 'other'].map((id) => `'${id}', 'desk', '${id}', 'x', 'unknown', 0, 'x', 0, 0`),
  ],
  [
    'write_entry (job_id, entry_index, key_id, status, updated_at)',
    ...['one', 'other'].map((id) => `'${id}', 0, '${ONE}', 'unknown', 0`),
  ],
] as const;

/** Rows of a list: table and columns, the values of two rows, and how the first one is damaged. */
const LISTS: {
  path: string;
  rows: (readonly [columns: string, ...values: string[]])[];
  damage: string;
  id: string;
  sound: string;
  named: string;
}[] = [
  {
    path: '/encoder',
    rows: [...encoders('desk', 'lobby')],
    damage: `UPDATE encoder SET apps = '[' WHERE id = 'desk'`,
    id: 'id',
    sound: 'lobby',
    named: 'encoder/desk',
  },
  {
    path: '/network/zgate',
    rows: [
      [
        'zgate (device_id, link, network_id, connected_changed_at, created_at, updated_at, updated_by)',
        ...[ONE, OTHER].map((id) => `'${id}', 'l', '${ONE}', 0, 0, 0, 'x'`),
      ],
    ],
    damage: `UPDATE zgate SET allowed_channels = '[' WHERE device_id = '${ONE}'`,
    id: 'deviceId',
    sound: OTHER,
    named: `zgate/${ONE}`,
  },
  {
    path: '/network/rs485',
    rows: [
      [
        'rs485_device (device_id, bus, hw_id, connected_changed_at, created_at, created_by, updated_at, updated_by)',
        ...[ONE, OTHER].map((id) => `'${id}', 'b', '${id}', 0, 0, 'x', 0, 'x'`),
      ],
    ],
    damage: `UPDATE rs485_device SET io_pins = '[' WHERE device_id = '${ONE}'`,
    id: 'deviceId',
    sound: OTHER,
    named: `rs485/${ONE}`,
  },
  ...['result', 'roles'].map((column) => ({
    path: '/jobs',
    rows: [
      [
        'job (id, kind, object, roles, status, started_at, started_by, correlation_id, finished_at)',
        ...[ONE, OTHER].map(
          (id) => `'${id}', 'backup', 'database', '["service-tool"]', 'done', 0, '${ONE}', 'x', 0`,
        ),
      ] as const,
    ],
    damage: `UPDATE job SET ${column} = '{' WHERE id = '${ONE}'`,
    id: 'id',
    sound: OTHER,
    named: `job/${ONE}`,
  })),
  {
    path: '/access/schedules',
    rows: [['schedule (id, version, intervals)', `'${ONE}', 1, '[]'`, `'${OTHER}', 1, '[]'`]],
    damage: `UPDATE schedule SET intervals = '[' WHERE id = '${ONE}'`,
    id: 'id',
    sound: OTHER,
    named: `schedule/${ONE}`,
  },
  {
    path: '/encoder/desk/write-request',
    rows: [...encoders('desk'), ...WRITE_REQUESTS],
    damage: `UPDATE write_request SET expires_at = ${NO_TIME} WHERE request_id = 'one'`,
    id: 'requestId',
    sound: 'other',
    named: 'encoder/desk/write-request/one',
  },
];

const SOUND = '{"accessInternal":{"doors":[],"interval":null},"outputs":[]}';

/** As a flipped bit leaves it: the file is sound to SQLite, whose CHECK is of writes alone. */
function damage(dataDirectory: string, sql: string): void {
  using connection = openConnection(join(dataDirectory, 'gatehouse.db'));
  connection.exec('PRAGMA ignore_check_constraints = ON');
  connection.exec(sql);
}

function databaseIdIn(dataDirectory: string): string {
  using connection = openConnection(join(dataDirectory, 'gatehouse.db'));
  return connection.prepare<[], { id: string }>('SELECT database_id AS id FROM system').get()?.id ?? '';
}

describe('a damaged row', () => {
  it('of a door is left out of the list and named in the status, until it can be read again', async () => {
    const { local, token, lan, dataDirectory } = await openTestGateway();
    const admin = await token('front-desk-admin');
    for (const name of ['101', '102']) await local('POST', '/access/doors', { name });
    const names = async () => {
      const answer = await lan('/access/doors', admin);
      expect(answer.status).toBe(200);
      return ((await answer.json()) as Listed).items.map(({ name }) => name);
    };
    const status = async () => JSON.parse(await local('GET', '/local/status')).database.damagedRows;
    expect(await names()).toEqual(['101', '102']);
    damage(dataDirectory, `UPDATE door SET options = substr(options, 2) WHERE name = '101'`);
    expect(await names()).toEqual(['102']);
    expect(await status()).toEqual([expect.stringMatching(/^door\//)]);
    damage(dataDirectory, `UPDATE door SET options = '{' || options WHERE name = '101'`);
    expect(await names()).toEqual(['101', '102']);
    expect(await status()).toEqual([]);
    // One bit of the name of a field: JSON all the same.
    damage(
      dataDirectory,
      `UPDATE door SET options = replace(options, 'Internal', 'Internam') WHERE name = '102'`,
    );
    expect(await names()).toEqual(['101']);
    expect(await status()).toEqual([expect.stringMatching(/^door\//)]);
  });

  it.each([
    `UPDATE door SET options = '{'`,
    `UPDATE door SET options = '[]'`,
    `UPDATE door SET created_at = 9000000000000000`,
  ])('of a door is refused with its name and what to do: %s', async (how) => {
    const { local, dataDirectory } = await openTestGateway();
    const { id } = JSON.parse(await local('POST', '/access/doors', { name: '101' }));
    damage(dataDirectory, how);
    for (const [method, body] of [['GET'], ['PUT', { name: '102' }]] as const)
      expect(JSON.parse(await local(method, `/access/doors/${id}`, body))).toMatchObject({
        error: 'ROW_DAMAGED',
        message: expect.stringMatching(`door/${id} is damaged.*gatehouse restore`),
      });
    damage(dataDirectory, `UPDATE door SET options = '${SOUND}', created_at = 0`);
    expect(JSON.parse(await local('GET', `/access/doors/${id}`)).name).toBe('101');
  });

  it('keeps no gateway from starting', async () => {
    const folder = temporaryFolder();
    const before = await openTestGateway({}, folder);
    for (const name of ['101', '102']) await before.local('POST', '/access/doors', { name });
    await before.close();
    damage(before.dataDirectory, `UPDATE door SET options = substr(options, 2) WHERE name = '101'`);
    const { lan, token, local } = await openTestGateway({}, folder);
    const answer = await lan('/access/doors', await token('front-desk-admin'));
    expect(((await answer.json()) as Listed).items.map(({ name }) => name)).toEqual(['102']);
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([
      expect.stringMatching(/^door\//),
    ]);
  });

  it('of a token is left out of the list, and one of the audit is shown as damaged', async () => {
    const { local, token, dataDirectory } = await openTestGateway();
    await token('pms');
    await token('monitor');
    damage(dataDirectory, `UPDATE token SET roles = '["pm' WHERE label = 'pms'`);
    const { items } = JSON.parse(await local('GET', '/tokens')) as { items: { label: string }[] };
    expect(items.map(({ label }) => label)).toEqual(['monitor']);
    damage(
      dataDirectory,
      `DROP TRIGGER audit_is_append_only_update; UPDATE audit SET detail = '{' WHERE action = 'token.create' AND detail LIKE '%pms%'`,
    );
    const audit = JSON.parse(await local('GET', '/audit')) as { items: { action: string; detail: object }[] };
    const created = audit.items.filter(({ action }) => action === 'token.create');
    expect(created.map(({ detail }) => detail)).toEqual([
      expect.objectContaining({ label: 'monitor' }),
      { damaged: true },
    ]);
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([
      expect.stringMatching(/^audit\//),
      expect.stringMatching(/^token\//),
    ]);
  });

  it.each(LISTS)('of $path is left out: $damage', async ({ path, rows, damage: how, id, sound, named }) => {
    const { lan, token, local, dataDirectory } = await openTestGateway();
    const service = await token('service-tool');
    for (const [columns, ...values] of rows)
      for (const row of values) damage(dataDirectory, `INSERT INTO ${columns} VALUES (${row})`);
    const listed = async () => {
      const answer = await lan(path, service);
      expect(answer.status).toBe(200);
      return ((await answer.json()) as Listed).items.map((item) => item[id]);
    };
    expect(await listed()).toHaveLength(2);
    damage(dataDirectory, how);
    expect(await listed()).toEqual([sound]);
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([named]);
  });

  it('of a gateway is left out of what `gatehouse zgate list` shows', async () => {
    const { local, dataDirectory } = await openTestGateway();
    const zgate = LISTS.find(({ path }) => path === '/network/zgate');
    if (!zgate) throw new Error('no zgates');
    for (const [columns, ...values] of zgate.rows)
      for (const row of values) damage(dataDirectory, `INSERT INTO ${columns} VALUES (${row})`);
    damage(dataDirectory, zgate.damage);
    const { items } = JSON.parse(await local('GET', '/local/zgates')) as Listed;
    expect(items.map(({ deviceId }) => deviceId)).toEqual([OTHER]);
  });

  it('of the audit with a time that is none is shown as damaged, and verified', async () => {
    const { local, dataDirectory } = await openTestGateway();
    damage(dataDirectory, `DROP TRIGGER audit_is_append_only_update; UPDATE audit SET at = ${NO_TIME}`);
    const { items } = JSON.parse(await local('GET', '/audit')) as Listed;
    expect(items.map(({ at, detail }) => [at, detail])).toEqual([
      ['1970-01-01T00:00:00.000Z', { damaged: true }],
    ]);
    expect(JSON.parse(await local('GET', '/audit/verify'))).toMatchObject({
      fault: { firstBad: 1 },
      oldest: null,
    });
  });

  it('of a door whose lock left at no time is named by its state', async () => {
    const { local, dataDirectory } = await openTestGateway();
    const { id } = JSON.parse(await local('POST', '/access/doors', { name: '101' }));
    damage(dataDirectory, `UPDATE door SET mac = '00124b0000000001', lock_left_at = ${NO_TIME}`);
    expect(JSON.parse(await local('GET', `/access/doors/${id}/state`))).toMatchObject({
      error: 'ROW_DAMAGED',
      message: expect.stringContaining(`door/${id}`),
    });
  });

  it('of a late outcome costs its write request nothing else, and is named', async () => {
    const { lan, token, local, dataDirectory } = await openTestGateway();
    const service = await token('service-tool');
    for (const [columns, ...values] of [...encoders('desk'), ...WRITE_REQUESTS])
      for (const row of values) damage(dataDirectory, `INSERT INTO ${columns} VALUES (${row})`);
    damage(dataDirectory, `UPDATE write_entry SET late_outcome = '{' WHERE job_id = 'one'`);
    const list = await lan('/encoder/desk/write-request', service);
    const entry = { keyId: ONE, status: 'unknown' };
    expect(list.status).toBe(200);
    expect(((await list.json()) as Listed).items).toEqual([
      expect.objectContaining({ requestId: 'other', entries: [entry] }),
      expect.objectContaining({ requestId: 'one', entries: [entry] }),
    ]);
    expect((await lan('/encoder/desk/write-request/one', service)).status).toBe(200);
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([
      `encoder/desk/write-request/one/${ONE}`,
    ]);
  });

  it('of an event is left out of the stream', async () => {
    const { gateway, token, local, dataDirectory } = await openTestGateway();
    const admin = await token('front-desk-admin');
    const start = `${databaseIdIn(dataDirectory)}-0`;
    for (const name of ['101', '102', '103']) {
      const body = JSON.stringify({ source: '/systems/x/doors/y', subject: 'y', data: { name } });
      damage(
        dataDirectory,
        `INSERT INTO live_event (type, recorded_at, body) VALUES ('gatehouse.door.test.v1', 0, '${body}')`,
      );
    }
    damage(dataDirectory, `UPDATE live_event SET body = substr(body, 2) WHERE body LIKE '%"102"%'`);
    for (const filter of ['', '?subject=y']) {
      const again = await openTestStream(`${gateway.baseUrl}/events${filter}`, {
        token: admin,
        lastEventId: start,
      });
      const messages = (await again.take(3)).filter(({ name }) => name === 'message');
      expect(messages.map(({ data }) => (data.data as { name?: string }).name)).toEqual(['101', '103']);
    }
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([
      expect.stringMatching(/^event\//),
    ]);
  });
});

it('does not start where doors are lost that no one has removed, and asks', async () => {
  const first = await openTestGateway();
  for (const name of ['101', '102', '103']) await first.local('POST', '/access/doors', { name });
  await first.close();
  {
    using connection = openConnection(join(first.dataDirectory, 'gatehouse.db'));
    connection.exec('DELETE FROM door');
  }
  await expect(openTestGateway({}, first.folder)).rejects.toThrow(
    /has 0 doors, and had 3 .*gatehouse restore/,
  );
});
