import { beforeEach, describe, expect, it } from 'vitest';
import { principalWith } from '../../../test/access-matrix.ts';
import { openTestAudit, type TestAudit } from '../../../test/services/audit/audit.ts';
import { createApp } from '../../platform/http/app.ts';
import { silentLog } from '../../platform/log.ts';
import { auditOperations } from './operations.ts';

let opened: TestAudit;
beforeEach(async () => {
  opened = await openTestAudit();
});

type Item = { seq: number; object: string };
type Body = { items: Item[]; next: string | null; error?: string; [field: string]: unknown };

function appOf(kind: 'lan' | 'local') {
  const operations = auditOperations(opened.audit);
  const common = { operations, version: '1', clock: opened.clock, log: silentLog, checkResponses: true };
  if (kind === 'local') return createApp({ ...common, surface: { kind } });
  const rate = () => ({ perSecond: 1_000, burst: 1_000 });
  const authenticate = () => principalWith('service-tool');
  return createApp({ ...common, surface: { kind, basePath: '', authenticate, rate } });
}
async function ask(path: string, { kind = 'lan' as 'lan' | 'local', body = undefined as unknown } = {}) {
  const init =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
  const method = body === undefined ? 'GET' : 'POST';
  const response = await appOf(kind).fetch(new Request(`http://gate.test${path}`, { method, ...init }));
  return { status: response.status, body: (await response.json()) as Body };
}
const objects = async (query: string) => (await ask(`/audit${query}`)).body.items.map(({ object }) => object);

it('is checked over the interface, page by page, and what was changed is found', async () => {
  await opened.record('encoder/a');
  await opened.record('encoder/b');
  const { body } = await ask('/audit/verify');
  expect(body).toMatchObject({ complete: true, through: 3, fault: null });
  await opened.withoutTriggers();
  await opened.tamper("UPDATE audit SET object = 'encoder/c' WHERE seq = 2");
  expect((await ask('/audit/verify?after=0')).body).toMatchObject({
    fault: { firstBad: 2, reason: 'changed' },
  });
  expect((await ask('/audit/verify?after=x')).status).toBe(400);
});

describe('GET /audit', () => {
  beforeEach(async () => {
    await opened.record('encoder/a');
    await opened.record('encoder/b', { action: 'encoder.register', principal: { id: 'p2', label: 'Bob' } });
    await opened.clock.advance(60_000);
    await opened.record('token/1', { action: 'token.create', outcome: 'refused', detail: { label: 'x' } });
  });

  it('lists newest first, page by page', async () => {
    const { body } = await ask('/audit?limit=1');
    expect(body).toEqual({
      items: [
        {
          seq: 4,
          at: '2023-11-14T22:14:20.000Z',
          principal: { id: 'p1', label: 'Ada' },
          action: 'token.create',
          object: 'token/1',
          outcome: 'refused',
          detail: { label: 'x' },
          correlationId: 'c1',
        },
      ],
      next: '4',
    });
    const rest = await ask(`/audit?limit=3&cursor=${body.next}`);
    expect(rest.body.items.map(({ seq }) => seq)).toEqual([3, 2, 1]);
    expect(rest.body.next).toBeNull();
  });

  it.each([
    ['?actor=Bob', ['encoder/b']],
    ['?actor=p2', ['encoder/b']],
    ['?action=encoder.', ['encoder/b', 'encoder/a']],
    ['?action=encoder.register', ['encoder/b']],
    ['?object=encoder/', ['encoder/b', 'encoder/a']],
    ['?object=ncoder', []],
    ['?outcome=refused', ['token/1']],
    ['?from=2023-11-14T22:14:20Z', ['token/1']],
    ['?from=2023-11-14T23:14:20%2B01:00', ['token/1']],
    ['?to=2023-11-14T22:14:20Z&action=encoder', ['encoder/b', 'encoder/a']],
    ['?action=encoder.&actor=Ada', ['encoder/a']],
  ])('finds %s', async (query, found) => {
    expect(await objects(query)).toEqual(found);
  });

  it.each(['?cursor=x', '?limit=101', '?from=yesterday', '?actr=Ada', '?actor='])(
    'refuses %s',
    async (query) => {
      expect((await ask(`/audit${query}`)).status).toBe(400);
    },
  );

  it('gives up a page after so many rows, and goes on from there', async () => {
    await opened.database.commit(() => {
      for (let n = 0; n < 60_000; n += 1) {
        opened.audit.record({
          principal: { id: 'p1', label: 'Ada' },
          action: 'a.b',
          object: 'x',
          outcome: 'done',
          correlationId: 'c',
        });
      }
    });
    const { body } = await ask('/audit?action=encoder.');
    expect(body.items).toEqual([]);
    const rest = await ask(`/audit?action=encoder.&cursor=${body.next}`);
    expect(rest.body.items.map(({ object }) => object)).toEqual(['encoder/b', 'encoder/a']);
    expect(rest.body.next).toBeNull();
  });
});

describe('over the admin socket', () => {
  it('exports page by page, oldest first, with the macs', async () => {
    for (let n = 0; n < 30; n += 1) await opened.record(`encoder/${n}`);
    const { body } = await ask('/local/audit/export', { kind: 'local' });
    expect(body.items.map(({ seq }) => seq)).toEqual(Array.from({ length: 31 }, (_, n) => n + 1));
    expect(body.items[7]).toMatchObject({
      object: 'encoder/6',
      mac: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(body.next).toBeNull();
    const later = await ask('/local/audit/export?after=29', { kind: 'local' });
    expect(later.body.items.map(({ seq }) => seq)).toEqual([30, 31]);
  });

  it('verifies, and refuses what is no checkpoint', async () => {
    await opened.record('a');
    const taken = await ask('/local/audit/checkpoint', { kind: 'local', body: {} });
    const { checkpoint } = taken.body.checkpoint as { checkpoint: string };
    const good = await ask('/local/audit/verify', { kind: 'local', body: { checkpoint } });
    expect(good.body).toMatchObject({ through: 2, complete: true, prunedThrough: 0, fault: null });
    const bad = await ask('/local/audit/verify', { kind: 'local', body: { checkpoint: `${checkpoint}x` } });
    expect([bad.status, bad.body.error]).toEqual([400, 'VALIDATION_FAILED']);
    const beyond = await ask('/local/audit/verify', { kind: 'local', body: { after: 7 } });
    expect(beyond.body).toMatchObject({ fault: { firstBad: 7, reason: 'missing' } });
  });

  it('is not served to the network', async () => {
    expect((await ask('/local/audit/export')).status).toBe(404);
  });
});
