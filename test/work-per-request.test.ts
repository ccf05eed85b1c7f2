/**
 * What a request costs the database does not grow with what is stored, nor with the requests before it: as many statements and rows
 * with ten times the doors, and none that is prepared for one request. `npm run bench -- growth soak` take the figures.
 */
import { expect, it, vi } from 'vitest';
import { openTestGateway } from './gateway.ts';

/** Of databases in files, of this process. */
const counts = vi.hoisted(() => ({ prepared: 0, run: 0, rows: 0 }));

vi.mock('better-sqlite3', async (importOriginal) => {
  type Statement = { all: (...values: unknown[]) => unknown[] };
  type Database = { prepare(sql: string): Statement; pragma(source: string, options?: object): unknown };
  type Open = new (file: string, options?: object) => Database;
  const { default: Sqlite } = await importOriginal<{ default: Open }>();
  return {
    default: class extends Sqlite {
      constructor(file: string, options?: object) {
        const verbose = () => {
          if (file !== ':memory:') counts.run += 1;
        };
        super(file, { ...options, verbose });
      }
      override prepare(sql: string) {
        counts.prepared += 1;
        const statement = super.prepare(sql);
        const all = statement.all.bind(statement);
        return Object.assign(statement, {
          all(...values: unknown[]) {
            const rows = all(...values);
            counts.rows += rows.length;
            return rows;
          },
        });
      }
      // Prepares one, past the method above.
      override pragma(source: string, options?: object) {
        counts.prepared += 1;
        return super.pragma(source, options);
      }
    },
  };
});

const FEW = 30;
const MANY = 300;
const TIMES = 10;

const digits = (value: number, count: number) => String(value).padStart(count, '0');
const idOf = (door: number) => `0b6f7c1a-1c55-4c0a-8d5e-${digits(door, 12)}`;

async function setUp() {
  const { gateway, lan, local, token } = await openTestGateway({
    http: { listen: '127.0.0.1:0', plain: true, requestsPerSecond: 10_000, requestBurst: 10_000 },
  });
  const bearer = await token('front-desk-admin');
  const tool = await token('service-tool');
  let changes = 0;
  return {
    async store(from: number, to: number) {
      const doors = Array.from({ length: to - from }, (_, n) => ({
        id: idOf(from + n),
        accessPointId: from + n + 1,
        name: `Room ${digits(from + n, 4)}`,
      }));
      const { id } = JSON.parse(await local('POST', '/site/import', { document: { doors } }));
      await vi.waitFor(async () => expect(JSON.parse(await local('GET', `/jobs/${id}`)).status).toBe('done'));
    },
    async request(kind: string, turn: number) {
      const door = `/access/doors/${idOf(turn % FEW)}`;
      const search = () => lan(`/access/doors?name=Room%20${digits(turn % FEW, 4)}`, bearer);
      const change = () => {
        const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
        // Another value each time: the same one again writes nothing.
        changes += 1;
        const body = JSON.stringify({ pmsId: `${changes}` });
        return fetch(`${gateway.baseUrl}${door}`, { method: 'PUT', headers, body });
      };
      const { status } = await {
        list: () => lan('/access/doors?limit=10', bearer),
        search,
        door: () => lan(door, bearer),
        state: () => lan(`${door}/state`, bearer),
        change,
        'change and search': async () => {
          await change();
          return search();
        },
        metrics: () => lan('/metrics', tool),
        status: () => lan('/status', tool),
      }[kind as 'list']();
      expect(status, kind).toBe(200);
    },
  };
}

const KINDS = ['list', 'search', 'door', 'state', 'change', 'change and search', 'metrics', 'status'];

it('with ten times the doors, requests run as many statements and read as many rows', async () => {
  const { store, request } = await setUp();
  async function cost(kind: string) {
    const { run, rows } = counts;
    for (let turn = 0; turn < TIMES; turn += 1) await request(kind, turn);
    return { run: counts.run - run, rows: counts.rows - rows };
  }
  /** Besides what the gateway does by itself, such as following an import. */
  async function least(kind: string) {
    const costs = [await cost(kind), await cost(kind), await cost(kind)];
    return {
      run: Math.min(...costs.map(({ run }) => run)),
      rows: Math.min(...costs.map(({ rows }) => rows)),
    };
  }
  await store(0, FEW);
  const few = new Map<string, Awaited<ReturnType<typeof least>>>();
  for (const kind of KINDS) few.set(kind, await least(kind));
  await store(FEW, MANY);
  for (const [kind, before] of few) {
    expect(before.run, kind).toBeGreaterThan(0);
    await vi.waitFor(async () => {
      const after = await least(kind);
      expect(after.run, kind).toBeLessThanOrEqual(before.run);
      expect(after.rows, kind).toBeLessThanOrEqual(before.rows);
    });
  }
});

it('no request has a statement prepared', async () => {
  const { store, request } = await setUp();
  await store(0, FEW);
  for (const kind of KINDS) await request(kind, 0);
  const { prepared } = counts;
  for (const kind of KINDS) for (let turn = 0; turn < TIMES; turn += 1) await request(kind, turn);
  expect(counts.prepared).toBe(prepared);
});
