import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { principalWith } from '../../../test/access-matrix.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { lanApp, log, operations, send, things } from '../../../test/things-app.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { type ErrorCode, GatehouseError } from '../errors.ts';
import type { App } from './app.ts';
import { openIdempotency } from './idempotency.ts';
import { takesIdempotencyKey } from './operation.ts';

const CALLERS = { pms: randomUUID(), 'pms,front-desk': randomUUID() } as Record<string, string>;
const DAY_MS = 86_400_000;

let database: Database;
let app: App;
let now: number;
beforeEach(async () => {
  things.reset();
  now = Date.UTC(2026, 0, 1);
  database = await temporaryDatabase();
  app = appOf(database);
});

/** A gateway that begins with what is stored. */
function appOf(stored: Database): App {
  const digest = (purpose: string, content: string) => `${purpose} ${content.length} ${content}`;
  return lanApp({
    idempotency: openIdempotency({ database: stored, digest, now: () => now, log }),
    surface: {
      kind: 'lan',
      basePath: '',
      rate: () => ({ perSecond: 1_000_000, burst: 1_000_000 }),
      authenticate({ authorization = '' }) {
        const roles = authorization.replace('Bearer ', '');
        return { ...principalWith('pms'), id: CALLERS[roles] ?? '' };
      },
    },
  });
}
const kick = (key: string | undefined, { thing = 'a', as = 'pms', body = '', to = app } = {}) =>
  send('POST', `/thing/${thing}/kick`, {
    as,
    app: to,
    ...(body && { body }),
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });

describe('a request that is repeated with its key', () => {
  it('is answered as the first one was, and is carried out once', async () => {
    things.outcome = () => ({ body: { id: String(things.calls.length) }, etag: '7' });
    const first = await kick('k1');
    const second = await kick('k1', { body: '{}' });
    const third = await kick('"k1"');
    expect(things.calls).toHaveLength(1);
    for (const { status, body, headers } of [first, second, third])
      expect([status, body, headers.get('etag')]).toEqual([200, { id: '1' }, '"7"']);
    expect(await kick('k2')).toMatchObject({ body: { id: '2' } });
    expect(await kick(undefined)).toMatchObject({ body: { id: '3' } });
    expect(await kick('k1', { as: 'pms,front-desk' })).toMatchObject({ body: { id: '4' } });
  });

  it('gets the refusal that the first one got', async () => {
    const details = [{ path: '', code: 'X', message: 'y' }];
    things.outcome = () => {
      throw new GatehouseError('NOT_FOUND', 'no such thing', { details });
    };
    const refused = { status: 404, body: { error: 'NOT_FOUND', message: 'no such thing', details } };
    expect(await kick('k1')).toMatchObject(refused);
    things.outcome = () => ({ body: { id: 'x' } });
    expect(await kick('k1')).toMatchObject(refused);
    expect(things.calls).toHaveLength(1);
  });

  it('waits for the first one while that runs', async () => {
    const held = Promise.withResolvers<{ id: string }>();
    things.outcome = (() => held.promise.then((body) => ({ body }))) as never;
    const both = [kick('k1'), kick('k1')];
    const other = await kick('k1', { thing: 'b' });
    expect(other).toMatchObject({ status: 422, body: { error: 'IDEMPOTENCY_KEY_REUSED' } });
    held.resolve({ id: 'z' });
    expect((await Promise.all(both)).map(({ body }) => body.id)).toEqual(['z', 'z']);
    expect(things.calls).toHaveLength(1);
  });

  it('is refused when it is another request', async () => {
    await kick('k1');
    expect(await kick('k1', { thing: 'b' })).toMatchObject({
      status: 422,
      body: { error: 'IDEMPOTENCY_KEY_REUSED' },
    });
    expect(things.calls).toHaveLength(1);
  });

  it('is carried out when the first one was not, and was to be repeated', async () => {
    things.outcome = () => {
      throw new GatehouseError('SHUTTING_DOWN', 'later', { retryAfterSeconds: 1 });
    };
    expect((await kick('k1')).status).toBe(503);
    things.outcome = () => ({ body: { id: 'x' } });
    expect((await kick('k1')).status).toBe(200);
    expect((await kick('k1')).status).toBe(200);
    expect(things.calls).toHaveLength(2);
  });

  it('is carried out after a disk fault that kept the gateway even from noting that nothing was done', async () => {
    const { commit } = database;
    const gone = new GatehouseError('STORAGE_UNAVAILABLE', 'nothing was changed');
    things.outcome = () => {
      Object.assign(database, { commit: () => Promise.reject(gone) });
      throw gone;
    };
    for (let time = 0; time < 2; time += 1)
      expect(await kick('k1')).toMatchObject({ status: 503, body: { error: 'STORAGE_UNAVAILABLE' } });
    expect(things.calls).toHaveLength(1);
    Object.assign(database, { commit });
    things.outcome = () => ({ body: { id: 'x' } });
    for (let time = 0; time < 2; time += 1)
      expect(await kick('k1')).toMatchObject({ status: 200, body: { id: 'x' } });
    expect(things.calls).toHaveLength(2);
  });
});

