import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { bearer, openTestAuth, pass } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { LOCAL_ADMINISTRATOR, type Role } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { LiveEvent } from '../events/cloud-event.ts';
import type { Auth } from './auth.ts';

const DAY_MS = 86_400_000;
const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c1' };
let database: Database;
let clock: ManualClock;
let audited: AuditEntry[];
let published: LiveEvent[];
let auth: Auth;

beforeEach(async () => {
  clock = manualClock();
  audited = [];
  database = await temporaryDatabase();
  published = [];
  auth = open();
});

const open = () => openTestAuth({ database, clock, audited, published });

const create = (roles: Role[] = ['pms'], expiresInDays = 90) =>
  auth.create({ label: 'PMS', roles, expiresInDays }, caller);
const answerTo = (text: string) =>
  auth.authenticate(bearer(text)).then(
    ({ label }) => label,
    ({ message }: Error) => message,
  );

describe('the renewal of a token', () => {
  it('keeps its id and principal, and both secrets are good for the stated time', async () => {
    const old = await create(['pms'], 10);
    const renewed = await auth.renew(old.id, { expiresInDays: 30, overlapHours: 48 }, caller);
    expect([renewed.id, renewed.principalId]).toEqual([old.id, old.principalId]);
    expect(renewed.previousUntil).toBe(new Date(clock.now() + 2 * DAY_MS).toISOString());
    const both = async () => [await answerTo(old.token), await answerTo(renewed.token)];
    await pass(clock, 2 * DAY_MS - 1);
    expect(await both()).toEqual(['PMS', 'PMS']);
    await clock.advance(1);
    expect(await both()).toEqual([expect.stringContaining('was renewed'), 'PMS']);
    await pass(clock, 27 * DAY_MS);
    expect(await answerTo(renewed.token)).toBe('PMS');
    expect(audited.map(({ action }) => action)).toContain('token.renew');
  });

  it('gives the old secret no longer life than it had', async () => {
    const old = await create(['pms'], 1);
    const renewed = await auth.renew(old.id, { overlapHours: 336 }, caller);
    expect(renewed.previousUntil).toBe(old.expiresAt);
  });

  it('takes nothing from the end of an earlier secret, and a revocation ends them all', async () => {
    const first = await create(['pms'], 90);
    const second = await auth.renew(first.id, { overlapHours: 48 }, caller);
    const third = await auth.renew(first.id, { overlapHours: 24 }, caller);
    const all = async () => {
      const answers: string[] = [];
      for (const { token } of [first, second, third]) answers.push(await answerTo(token));
      return answers;
    };
    expect(await all()).toEqual(['PMS', 'PMS', 'PMS']);
    await pass(clock, DAY_MS);
    const renewed = expect.stringContaining('was renewed');
    expect(await all()).toEqual(['PMS', renewed, 'PMS']);
    await pass(clock, DAY_MS);
    expect(await all()).toEqual([renewed, renewed, 'PMS']);
    await auth.renew(first.id, {}, caller);
    await auth.revoke(first.id, caller);
    expect(await all()).toEqual(Array(3).fill(expect.stringContaining('was revoked')));
  });

  it('is refused while four former secrets are good, and ends them all where there is no overlap', async () => {
    const secrets = [(await create()).token];
    const [id] = auth.list({ limit: 1 }).items.map((token) => token.id);
    const renew = async (overlapHours: number) =>
      secrets.push((await auth.renew(id ?? '', { overlapHours }, caller)).token);
    for (const hours of [4, 3, 2, 1]) await renew(hours);
    await expect(renew(24)).rejects.toMatchObject({
      code: 'IN_USE',
      message: expect.stringContaining(new Date(clock.now() + 3_600_000).toISOString()),
    });
    const good = async () => {
      const answers: string[] = [];
      for (const secret of secrets) answers.push(await answerTo(secret));
      return answers.filter((answer) => answer === 'PMS').length;
    };
    expect(await good()).toBe(5);
    await renew(0);
    expect([await good(), await answerTo(secrets.at(-1) ?? '')]).toEqual([1, 'PMS']);
  });

  it('is possible after the end, and not after the revocation', async () => {
    const [ended, revoked] = [await create(['pms'], 1), await create()];
    await auth.revoke(revoked.id, caller);
    await expect(auth.renew(revoked.id, {}, caller)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await pass(clock, 2 * DAY_MS);
    expect(await answerTo(ended.token)).toContain('expired');
    const renewed = await auth.renew(ended.id, {}, caller);
    expect([await answerTo(renewed.token), await answerTo(ended.token)]).toEqual([
      'PMS',
      expect.stringContaining('was renewed'),
    ]);
  });
});

it('announces the end of a token from two weeks before, once at each of some days, across a restart', async () => {
  const { id } = await create(['pms'], 15);
  const days = () => published.map(({ data }) => data.daysLeft);
  expect(auth.endings()).toEqual([]);
  await pass(clock, DAY_MS + 60_000);
  expect(auth.endings()).toMatchObject([{ id, label: 'PMS', daysLeft: 13 }]);
  await auth[Symbol.asyncDispose]();
  auth = open();
  await clock.advance(120_000);
  expect(days()).toEqual([13]);
  await pass(clock, 11 * DAY_MS);
  await pass(clock, 4 * DAY_MS);
  expect(days()).toEqual([13, 2, -2]);
  expect(auth.endings()).toMatchObject([{ daysLeft: -2 }]);
  await auth.renew(id, {}, caller);
  expect(auth.endings()).toEqual([]);
});

it('puts into the audit who was refused for want of a role, once a minute', async () => {
  const principal = await create().then(({ token }) => auth.authenticate(bearer(token)));
  for (const operation of ['unlockDoor', 'unlockDoor', 'listAudit']) auth.forbidden(principal, operation);
  await clock.advance(60_000);
  await clock.advance(60_000);
  const refusals = audited.filter(({ action }) => action === 'operation.refuse');
  expect(refusals.map(({ object, outcome, detail }) => ({ object, outcome, detail }))).toEqual([
    { object: 'operation/unlockDoor', outcome: 'refused', detail: { reason: 'FORBIDDEN', times: 2 } },
    { object: 'operation/listAudit', outcome: 'refused', detail: { reason: 'FORBIDDEN', times: 1 } },
  ]);
  expect(refusals[0]?.principal).toBe(principal);
});
