import { createHmac, createPublicKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import {
  AUDIENCE,
  ISSUER,
  type IssuerKey,
  issue,
  issuerKey,
  keySet,
} from '../../../test/services/auth/issuer.ts';
import { bearer, openTestAuth, SYSTEM_ID } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import type { ConfigInput } from '../../platform/config/config.ts';
import type { Database } from '../../platform/database/database.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { Auth } from './auth.ts';

type Oidc = NonNullable<NonNullable<ConfigInput['auth']>['oidc']>;
const HOUR_MS = 3_600_000;
let key: IssuerKey;
let file: string;
let database: Database;
let clock: ManualClock;
let synchronised: boolean;
let auth: Auth;

function opened(oidc: Partial<Oidc> = {}): Auth {
  const config = {
    failureBurst: 1_000,
    oidc: { issuer: ISSUER, audience: AUDIENCE, jwksFile: file, ...oidc },
  };
  const audited: AuditEntry[] = [];
  return openTestAuth({ database, clock, audited, config, clockSynchronised: () => synchronised });
}

beforeEach(async () => {
  clock = manualClock();
  synchronised = true;
  key = issuerKey('k1');
  file = join(temporaryFolder(), 'keys.json');
  writeFileSync(file, keySet(key));
  database = await temporaryDatabase();
  auth = opened();
});

const answerTo = (token: string) =>
  auth.authenticate(bearer(token)).then(
    ({ roles }) => [...roles].join(' '),
    (error: { code: string; message: string }) => `${error.code} ${error.message}`,
  );
const claimed = async (claims: Record<string, unknown>, header = {}) =>
  answerTo(await issue(key, clock.now(), claims, header));
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token of the identity provider', () => {
  it('lets its bearer in, as the same principal each time, with the roles known here', async () => {
    const token = await issue(key, clock.now(), { preferred_username: 'Ada' });
    const principal = await auth.authenticate(bearer(token));
    expect(principal).toEqual({
      // Computed with Python's uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, issuer), 'ada').
      id: '2d5abfbc-0d61-5f4d-bdf0-6b52b7a5701f',
      label: 'Ada',
      roles: new Set(['pms']),
      via: 'jwt',
      expiresAt: clock.now() + HOUR_MS,
    });
    const again = await auth.authenticate(bearer(await issue(key, clock.now() + 5_000)));
    expect([again.id, again.label]).toEqual([principal.id, 'ada']);
    const other = await auth.authenticate(bearer(await issue(key, clock.now(), { sub: 'eve' })));
    expect(other.id).not.toBe(principal.id);
  });

  it.each([
    [{ preferred_username: 'a\u202Eb' }, 'ada'],
    [{ preferred_username: ' \u2800' }, 'ada'],
    [{ preferred_username: 'local administrator' }, 'ada'],
    [{ preferred_username: 'Gatehouse' }, 'ada'],
    [{ preferred_username: 'any\u2060one' }, 'ada'],
    [{ preferred_username: 'x'.repeat(70) }, 'x'.repeat(64)],
    [{ sub: 'a\u202Eb' }, expect.stringMatching(/^[0-9a-f-]{36}$/)],
    [{ sub: 'a\nb', preferred_username: 'Bo' }, 'Bo'],
  ])('%j is called as a local token could be', async (claims, label) => {
    const principal = await auth.authenticate(bearer(await issue(key, clock.now(), claims)));
    expect(principal.label).toEqual(label);
  });

  it('with a beginning that no clock reaches is refused, also while the clock may be behind', async () => {
    synchronised = false;
    expect(await claimed({ nbf: 1e18 })).toContain('not valid yet');
  });

  it.each(['ES256', 'RS256', 'PS256', 'EdDSA'])('is taken with %s', async (alg) => {
    key = issuerKey('k2', alg);
    writeFileSync(file, keySet(issuerKey('k1'), key));
    auth = opened();
    expect(await claimed({})).toBe('pms');
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['of another issuer', { iss: 'https://evil.example' }, 'its claim iss'],
    ['of an issuer with a slash more', { iss: `${ISSUER}/` }, 'its claim iss'],
    ['for another audience', { aud: 'pms' }, 'its claim aud'],
    ['without an audience', { aud: undefined }, 'its claim aud'],
    ['without an end', { exp: undefined }, 'its claim exp'],
    ['whose end is no number', { exp: '9999999999' }, 'its claim exp'],
    // No Date can hold it (ECMA-262, 21.4.1.1), and `GET /session` has to write it.
    ['whose end is beyond all calendars', { exp: 1e18 }, 'its claim exp is after the year 9999'],
    ['whose end is in milliseconds', { exp: 1_900_000_000_000 }, 'not milliseconds'],
    ['without a subject', { sub: undefined }, 'its claim sub'],
    ['with an empty subject', { sub: '' }, 'it has no subject'],
    ['for another system', { system_id: '00000000-0000-4000-8000-000000000000' }, 'system_id'],
    ['for no system', { system_id: undefined }, 'system_id'],
    ['for a list of systems', { system_id: [SYSTEM_ID] }, 'system_id'],
  ])('%s is refused', async (_name, claims, reason) => {
    expect(await claimed(claims)).toMatch(/^UNAUTHORIZED The token is not accepted: /);
    expect(await claimed(claims)).toContain(reason);
  });

  it('takes a list of audiences, and the system in capitals', async () => {
    expect(await claimed({ aud: ['a', AUDIENCE], system_id: SYSTEM_ID.toUpperCase() })).toBe('pms');
  });

  it.each(['JWT', 'at+jwt', 'application/at+jwt', undefined])('may be of type %s', async (typ) => {
    expect(await claimed({}, { typ })).toBe('pms');
  });

  it.each(['logout+jwt', 'dpop+jwt', 'secevent+jwt'])('may not be of type %s', async (typ) => {
    expect(await claimed({}, { typ })).toContain('not an access token');
  });

  it('has its roles where the configuration says: a path, a name with dots, a string', async () => {
    auth = opened({ rolesClaim: 'realm_access.roles' });
    expect(await claimed({ realm_access: { roles: ['front-desk', 'front-desk'] } })).toBe('front-desk');
    auth = opened({ rolesClaim: 'https://example.com/roles' });
    expect(await claimed({ 'https://example.com/roles': 'pms service-tool' })).toBe('service-tool pms');
  });

  it.each([undefined, null, [], ['root', 'admin', 7], { pms: true }, 'pmsx', ['PMS']])(
    'has no role by the claim %j',
    async (roles) => {
      auth = opened({ rolesClaim: 'constructor.roles' });
      expect(await claimed({ constructor: { roles } })).toBe('');
    },
  );
});