describe('an outcome that is not known', () => {
  const unknown = { status: 409, body: { error: 'OUTCOME_UNKNOWN' } };

  it('is repeated after a restart, and the request is not carried out again', async () => {
    const folder = temporaryFolder();
    const file = `${folder}/gatehouse.db`;
    const opened = () => openDatabase({ file, monotonic: () => 0, failed: () => {} });
    const begun = Promise.withResolvers<void>();
    things.outcome = (() => {
      begun.resolve();
      return new Promise(() => {});
    }) as never;
    const before = await opened();
    void kick('k1', { to: appOf(before) });
    await begun.promise;
    // As kill -9 leaves it: begun and never answered.
    await before[Symbol.asyncDispose]();
    const after = await opened();
    onTestFinished(() => after[Symbol.asyncDispose]());
    const restarted = appOf(after);
    for (let time = 0; time < 2; time += 1)
      expect(await kick('k1', { to: restarted })).toMatchObject(unknown);
    expect(things.calls).toHaveLength(1);
  });

  it.each<[ErrorCode, object]>([
    ['INTERNAL', {}],
    ['STORAGE_UNAVAILABLE', { details: [{ path: '', code: 'OUTCOME_UNKNOWN', message: 'z' }] }],
  ])('of a fault (%s) leaves the request as it is', async (code, more) => {
    things.outcome = () => {
      throw code === 'INTERNAL' ? new Error('a fault') : new GatehouseError(code, 'x', more);
    };
    await kick('k1');
    things.outcome = () => ({ body: { id: 'x' } });
    expect((await kick('k1')).status).not.toBe(200);
    expect(things.calls).toHaveLength(1);
  });

  it('is what is left when the answer cannot be stored', async () => {
    things.outcome = () => {
      Object.assign(database, { commit: () => Promise.reject(new Error('the disk is gone')) });
      return { body: { id: 'x' } };
    };
    expect((await kick('k1')).status).toBe(200);
    expect(await kick('k1')).toMatchObject(unknown);
  });
});

describe('keys', () => {
  it('are stored before anything is done', async () => {
    Object.assign(database, {
      commit: () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full')),
    });
    expect((await kick('k1')).status).toBe(503);
    expect(things.calls).toEqual([]);
  });

  it('last for a day of the known time', async () => {
    await kick('k1');
    now += DAY_MS;
    await kick('k1');
    expect(things.calls).toHaveLength(1);
    now += 1;
    await kick('k1');
    expect(things.calls).toHaveLength(2);
    await kick('k2');
    expect(database.prepare('SELECT key FROM idempotency_key').all()).toHaveLength(2);
  });

  it('are 10,000 for each caller at most, and none is forgotten early', async () => {
    await kick('k1');
    await database.commit(() => {
      database
        .prepare<[string, number]>(
          `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
           INSERT INTO idempotency_key (principal_id, key, digest, at) SELECT ?, 'n' || i, '', ? FROM n`,
        )
        .run(CALLERS.pms ?? '', now);
    });
    now += 60_000;
    const refused = await kick('k2');
    expect([refused.status, refused.body.error, refused.headers.get('retry-after')]).toEqual([
      429,
      'RATE_LIMITED',
      String(DAY_MS / 1_000 - 60),
    ]);
    expect((await kick('k1')).status).toBe(200);
    expect((await kick('k2', { as: 'pms,front-desk' })).status).toBe(200);
    expect(things.calls).toHaveLength(2);
  });

  it.each(['""', 'a b', 'a,b', 'ä', 'x'.repeat(129), '"a'])('are not %j', async (key) => {
    const answer = await kick(key);
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, 'Idempotency-Key']);
    expect(things.calls).toEqual([]);
  });

  it('are for each POST that needs a role', () => {
    expect(operations.filter(takesIdempotencyKey).map(({ id }) => id)).toEqual(['kickThing']);
  });

  it('come with no content of the request', async () => {
    await kick('k1');
    const rows = database.prepare<[], { digest: string }>('SELECT digest FROM idempotency_key').all();
    expect(rows[0]?.digest).toMatch(/^idempotency key \d+ /);
  });
});
