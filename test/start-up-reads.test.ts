/**
 * A start reads no table whole that grows with use, so that it takes as long with a million events as with none; nor does a search
 * among the doors, which would hold up the desk at ten thousand of them.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { openTestGateway } from './gateway.ts';

/** Statements with their values, as SQLite runs them on files. */
const executed = vi.hoisted(() => new Set<string>());

vi.mock('better-sqlite3', async (importOriginal) => {
  type Open = new (file: string, options?: object) => object;
  const { default: Sqlite } = await importOriginal<{ default: Open }>();
  return {
    default: class extends Sqlite {
      constructor(file: string, options?: object) {
        const verbose = (sql: string) => void (file !== ':memory:' && executed.add(sql));
        super(file, { ...options, verbose });
      }
    },
  };
});

/** Up to 8 MB a start checks the whole file. */
const CHECKED_WHOLE_MAX_BYTES = 8_000_000;
const GROWING = /^(SCAN|SEARCH) (event|live_event|audit|audit_checkpoint|write_request|write_entry)\b/;
/** One row or one key; or the requests that are not finished, which are bounded. */
const BOUNDED = /=\?|USING (COVERING )?INDEX write_request_open/;
/** Reads one end of an index. */
const ONE_END = /^SELECT (min|max)\(\w+\) AS \w+ FROM \w+$/i;

it('reads no event, audit row or finished request that it does not need', async () => {
  const changes = { upstream: { url: 'mqtt://127.0.0.1:9' } };
  const first = await openTestGateway(changes);
  await first.close();
  const { default: Sqlite } = await import('better-sqlite3');
  const file = join(first.dataDirectory, 'gatehouse.db');
  using database = Object.assign(new Sqlite(file), { [Symbol.dispose]: () => void database.close() });
  database.exec(`INSERT INTO event (id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12000)
    SELECT hex(randomblob(16)), 't', 't', 'desk-1', n, n, 1, 800, json_quote(printf('%.800c', 'x')) FROM n`);
  database.pragma('wal_checkpoint(TRUNCATE)');
  expect(statSync(file).size).toBeGreaterThan(CHECKED_WHOLE_MAX_BYTES);
  executed.clear();
  const second = await openTestGateway(changes, first.folder);
  expect(JSON.parse(await second.local('GET', '/local/status')).encoders.registered).toBe(0);
  const statements = [...executed];
  expect(statements.length).toBeGreaterThan(30);
  expect(statements.filter((sql) => /^PRAGMA .*(integrity|quick|foreign_key)_check/i.test(sql))).toEqual([]);
  const linear = statements.filter((sql) => {
    if (/^(PRAGMA|BEGIN|COMMIT)/.test(sql) || ONE_END.test(sql)) return false;
    const plan = database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
    const isSorted = plan.some(({ detail }) => detail.startsWith('USE TEMP B-TREE'));
    const endsEarly = /LIMIT \+?\d+(\.0)?$/.test(sql) && !isSorted;
    return plan.some(({ detail }) => GROWING.test(detail) && !BOUNDED.test(detail) && !endsEarly);
  });
  expect(linear).toEqual([]);
});

it('a search among the doors reads those that it shows', async () => {
  const { dataDirectory, lan, local, token } = await openTestGateway();
  const doors = Array.from({ length: 30 }, (_, n) => ({ accessPointId: n + 1, name: `Room ${n + 1}` }));
  const { id } = JSON.parse(await local('POST', '/site/import', { document: { doors } }));
  await vi.waitFor(async () => expect(JSON.parse(await local('GET', `/jobs/${id}`)).status).toBe('done'));
  const bearer = await token('front-desk');
  const found = async (query: string) => {
    const { items } = (await (await lan(`/access/doors?${query}`, bearer)).json()) as { items: unknown[] };
    return items.length;
  };
  expect(await found('limit=5&name=room')).toBe(5);
  executed.clear();
  expect(await found('name=Room%2030')).toBe(1);
  for (const query of ['name=none', 'pmsId=none', 'groupId=none']) expect(await found(query)).toBe(0);
  const { default: Sqlite } = await import('better-sqlite3');
  const file = join(dataDirectory, 'gatehouse.db');
  using database = Object.assign(new Sqlite(file), { [Symbol.dispose]: () => void database.close() });
  const scans = [...executed].filter((sql) => {
    if (/^(PRAGMA|BEGIN|COMMIT)/.test(sql)) return false;
    const plan = database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
    return plan.some(({ detail }) => /^SCAN door\b/.test(detail));
  });
  expect([...executed].some((sql) => sql.includes('FROM door'))).toBe(true);
  expect(scans).toEqual([]);
});