describe('a forged token', () => {
  const header = (more: object) => part({ typ: 'at+jwt', kid: 'k1', ...more });
  let payload: string;
  beforeEach(async () => {
    payload = (await issue(key, clock.now())).split('.')[1] ?? '';
  });

  it.each(['none', 'None', 'NONE', 'nOnE', ''])('with alg %j is refused', async (alg) => {
    expect(await answerTo(`${header({ alg })}.${payload}.`)).toMatch(/^UNAUTHORIZED/);
  });

  it('signed with the public key as a shared secret is refused', async () => {
    const publicKey = createPublicKey(key.key);
    const secrets = [
      publicKey.export({ type: 'spki', format: 'pem' }),
      publicKey.export({ type: 'spki', format: 'der' }),
      JSON.stringify(key.jwk),
    ];
    for (const secret of secrets) {
      const signed = `${header({ alg: 'HS256' })}.${payload}`;
      const mac = createHmac('sha256', secret).update(signed).digest('base64url');
      expect(await answerTo(`${signed}.${mac}`)).toContain('algorithm is not allowed');
    }
  });

  it('that brings its own key, or the address of one, is refused', async () => {
    const mine = issuerKey('k1');
    for (const more of [
      { jwk: mine.jwk },
      { jku: 'https://evil.example/keys' },
      { x5u: 'https://evil.example' },
    ]) {
      expect(await answerTo(await issue(mine, clock.now(), {}, more))).toContain('it is not genuine');
    }
  });

  it('with a key no one knows, none at all, or an extension that must be understood, is refused', async () => {
    expect(await claimed({}, { kid: 'k9' })).toContain('try again in a minute');
    expect(await answerTo(await issue(issuerKey('k1'), clock.now()))).toContain('it is not genuine');
    const critical = `${header({ alg: 'ES256', crit: ['exp'], exp: 1 })}.${payload}.AAAA`;
    expect(await answerTo(critical)).toMatch(/^UNAUTHORIZED/);
  });

  it('with an algorithm the site does not allow is refused', async () => {
    auth = opened({ algorithms: ['RS256'] });
    expect(await claimed({})).toContain('algorithm is not allowed');
  });

  it('cut short anywhere, or with a character changed, is refused', async () => {
    const token = await issue(key, clock.now());
    for (let length = 0; length < token.length; length += 7) {
      expect(await answerTo(token.slice(0, length))).toMatch(/^UNAUTHORIZED/);
    }
    for (let at = 0; at < token.length - 1; at += 5) {
      const other = token[at] === 'A' ? 'B' : 'A';
      expect(await answerTo(token.slice(0, at) + other + token.slice(at + 1))).toMatch(/^UNAUTHORIZED/);
    }
    expect(await answerTo(token)).toBe('pms');
  });

  it('of any size is refused, not a fault of ours', async () => {
    const huge = part({ sub: 'x'.repeat(1_000_000) });
    expect(await answerTo(`${header({ alg: 'ES256' })}.${huge}.${'A'.repeat(86)}`)).toMatch(/^UNAUTHORIZED/);
    for (const text of ['eyJ..', 'eyJ.e.A', `eyJ${'A'.repeat(100_000)}.A.A`, `${part([])}.${part([])}.A`]) {
      expect(await answerTo(text)).toMatch(/^UNAUTHORIZED/);
    }
    for (const nbf of ['x', 1e300, -1, Number.MAX_SAFE_INTEGER]) {
      synchronised = false;
      auth = opened();
      expect(await claimed({ nbf })).toMatch(/^(UNAUTHORIZED|pms)/);
    }
  });
});

