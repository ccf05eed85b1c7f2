/** JSON of another shape in every column that holds some, as a damaged disk or a hand at the file leaves it. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openConnection } from '../src/platform/database/connection.ts';
import { openTestGateway } from './gateway.ts';
import { temporaryFolder } from './temporary.ts';

/** A row of this table for each of its columns, with the damage in that column, and one that is sound. */
interface Table {
  name: string;
  /** What a row needs, as SQL: `id` and `n` are those of the row. */
  row(id: string, n: number): Record<string, string>;
  columns: string[];
  /** What shows it, the field that names an entry, what is below the path of one, and what the status calls a damaged one. */
  list: string;
  field: string;
  below: string[];
  named(id: string): string;
}

const uuid = (n: number) => `10000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const BY = `'${uuid(1)}'`;
const times = { created_at: '0', created_by: BY, updated_at: '0', updated_by: BY };

const TABLES: Table[] = [
  {
    name: 'encoder',
    row: (id) => ({
      id: `'${id}'`,
      generation: '1',
      connected_changed_at: '0',
      alarm_changed_at: '0',
      ...times,
    }),
    columns: ['metadata', 'apps', 'platform', 'versions', 'upgrade_job_info'],
    list: '/encoder',
    field: 'id',
    below: ['', '/state'],
    named: (id) => `encoder/${id}`,
  },
  {
    name: 'door',
    row: (id, n) => ({
      id: `'${id}'`,
      access_point_id: String(n),
      options: `'{"accessInternal":{"doors":[],"interval":null},"outputs":[]}'`,
      config_by: BY,
      config_correlation_id: `'x'`,
      ...times,
    }),
    columns: ['options', 'applied', 'applied_wanted'],
    list: '/access/doors',
    field: 'id',
    below: ['', '/options', '/state', '/pending'],
    named: (id) => `door/${id}`,
  },
  {
    name: 'rs485_device',
    row: (id) => ({
      device_id: `'${id}'`,
      bus: `'b'`,
      hw_id: `'${id}'`,
      connected_changed_at: '0',
      ...times,
    }),
    columns: ['io_pins', 'platform', 'apps'],
    list: '/network/rs485',
    field: 'deviceId',
    below: ['', '/state'],
    named: (id) => `rs485/${id}`,
  },
  {
    name: 'zgate',
    row: (id) => ({
      device_id: `'${id}'`,
      link: `'${id}'`,
      network_id: `'${id}'`,
      connected_changed_at: '0',
      created_at: '0',
      updated_at: '0',
      updated_by: BY,
    }),
    columns: ['allowed_channels', 'platform', 'apps', 'join_window', 'failed_joins'],
    list: '/network/zgate',
    field: 'deviceId',
    below: ['', '/state'],
    named: (id) => `zgate/${id}`,
  },
  {
    name: 'job',
    row: (id) => ({
      id: `'${id}'`,
      kind: `'zgate.firmware'`,
      object: `'door/${id}'`,
      roles: `'["service-tool"]'`,
      status: `'queued'`,
      queue: `'q'`,
      started_at: '0',
      started_by: `'${id}'`,
      correlation_id: `'x'`,
    }),
    columns: ['roles', 'result', 'input', 'intent'],
    list: '/jobs',
    field: 'id',
    below: [''],
    named: (id) => `job/${id}`,
  },
  {
    name: 'schedule',
    row: (id) => ({ id: `'${id}'`, version: '1', intervals: `'[]'` }),
    columns: ['intervals'],
    list: '/access/schedules',
    field: 'id',
    below: [],
    named: (id) => `schedule/${id}`,
  },
];

const SHAPES = ['{"x":1}', '[{"x":1}]', '[5,"x"]', '"x"', '5', 'true', '{"name":5}', 'null'];

/** What no list shows: read at the start, by background work, or when it is used. */
const OTHERS = [
  `INSERT INTO lock_report (gateway_id, mac, report) VALUES ('g', 'm', :json)`,
  `INSERT INTO catalogue_change (all_doors, schedules, templates, changed_by, correlation_id) VALUES (0, :json, :json, 'x', 'x')`,
  `INSERT INTO actuation (action, object, at, actor_id, actor, correlation_id, detail) VALUES ('door.unlock', 'door/x', 0, 'x', 'x', 'x', :json)`,
  `INSERT INTO login_code (digest, label, roles, created_at, created_by, expires_at) VALUES ('x', 'x', :json, 0, 'x', 9e15)`,
  `INSERT INTO live_event (type, recorded_at, body) VALUES ('gatehouse.door.test.v1', 0, :json)`,
];

describe.each(SHAPES)('columns with %s', (json) => {
  it('keep no gateway from starting; each list answers, and leaves out what the status names', async () => {
    const folder = temporaryFolder();
    const first = await openTestGateway({}, folder);
    await first.local('POST', '/access/doors', { name: 'sound' });
    const [damaged, former] = [await first.token('pms'), await first.token('monitor')];
    await first.close();
    const planted = plant(join(first.dataDirectory, 'gatehouse.db'), json);

    const { lan, local } = await openTestGateway({}, folder);
    const read = async (path: string) =>
      JSON.parse(await local('GET', path)) as { items: Record<string, unknown>[] };
    const listed = new Map<string, unknown[]>();
    for (const { list, field } of TABLES)
      listed.set(
        list,
        (await read(`${list}?limit=100`)).items.map((item) => item[field]),
      );
    expect((await read('/tokens')).items.map(({ label }) => label)).toContain('monitor');
    const named = (JSON.parse(await local('GET', '/local/status')) as { database: { damagedRows: string[] } })
      .database.damagedRows;
    for (const { table, id, column } of planted)
      for (const below of table.below) {
        const answer = JSON.parse(await local('GET', `${table.list}/${id}${below}`));
        // A job has an error of its own, which is an object.
        if (typeof answer.error === 'string')
          expect({ column, below, answer }).toEqual({
            column,
            below,
            answer: damagedAnswer(table.named(id)),
          });
      }
    for (const { table, id, column } of planted) {
      const isListed = listed.get(table.list)?.includes(id);
      const isNamed = named.includes(table.named(id));
      expect({ column: `${table.name}.${column}`, isListed, isNamed }).toEqual({
        column: `${table.name}.${column}`,
        isListed: column === 'none' ? true : !isNamed,
        isNamed,
      });
    }
    expect((await lan('/encoder', damaged)).status).toBe(401);
    expect((await lan('/status', former)).status).toBe(200);
  });
});

const damagedAnswer = (object: string) => ({
  error: 'ROW_DAMAGED',
  message: expect.stringContaining(`${object} is damaged`),
  correlationId: expect.any(String),
});

const credentialOf = (id: string) =>
  `INSERT INTO credential (encoder_id, generation, fingerprint, spki_sha256, status, not_after, created_at)
   VALUES ('${id}', 1, '${id}', '${id}', 'active', 0, 0)`;

function plant(file: string, json: string) {
  using connection = openConnection(file);
  connection.exec('PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF');
  const planted: { table: Table; id: string; column: string }[] = [];
  let n = 1_000;
  for (const table of TABLES)
    for (const column of ['none', ...table.columns]) {
      n += 1;
      const id = table.name === 'encoder' ? `desk-${n}` : uuid(n);
      const row: Record<string, string> = { ...table.row(id, n) };
      if (column !== 'none') row[column] = `'${json}'`;
      const [names, values] = [Object.keys(row), Object.values(row)];
      connection.exec(`INSERT INTO ${table.name} (${names.join()}) VALUES (${values.join()})`);
      if (table.name === 'encoder') connection.exec(credentialOf(id));
      planted.push({ table, id, column });
    }
  for (const sql of OTHERS) connection.exec(sql.replaceAll(':json', `'${json}'`));
  connection.prepare<[string]>(`UPDATE token SET roles = ? WHERE label = 'pms'`).run(json);
  connection.prepare<[string]>(`UPDATE token SET former_secrets = ? WHERE label = 'monitor'`).run(json);
  return planted;
}
