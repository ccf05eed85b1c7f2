import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { bearer, openTestAuth } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { Auth } from './auth.ts';

const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c1' };
let database: Database;
let clock: ManualClock;
let audited: AuditEntry[];
let auth: Auth;

beforeEach(async () => {
  clock = manualClock();
  audited = [];
  database = await temporaryDatabase();
  auth = openTestAuth({ database, clock, audited });
});

type Refusal = { code: string; retryAfterSeconds?: number };
const offered = (address: string, token = 'gwt_wrong') =>
  auth.authenticate(bearer(token, address)).then(
    () => 'welcome',
    ({ code, retryAfterSeconds }: Refusal) => [code, retryAfterSeconds].filter(Boolean).join(' '),
  );
const guessed = (address: string, code = '0000-0000-0000') =>
  auth.signIn(code, { address, correlationId: 'c' }).then(
    () => 'welcome',
    ({ code, retryAfterSeconds }: Refusal) => [code, retryAfterSeconds].filter(Boolean).join(' '),
  );
const newCode = async () => (await auth.createCode({ label: 'x', roles: ['pms'] }, caller)).code;
const newToken = async () => (await auth.create({ label: 'x', roles: ['pms'] }, caller)).token;
async function times(count: number, attempt: () => Promise<string>): Promise<string[]> {
  const answers: string[] = [];
  for (let n = 0; n < count; n += 1) answers.push(await attempt());
  return answers;
}

describe('wrong credentials', () => {
  it('are answered with 401 ten times, then with 429 and when to come back', async () => {
    expect(await times(10, () => offered('a'))).toEqual(Array(10).fill('UNAUTHORIZED'));
    expect(await times(3, () => offered('a'))).toEqual(Array(3).fill('RATE_LIMITED 5'));
    await clock.advance(5_000);
    expect(await times(2, () => offered('a'))).toEqual(['UNAUTHORIZED', 'RATE_LIMITED 5']);
  });

  it('hinder no other address, and no right ones from their own', async () => {
    const token = await newToken();
    await times(1_000, () => offered('a'));
    expect(await offered('a', token)).toBe('welcome');
    expect(await offered('b')).toBe('UNAUTHORIZED');
  });

  it('are not what a request without any is', async () => {
    const bare = { authorization: undefined, cookie: 'theme=dark', address: 'a' };
    for (let n = 0; n < 30; n += 1) {
      await expect(auth.authenticate(bare)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    }
    expect(await offered('a')).toBe('UNAUTHORIZED');
  });

  it('may be as many as a site says', async () => {
    auth = openTestAuth({ database, clock, audited, config: { failureBurst: 2, failuresPerMinute: 60 } });
    expect(await times(3, () => offered('a'))).toEqual(['UNAUTHORIZED', 'UNAUTHORIZED', 'RATE_LIMITED 1']);
  });

  it('are remembered for a bounded number of addresses', async () => {
    await times(11, () => offered('first'));
    for (let n = 0; n < 4_096; n += 1) await offered(`address ${n}`);
    expect(await offered('first')).toBe('UNAUTHORIZED');
  });
});

describe('guesses at login codes', () => {
  it('are answered like other wrong credentials, and counted apart from them', async () => {
    expect(await times(11, () => guessed('a'))).toEqual([
      ...Array(10).fill('UNAUTHORIZED'),
      'RATE_LIMITED 5',
    ]);
    expect(await offered('a')).toBe('UNAUTHORIZED');
  });

  it('keep the right code out from no address: neither from theirs, nor from any of their network', async () => {
    await times(200, () => guessed('192.0.2.1'));
    for (let n = 0; n < 10_500; n += 1) await guessed(`2001:db8::${n.toString(16)}`);
    for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::f:1', '2001:db8:1::1'])
      expect(await guessed(address, await newCode()), address).toBe('welcome');
    expect(await times(10, () => guessed('192.0.2.3'))).toEqual(Array(10).fill('UNAUTHORIZED'));
  });

  it('cost no commit', async () => {
    const before = database.figures().jobs;
    await times(50, () => guessed('a'));
    expect(database.figures().jobs).toBe(before);
  });
});

describe('the audit', () => {
  it('has one row a minute for all failures, with the addresses that have most', async () => {
    for (let n = 0; n < 30; n += 1) await times(n, () => offered(`10.0.0.${n}`));
    await times(5, () => guessed('10.0.1.1'));
    expect(audited).toEqual([]);
    await clock.advance(60_000);
    const rows = audited.filter(({ action }) => action === 'credentials.fail');
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ outcome: 'refused', detail: { failures: (29 * 30) / 2 + 5 } });
    const addresses = (rows[0]?.detail?.addresses ?? {}) as Record<string, number>;
    expect(Object.keys(addresses)).toHaveLength(10);
    expect(addresses['10.0.0.29']).toBe(29);
    await clock.advance(600_000);
    expect(audited.filter(({ action }) => action === 'credentials.fail')).toHaveLength(1);
  });

  it('counts what happens while it is written, and what could not be written, the next time', async () => {
    await offered('a');
    const { push } = audited;
    audited.push = () => {
      throw new Error('the audit is full');
    };
    await clock.advance(60_000);
    await offered('a');
    audited.push = push;
    await clock.advance(60_000);
    expect(audited.at(-1)).toMatchObject({ detail: { failures: 2, addresses: { a: 2 } } });
  });

  it('counts addresses beyond a thousand together', async () => {
    for (let n = 0; n < 1_100; n += 1) await offered(`10.1.${n >> 8}.${n & 255}`);
    await clock.advance(60_000);
    expect(audited.at(-1)?.detail).toMatchObject({ failures: 1_100, addresses: { others: 76 } });
  });

  it('has them when the gateway closes', async () => {
    await offered('a');
    await auth[Symbol.asyncDispose]();
    expect(audited.at(-1)).toMatchObject({ action: 'credentials.fail', detail: { failures: 1 } });
  });
});