describe('the end of a token of the identity provider', () => {
  it('comes when it says, and as much later as clocks may differ, whether seen before or not', async () => {
    const [seen, unseen] = [await issue(key, clock.now()), await issue(key, clock.now(), { sub: 'eve' })];
    expect(await answerTo(seen)).toBe('pms');
    await clock.advance(HOUR_MS + 59_999);
    expect([await answerTo(seen), await answerTo(unseen)]).toEqual(['pms', 'pms']);
    await clock.advance(1);
    expect(await answerTo(seen)).toContain('it has expired');
    expect(await answerTo(unseen)).toContain('it has expired');
  });

  it('comes for a remembered one with its key', async () => {
    const token = await issue(key, clock.now(), { exp: clock.now() / 1_000 + 10 * 3_600 });
    expect(await answerTo(token)).toBe('pms');
    writeFileSync(file, keySet(issuerKey('k2')));
    const stop = new AbortController();
    const running = auth.issuerKeys?.run(stop.signal).catch(() => {});
    await clock.advance(16 * 60_000);
    expect(await answerTo(token)).toContain('try again in a minute');
    stop.abort();
    await running;
  });

  it('is not undone by a clock set back, nor brought by one that starts in the far future', async () => {
    synchronised = false;
    auth = opened();
    const long = await issue(key, clock.now(), { exp: clock.now() / 1_000 + 20 * 3_600 });
    const short = await issue(key, clock.now());
    await clock.advance(2 * HOUR_MS);
    expect(await answerTo(short)).toContain('it has expired');
    clock.jumpWall(-30 * 365 * 24 * HOUR_MS);
    expect([await answerTo(short), await answerTo(long)]).toEqual([
      expect.stringContaining('expired'),
      'pms',
    ]);
    clock.jumpWall(80 * 365 * 24 * HOUR_MS);
    expect(await answerTo(long)).toBe('pms');
    await clock.advance(19 * HOUR_MS);
    expect(await answerTo(long)).toContain('it has expired');
  });
});

describe('the beginning of a token of the identity provider', () => {
  it('is waited for, less what clocks may differ', async () => {
    const nbf = clock.now() / 1_000 + 61;
    expect(await claimed({ nbf })).toContain('not valid yet');
    await clock.advance(1_000);
    expect(await claimed({ nbf })).toBe('pms');
  });

  it('is not judged by a clock that may be behind', async () => {
    synchronised = false;
    auth = opened();
    const now = clock.now() + 90 * 24 * HOUR_MS;
    expect(await answerTo(await issue(key, now, { nbf: now / 1_000 }))).toBe('pms');
  });
});

it('remembers a bounded number of tokens, and verifies the forgotten again', async () => {
  const first = await issue(key, clock.now());
  for (let n = 0; n < 1_030; n += 1) await claimed({ sub: `s${n}` });
  expect(await answerTo(first)).toBe('pms');
});

it('is refused where no identity provider is configured', async () => {
  auth = openTestAuth({ database, clock, audited: [] });
  expect(await claimed({})).toContain('check for a typing error');
});
