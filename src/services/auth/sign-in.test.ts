import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { bearer, cookie, openTestAuth, pass } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { createApp } from '../../platform/http/app.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR, type Role } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { Auth } from './auth.ts';
import { authOperations } from './operations.ts';
import { drawCode, readCode } from './sign-in.ts';
import { check } from './token.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c1' };
const from = { address: '192.0.2.7', correlationId: 'c2' };
let database: Database;
let clock: ManualClock;
let audited: AuditEntry[];
let auth: Auth;

const open = () => openTestAuth({ database, clock, audited });
beforeEach(async () => {
  clock = manualClock();
  audited = [];
  database = await temporaryDatabase();
  auth = open();
});

const newCode = async (roles: Role[] = ['service-tool']) =>
  (await auth.createCode({ label: 'installer', roles }, caller)).code;
/** The secret in the cookie a code is redeemed for. */
async function signIn(code?: string) {
  const { setCookie } = await auth.signIn(code ?? (await newCode()), from);
  return /^__Host-gatehouse=([^;]+);/.exec(setCookie)?.[1] ?? '';
}
const welcome = (credentials: Parameters<Auth['authenticate']>[0]) =>
  auth.authenticate(credentials).then(
    ({ via }) => via,
    (error: { code: string }) => error.code,
  );
const redeemed = (code: string) =>
  auth.signIn(code, from).then(
    () => 'welcome',
    (error: { code: string }) => error.code,
  );

describe('a login code', () => {
  it('lets a person in once, with its roles', async () => {
    const code = await newCode(['front-desk', 'pms']);
    expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/);
    const { session, setCookie } = await auth.signIn(code, from);
    expect(session).toEqual({
      principalId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      label: 'installer',
      roles: ['front-desk', 'pms'],
      via: 'session',
      expiresAt: '2026-01-01T12:00:00.000Z',
    });
    expect(setCookie).toMatch(
      /^__Host-gatehouse=gws_[\w-]+; Max-Age=43200; HttpOnly; Secure; SameSite=Strict; Path=\/$/,
    );
    expect(await redeemed(code)).toBe('UNAUTHORIZED');
  });

  it('is good once, however many redeem it at the same time', async () => {
    const code = await newCode();
    const answers = await Promise.all(Array.from({ length: 20 }, () => redeemed(code)));
    expect(answers.filter((answer) => answer === 'welcome')).toHaveLength(1);
    expect(auth.list({ limit: 100 }).items).toHaveLength(1);
  });

  it('ends after ten minutes, also when the clock is set back', async () => {
    const [early, late] = [await newCode(), await newCode()];
    await clock.advance(10 * MINUTE_MS - 1);
    expect(await redeemed(early)).toBe('welcome');
    await clock.advance(1);
    expect(await redeemed(late)).toBe('UNAUTHORIZED');
  });

  it('survives a restart', async () => {
    const code = await newCode();
    await auth[Symbol.asyncDispose]();
    auth = open();
    expect(await redeemed(code)).toBe('welcome');
  });

  it('is taken as people type it', async () => {
    for (const typed of [
      (code: string) => code.toLowerCase(),
      (code: string) => code.replaceAll('-', ''),
      (code: string) => ` ${code.replaceAll('-', ' ')} `,
      (code: string) => code.replaceAll('0', 'o').replaceAll('1', 'l'),
    ]) {
      expect(await redeemed(typed(await newCode()))).toBe('welcome');
    }
    expect(readCode('0123-4567-89AB')).toBe('0123456789AB');
    const wrongs = [
      '',
      '0123-4567-89A',
      '0123-4567-89ABC',
      'U123-4567-89AB',
      '0123_4567_89AB',
      'ÄÖÜ0123456789',
    ];
    for (const wrong of wrongs) {
      expect(readCode(wrong)).toBeUndefined();
    }
    expect(new Set(Array.from({ length: 1_000 }, drawCode)).size).toBe(1_000);
  });

  it('is stored under a keyed digest alone, and appears nowhere else', async () => {
    const code = await newCode();
    const secret = await signIn(await newCode());
    const rows = JSON.stringify(database.prepare<[], object>('SELECT * FROM login_code').all());
    const visible = JSON.stringify([rows, audited, auth.list({ limit: 100 })]);
    for (const text of [code, code.replaceAll('-', ''), secret.slice(17, 60)])
      expect(visible).not.toContain(text);
  });

  it('waits with 31 others at most: a further one ends the oldest, and what is over is forgotten', async () => {
    const first = await newCode();
    for (let n = 0; n < 40; n += 1) await newCode();
    expect(await redeemed(first)).toBe('UNAUTHORIZED');
    const count = database.prepare<[], { n: number }>('SELECT count(*) AS n FROM login_code');
    expect(count.get()?.n).toBe(32);
    await clock.advance(10 * MINUTE_MS);
    await newCode();
    expect(count.get()?.n).toBe(1);
  });

  it('is audited when made, redeemed, and when its session ends', async () => {
    const principal = await auth.authenticate(cookie(await signIn()));
    await auth.signOut({ principal, correlationId: 'c3' });
    await auth.signOut({ principal, correlationId: 'c3' });
    expect(audited.map(({ action, principal: { label } }) => `${label}: ${action}`)).toEqual([
      'local administrator: login-code.create',
      'installer: session.begin',
      'installer: session.end',
    ]);
    expect(audited[1]).toMatchObject({ principal: { id: principal.id }, detail: { address: '192.0.2.7' } });
  });
});

