import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { bearer, cookie, openTestAuth, pass } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { type Database, openDatabase } from '../../platform/database/database.ts';
import { createApp } from '../../platform/http/app.ts';
import { takesIdempotencyKey } from '../../platform/http/operation.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR, type Role } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { Auth } from './auth.ts';
import { authOperations } from './operations.ts';
import { check } from './token.ts';

const DAY_MS = 86_400_000;
const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c1' };
let database: Database;
let clock: ManualClock;
let audited: AuditEntry[];
let auth: Auth;

beforeEach(async () => {
  clock = manualClock();
  audited = [];
  database = await temporaryDatabase();
  auth = restarted();
});

// Failures beyond the tenth would be answered with RATE_LIMITED, which failures.test.ts is about.
const restarted = () => openTestAuth({ database, clock, audited, config: { failureBurst: 1_000 } });

const create = (roles: Role[] = ['pms'], expiresInDays?: number) =>
  auth.create({ label: 'PMS', roles, ...(expiresInDays && { expiresInDays }) }, caller);
const answerTo = (text: string) =>
  auth.authenticate(bearer(text)).then(
    ({ label }) => label,
    ({ message }: Error) => message,
  );
const listed = () => auth.list({ limit: 100 }).items;

describe('a token', () => {
  it('lets its holder in with its roles, as a principal of its own', async () => {
    const created = await create(['front-desk', 'pms']);
    expect(created.token).toMatch(/^gwt_[0-9a-f]{12}_[A-Za-z0-9_-]{43}_[0-9A-Za-z]{6}$/);
    const principal = await auth.authenticate({ ...bearer(''), authorization: `bearer  ${created.token}` });
    expect(principal).toEqual({
      id: created.principalId,
      label: 'PMS',
      roles: new Set(['front-desk', 'pms']),
      via: 'token',
      expiresAt: Date.parse(created.expiresAt),
    });
  });

  it('is not stored, nor its secret', async () => {
    const { token } = await create();
    const row = database.prepare<[], Record<string, unknown>>('SELECT * FROM token').get();
    const text = JSON.stringify(row, (_key, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('base64url') : value,
    );
    expect(text).not.toContain(token.slice(17, 60));
    expect(JSON.stringify(audited)).not.toContain(token.slice(17, 60));
    expect(JSON.stringify(listed())).not.toContain(token.slice(17, 60));
  });

  it('with any character changed is refused', async () => {
    const { token } = await create();
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === 'a' ? 'b' : 'a';
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      expect(await answerTo(changed)).toContain('check for a typing error');
    }
  });

  it('with the secret of another is refused', async () => {
    const [one, two] = [await create(), await create()];
    // The check of the mixture is right: it is what would be drawn for it.
    const mixed = `gwt_${one.id}_${two.token.slice(17, 60)}`;
    expect(await answerTo(`${mixed}_${check(mixed)}`)).toContain('not known here');
    const unknown = `gwt_${'0'.repeat(12)}_${two.token.slice(17, 60)}`;
    expect(await answerTo(`${unknown}_${check(unknown)}`)).toContain('not known here');
  });

  it.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'Bearer a b',
    'gwt_x',
    `Bearer ${'x'.repeat(8_000)}`,
  ])('is not the header %s', async (authorization) => {
    const offered = { ...bearer(''), authorization };
    await expect(auth.authenticate(offered)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('is audited when it is made and when it is revoked, in the same transaction', async () => {
    const { id } = await create();
    await auth.revoke(id, caller);
    await auth.revoke(id, caller);
    expect(audited.map(({ action, object }) => `${action} ${object}`)).toEqual([
      `token.create token/${id}`,
      `token.revoke token/${id}`,
    ]);
    audited.push = () => {
      throw new Error('the audit is full');
    };
    await expect(create()).rejects.toThrow('the audit is full');
    expect(listed()).toHaveLength(1);
  });
});

describe('the end of a token', () => {
  it('is reported to every holder of something open for it', async () => {
    const ended: string[] = [];
    auth = openTestAuth({ database, clock, audited, ended });
    const { id, principalId } = await create();
    await auth.revoke(id, caller);
    const { code } = await auth.createCode({ label: 'desk', roles: ['pms'] }, caller);
    const from = { address: '192.0.2.1', correlationId: 'c' };
    const { setCookie } = await auth.signIn(code, from);
    const principal = await auth.authenticate(cookie(/=([^;]*)/.exec(setCookie)?.[1] ?? ''));
    await auth.signOut({ principal, correlationId: 'c' });
    expect(ended).toEqual([principalId, principal.id]);
  });

  it('comes at once with its revocation, for good', async () => {
    const { token, id } = await create();
    const { status, revokedAt } = await auth.revoke(id, caller);
    expect([status, revokedAt]).toEqual(['revoked', new Date(clock.now()).toISOString()]);
    expect(await answerTo(token)).toContain('revoked');
    clock.jumpWall(-10 * DAY_MS);
    expect(await answerTo(token)).toContain('revoked');
    await expect(auth.revoke('0123456789ab', caller)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('holds from the next request on, however often the token was used before', async () => {
    const { id, token } = await create();
    expect([await answerTo(token), await answerTo(token)]).toEqual(['PMS', 'PMS']);
    const revoked = auth.revoke(id, caller);
    // Until the commit it is good; no one was promised anything yet.
    expect(await answerTo(token)).toBe('PMS');
    await revoked;
    expect(await answerTo(token)).toContain('was revoked');
  });

  it('is not made by a revocation that could not be stored, and is by the next', async () => {
    const { id, token } = await create();
    expect(await answerTo(token)).toBe('PMS');
    audited.push = () => {
      throw new Error('the audit is full');
    };
    await expect(auth.revoke(id, caller)).rejects.toThrow('the audit is full');
    expect(await answerTo(token)).toBe('PMS');
    audited.push = Array.prototype.push;
    await auth.revoke(id, caller);
    expect(await answerTo(token)).toContain('was revoked');
  });

  it('is that of its row, when the database is brought back as it was before', async () => {
    const [before, after] = [await create(), await create()];
    const file = join(temporaryFolder(), 'restored.db');
    await auth.revoke(after.id, caller);
    database.prepare<[string]>('VACUUM INTO ?').run(file);
    await auth.revoke(before.id, caller);
    expect([await answerTo(before.token), await answerTo(after.token)].join()).not.toContain('PMS');
    database = await openDatabase({ file, monotonic: clock.monotonic, failed: () => {} });
    onTestFinished(() => database[Symbol.asyncDispose]());
    auth = restarted();
    expect(await answerTo(before.token)).toBe('PMS');
    expect(await answerTo(after.token)).toContain('was revoked');
    await auth.revoke(before.id, caller);
    expect(await answerTo(before.token)).toContain('was revoked');
  });

  it('comes after 90 days, or those asked for, to the millisecond', async () => {
    const [standard, short] = [await create(), await create(['pms'], 1)];
    await pass(clock, DAY_MS - 1);
    expect(await answerTo(short.token)).toBe('PMS');
    clock.jumpWall(1);
    expect(await answerTo(short.token)).toContain('expired');
    await pass(clock, 89 * DAY_MS - 1);
    expect(await answerTo(standard.token)).toBe('PMS');
    clock.jumpWall(1);
    expect(await answerTo(standard.token)).toContain('expired');
    expect(listed().map(({ status }) => status)).toEqual(['expired', 'expired']);
  });

  it('once seen is not undone by a clock set back: at once, after the write, and after a restart', async () => {
    const [seen, unseen] = [await create(['pms'], 1), await create(['pms'], 1)];
    await pass(clock, DAY_MS);
    expect(await answerTo(seen.token)).toContain('expired');
    clock.jumpWall(-DAY_MS);
    expect(await answerTo(seen.token)).toContain('expired');
    await clock.advance(60_000);
    expect(await answerTo(seen.token)).toContain('expired');
    await auth[Symbol.asyncDispose]();
    auth = restarted();
    expect(await answerTo(seen.token)).toContain('expired');
    expect(await answerTo(unseen.token)).toBe('PMS');
  });

  it('is stored with the time before it is answered, so that a kill and a clock set back do not undo it', async () => {
    const { token } = await create(['pms'], 1);
    await pass(clock, DAY_MS);
    await clock.advance(30_000);
    expect(await answerTo(token)).toContain('expired');
    const stored = database.prepare('SELECT expired_at, at FROM token JOIN known_time').get();
    expect(stored).toEqual({ expired_at: clock.now(), at: clock.now() });
    clock = manualClock(clock.now() - 2 * DAY_MS);
    const next = openTestAuth({ database, clock, audited, clockSynchronised: () => false });
    await expect(next.authenticate(bearer(token))).rejects.toThrow('expired');
  });

  it('does not come with a clock in the far future that no time server stands behind', async () => {
    const unsure = openTestAuth({ database, clock, audited, clockSynchronised: () => false });
    const { token } = await create();
    clock.jumpWall(70 * 365 * DAY_MS);
    expect((await unsure.authenticate(bearer(token))).label).toBe('PMS');
    const code = await unsure.createCode({ label: 'Ada', roles: ['pms'] }, caller);
    const { setCookie } = await unsure.signIn(code.code, { address: 'a', correlationId: 'c' });
    const [secret = ''] = /gws_[\w-]+/.exec(setCookie) ?? [];
    expect((await unsure.authenticate(cookie(secret))).label).toBe('Ada');
    await clock.advance(DAY_MS / 2);
    await expect(unsure.authenticate(cookie(secret))).rejects.toThrow('expired');
  });

  it('does not come with a minute of a clock that a broken time server set to the year 2099', async () => {
    const { token } = await create();
    clock.jumpWall(27_000 * DAY_MS);
    expect(await answerTo(token)).toBe('PMS');
    await clock.advance(60_000);
    expect(await answerTo(token)).toBe('PMS');
    clock.jumpWall(-27_000 * DAY_MS);
    await clock.advance(60_000);
    expect([await answerTo(token), listed()[0]?.status]).toEqual(['PMS', 'active']);
  });

  it('comes after the life that was given, although the clock was ahead when the token was made', async () => {
    let synchronised = false;
    const ahead = manualClock(Date.UTC(2099, 0, 1));
    const early = openTestAuth({
      database,
      clock: ahead,
      audited,
      clockSynchronised: () => synchronised,
    });
    const { token } = await early.create({ label: 'PMS', roles: ['pms'], expiresInDays: 1 }, caller);
    synchronised = true;
    ahead.jumpWall(-27_000 * DAY_MS);
    await ahead.advance(61_000);
    expect((await early.authenticate(bearer(token))).label).toBe('PMS');
    await ahead.advance(DAY_MS);
    await expect(early.authenticate(bearer(token))).rejects.toThrow('expired');
  });

  it('does not come early with a clock that starts in the past', async () => {
    const { token } = await create();
    clock.jumpWall(-20 * 365 * DAY_MS);
    expect(await answerTo(token)).toBe('PMS');
  });
});

describe('the last use', () => {
  it('is known at once, and costs one commit a minute however many requests', async () => {
    const { token, id } = await create();
    const before = database.figures().jobs;
    for (let n = 0; n < 100; n += 1) await auth.authenticate(bearer(token));
    expect(listed()[0]?.lastUsedAt).toBe(new Date(clock.now()).toISOString());
    expect(database.figures().jobs).toBe(before);
    await clock.advance(60_000);
    expect(database.figures().jobs).toBe(before + 1);
    // And one every ten minutes for the known time.
    await clock.advance(600_000);
    expect(database.figures().jobs).toBe(before + 2);
    expect(
      database
        .prepare<[string], { last_used_at: number }>('SELECT last_used_at FROM token WHERE id = ?')
        .get(id),
    ).toEqual({
      last_used_at: Date.UTC(2026, 0, 1),
    });
  });

  it('is written when closing', async () => {
    const { token } = await create();
    await auth.authenticate(bearer(token));
    await auth[Symbol.asyncDispose]();
    auth = restarted();
    expect(listed()[0]?.lastUsedAt).toBe('2026-01-01T00:00:00.000Z');
  });
});

describe('the operations', () => {
  const call = async (method: string, path: string, body?: unknown) => {
    const app = createApp({
      surface: { kind: 'local' },
      operations: authOperations(auth),
      version: '1',
      clock,
      log: silentLog,
      checkResponses: true,
    });
    const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const request = new Request(`http://localhost${path}`, {
      ...init,
      headers: { 'Content-Type': 'application/json' },
    });
    const response = await app.fetch(request);
    return { status: response.status, body: JSON.parse(await response.text()) };
  };

  it('create, list by page, and revoke', async () => {
    for (let n = 0; n < 5; n += 1) {
      clock.jumpWall(n % 2);
      const made = await call('POST', '/tokens', { label: `t${n}`, roles: ['pms'] });
      expect([made.status, made.body.status]).toEqual([200, 'active']);
      expect(await answerTo(made.body.token)).toBe(`t${n}`);
    }
    const labels: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const page = await call('GET', `/tokens?limit=2${next && `&cursor=${next}`}`);
      expect(page.status).toBe(200);
      labels.push(...page.body.items.map(({ label }: { label: string }) => label));
      next = page.body.next;
    }
    expect(labels.toSorted()).toEqual(['t0', 't1', 't2', 't3', 't4']);
    const [first] = listed();
    expect((await call('DELETE', `/tokens/${first?.id}`)).body.status).toBe('revoked');
    expect((await call('DELETE', '/tokens/000000000000')).status).toBe(404);
    expect((await call('DELETE', '/tokens/x')).status).toBe(400);
  });

  it.each([
    {},
    { label: 'x', roles: [] },
    { label: 'x', roles: ['pms', 'pms'] },
    { label: 'x', roles: ['root'] },
    { label: '', roles: ['pms'] },
    { label: 'a\nb', roles: ['pms'] },
    { label: 'Local  Administrator', roles: ['pms'] },
    { label: 'x', roles: ['pms'], expiresInDays: 401 },
    { label: 'x', roles: ['pms'], expiresInDays: 0 },
    { label: 'x', roles: ['pms'], expiresInDays: 1.5 },
  ])('refuse %j', async (body) => {
    expect((await call('POST', '/tokens', body)).body.error).toBe('VALIDATION_FAILED');
    expect(listed()).toEqual([]);
  });

  it('are kept by no Idempotency-Key, for the answer holds their secret', () => {
    expect(authOperations(auth).filter(takesIdempotencyKey)).toEqual([]);
  });

  const someone = (...roles: Role[]) => ({
    principal: { id: 'someone', label: 'someone', roles: new Set(roles), via: 'token' as const },
    correlationId: 'c2',
  });

  it('give no role that their maker has not', async () => {
    const technician = someone('service-tool');
    const beyond = { label: 'x', roles: ['service-tool', 'pms'] satisfies Role[] };
    await expect(auth.create(beyond, technician)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await expect(auth.createCode(beyond, technician)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(listed()).toEqual([]);
    const own = await auth.create({ label: 'x', roles: ['service-tool'] }, technician);
    expect(own.createdBy).toBe('someone');
    await auth.createCode(beyond, someone('pms', 'service-tool'));
  });

  it('leave a service-tool, unless that is confirmed', async () => {
    const make = async (role: Role) => (await auth.create({ label: role, roles: [role] }, caller)).id;
    const [first, second, other] = [
      await make('service-tool'),
      await make('service-tool'),
      await make('pms'),
    ];
    expect((await call('DELETE', `/tokens/${first}`)).status).toBe(200);
    expect(await call('DELETE', `/tokens/${second}`)).toMatchObject({
      status: 409,
      body: { error: 'CONFIRMATION_NEEDED' },
    });
    const active = listed().filter(({ status }) => status === 'active');
    expect(active.map(({ id }) => id).toSorted()).toEqual([second, other].toSorted());
    // What is revoked already, and what is no service-tool, needs none.
    expect((await call('DELETE', `/tokens/${first}`)).status).toBe(200);
    expect((await call('DELETE', `/tokens/${other}`)).status).toBe(200);
    expect((await call('DELETE', `/tokens/${second}?confirm=true`)).body.status).toBe('revoked');
  });

  it('refuse a cursor that is none', async () => {
    expect((await call('GET', '/tokens?cursor=abc')).status).toBe(400);
  });
});