describe('a session', () => {
  it('is shown by its cookie alone, a token as bearer alone', async () => {
    const secret = await signIn();
    const { token } = await auth.create({ label: 'PMS', roles: ['pms'] }, caller);
    expect(await welcome(cookie(secret))).toBe('session');
    expect(await welcome(bearer(token))).toBe('token');
    expect(await welcome(bearer(secret))).toBe('UNAUTHORIZED');
    expect(await welcome(cookie(token))).toBe('UNAUTHORIZED');
    // What somebody makes of one who knows how the check is computed.
    const disguised = (text: string, prefix: string) => {
      const body = `${prefix}${text.slice(3, 60)}`;
      return `${body}_${check(body)}`;
    };
    expect(disguised(secret, 'gws')).toBe(secret);
    expect(await welcome(bearer(disguised(secret, 'gwt')))).toBe('UNAUTHORIZED');
    expect(await welcome(cookie(disguised(token, 'gws')))).toBe('UNAUTHORIZED');
  });

  it('is not what counts when a program says who it is', async () => {
    const both = { ...cookie(await signIn()), authorization: 'Bearer wrong' };
    expect(await welcome(both)).toBe('UNAUTHORIZED');
  });

  it.each(['x', '', 'gws_', '__Host-gatehouse'])('is not the cookie %j', async (secret) => {
    expect(await welcome(cookie(secret))).toBe('UNAUTHORIZED');
  });

  it('is not one of two cookies of its name, nor one of a similar name', async () => {
    const secret = await signIn();
    const named = (header: string) => welcome({ ...cookie(''), cookie: header });
    expect(await named(`__Host-gatehouse=${secret}`)).toBe('session');
    expect(await named(`__Host-gatehouse=x; __Host-gatehouse=${secret}`)).toBe('UNAUTHORIZED');
    expect(await named(`__host-gatehouse=${secret}`)).toBe('UNAUTHORIZED');
    expect(await named(`x__Host-gatehouse=${secret}`)).toBe('UNAUTHORIZED');
  });

  it('ends after twelve hours, when its holder leaves, and when it is revoked', async () => {
    const [left, revoked, late] = [await signIn(), await signIn(), await signIn()];
    const principal = await auth.authenticate(cookie(left));
    expect(await auth.signOut({ principal, correlationId: 'c' })).toMatch(/^__Host-gatehouse=; Max-Age=0; /);
    expect(await welcome(cookie(left))).toBe('UNAUTHORIZED');
    const shown = auth.list({ limit: 100 }).items.find(({ id }) => id === revoked.split('_')[1]);
    expect(shown).toMatchObject({ kind: 'session', status: 'active', label: 'installer' });
    await auth.revoke(shown?.id ?? '', caller);
    expect(await welcome(cookie(revoked))).toBe('UNAUTHORIZED');
    await clock.advance(12 * HOUR_MS - 1);
    expect(await welcome(cookie(late))).toBe('session');
    await clock.advance(1);
    expect(await welcome(cookie(late))).toBe('UNAUTHORIZED');
  });

  it('is forgotten a month after its end, a token never', async () => {
    await auth.create({ label: 'PMS', roles: ['pms'], expiresInDays: 1 }, caller);
    await signIn();
    await pass(clock, 32 * 24 * HOUR_MS);
    await signIn();
    expect(auth.list({ limit: 100 }).items.map(({ kind }) => kind)).toEqual(['api', 'session']);
  });

  it('is not ended by a token', async () => {
    const { token } = await auth.create({ label: 'PMS', roles: ['pms'] }, caller);
    const principal = await auth.authenticate(bearer(token));
    await expect(auth.signOut({ principal, correlationId: 'c' })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    expect(await welcome(bearer(token))).toBe('token');
  });
});

describe('over the interface', () => {
  const ORIGIN = 'https://gate.example:8443';
  function client() {
    const app = createApp({
      surface: {
        kind: 'lan',
        basePath: '',
        authenticate: auth.authenticate,
        rate: () => ({ perSecond: 1_000, burst: 1_000 }),
      },
      operations: authOperations(auth),
      version: '1',
      clock,
      log: silentLog,
      checkResponses: true,
    });
    return async (method: string, headers: Record<string, string>, body?: object) => {
      const sent = { ...(body && { 'Content-Type': 'application/json' }), ...headers };
      const init = { method, headers: sent, ...(body && { body: JSON.stringify(body) }) };
      const response = await app.fetch(new Request(`${ORIGIN}/session`, init), { address: '192.0.2.9' });
      return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
    };
  }
  const own = { 'Sec-Fetch-Site': 'same-origin' };

  it('a browser signs in, asks who it is, and leaves', async () => {
    const call = client();
    const signedIn = await call('POST', own, { code: await newCode() });
    expect(signedIn).toMatchObject({ status: 200, body: { label: 'installer', via: 'session' } });
    const Cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect((await call('GET', { Cookie })).body).toEqual(signedIn.body);
    const gone = await call('DELETE', { Cookie, ...own });
    expect([gone.status, gone.headers.get('set-cookie')]).toEqual([
      200,
      expect.stringContaining('Max-Age=0'),
    ]);
    const after = await call('GET', { Cookie });
    expect([after.status, after.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('invalid_token'),
    ]);
  });

  it.each([
    [{}, 403],
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Fetch-Site': 'same-site' }, 403],
    [{ 'Sec-Fetch-Site': 'none' }, 403],
    [{ 'Sec-Fetch-Site': 'same-site', Origin: ORIGIN }, 403],
    [{ Origin: 'https://evil.example' }, 403],
    [{ Origin: 'https://gate.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ Origin: ORIGIN }, 200],
    [{ 'Sec-Fetch-Site': 'same-origin' }, 200],
  ])('a change by cookie with %j answers %i', async (headers, status) => {
    const call = client();
    const Cookie = `__Host-gatehouse=${await signIn()}`;
    expect((await call('DELETE', { Cookie, ...headers })).status).toBe(status);
    // Reading changes nothing, and no other origin can see the answer.
    expect((await call('GET', { Cookie, ...headers })).status).toBe(status === 200 ? 401 : 200);
  });

  it('another page cannot sign its visitor in; a program needs no page', async () => {
    const call = client();
    expect((await call('POST', { 'Sec-Fetch-Site': 'cross-site' }, { code: await newCode() })).status).toBe(
      403,
    );
    expect((await call('POST', { Origin: 'https://evil.example' }, { code: await newCode() })).status).toBe(
      403,
    );
    expect((await call('POST', {}, { code: await newCode() })).status).toBe(200);
  });

  it.each([{}, { code: 7 }, { code: 'x'.repeat(33) }, { code: '0123-4567', user: 'root' }])(
    'refuses the body %j',
    async (body) => {
      expect((await client()('POST', own, body)).status).toBe(400);
    },
  );

  it('answers a token with its principal', async () => {
    const { token } = await auth.create({ label: 'PMS', roles: ['pms'] }, caller);
    const { body } = await client()('GET', { Authorization: `Bearer ${token}` });
    expect(body).toMatchObject({ label: 'PMS', roles: ['pms'], via: 'token' });
  });
});
