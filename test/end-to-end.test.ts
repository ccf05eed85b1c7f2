/** The main job over every layer: real daemon, real TLS and MQTT, encoders in processes of their own. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { LIFELIKE } from './simulators/encoder/commands.ts';
import { drawKeys, openTestSite, type TestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

let site: TestSite;
beforeAll(async () => {
  site = await openTestSite();
});
afterAll(() => site[Symbol.asyncDispose]());

const WAIT = { interval: 5 };
const QUICK = { startMs: 5, placeMs: 5, detectMs: 5, writeMs: 10, reconnectMs: 20 };
const keyIds = (count: number) => Array.from({ length: count }, () => randomUUID());
const eventsOf = (keyId: string) => site.upstream.events.filter(({ subject }) => subject === keyId);
const statusesOf = (keyId: string) => eventsOf(keyId).map(({ data }) => data.status);
const outcomeOf = async (keyId: string) =>
  (await site.upstream.waitFor((event) => event.subject === keyId && isTerminalEvent(event))).data;
const STEPS = ['queued', 'started', 'cardRequested', 'cardDetected', 'writing', 'written'];

async function connectedEncoder(id: string, timings = QUICK) {
  const encoder = await site.addEncoder(id, { timings });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  return encoder;
}

it('writes three keys on real cards and reports every step upstream, in order', async () => {
  const encoder = await connectedEncoder('three-keys');
  const entries = drawKeys(keyIds(3));
  const { status, body } = await site.requestWrite(encoder.id, 'request-1', entries);
  expect(status).toBe(202);
  expect(body).toMatchObject({ encoderId: encoder.id, requestId: 'request-1' });

  for (const { keyId, blocks } of entries) {
    expect(await outcomeOf(keyId)).toMatchObject({ keyId, requestId: 'request-1', status: 'written' });
    expect(STEPS).toEqual(expect.arrayContaining(statusesOf(keyId)));
    expect(statusesOf(keyId).slice(-5)).toEqual(STEPS.slice(1));
    const card = encoder.physicalLog().find((entry) => entry.what === 'complete' && entry.keyId === keyId);
    expect(card).toMatchObject({ blocks });
  }
  const sequences = site.upstream.deliveries
    .filter(({ topic }) => topic.includes('/three-keys/'))
    .map(({ event }) => Number(event.sequence));
  expect(sequences).toEqual(sequences.map((_, index) => index + 1));
  const topic = `gatehouse/1/${encoder.bundle.systemId}/encoders/three-keys/events`;
  expect(site.upstream.deliveries.find(({ event }) => event.subject === entries[0]?.keyId)?.topic).toBe(
    topic,
  );
});

it('writes on an encoder whose id has dots and colons, in a request whose id has', async () => {
  const encoder = await connectedEncoder('lobby.2:desk');
  const [entry] = drawKeys(keyIds(1));
  if (!entry) throw new Error('no key was drawn');
  expect((await site.requestWrite(encoder.id, 'pms:4711.a', [entry])).status).toBe(202);
  expect(await outcomeOf(entry.keyId)).toMatchObject({ requestId: 'pms:4711.a', status: 'written' });
  const topics = site.upstream.deliveries.filter(({ event }) => event.subject === entry.keyId);
  expect(topics.map(({ topic }) => topic)).toContainEqual(
    expect.stringMatching(/\/encoders\/lobby\.2:desk\/events$/),
  );
});

it('answers a repeated request with its state and writes nothing twice', async () => {
  const encoder = await connectedEncoder('repeated');
  const entries = drawKeys(keyIds(1));
  const [{ keyId } = { keyId: '' }] = entries;
  await site.requestWrite(encoder.id, 'again', entries);
  await outcomeOf(keyId);
  const { status, body } = await site.requestWrite(encoder.id, 'again', entries);
  expect(status).toBe(202);
  expect(body.status).toBe('written');
  const other = await site.requestWrite(encoder.id, 'again', drawKeys(keyIds(1)));
  expect([other.status, other.body.error]).toEqual([422, 'REQUEST_ID_REUSED']);
  expect(encoder.physicalLog().filter(({ what }) => what === 'partial')).toHaveLength(1);
});

it('refuses a write while the encoder is not connected', async () => {
  const encoder = await site.addEncoder('absent');
  const { status, body } = await site.requestWrite(encoder.id, 'request', drawKeys(keyIds(1)));
  expect([status, body.error]).toEqual([422, 'NOT_CONNECTED']);
});

it('shuts the first credentials out when the encoder is registered again, and the job goes on', async () => {
  const encoder = await connectedEncoder('registered-twice', { ...QUICK, writeMs: 300 });
  const entries = drawKeys(keyIds(2));
  await site.requestWrite(encoder.id, 'request', entries);
  await encoder.process.waitFor((message) => message.event === 'entry' && message.status === 'writing');
  const second = await site.register(encoder.id);
  expect(second.generation).toBe(encoder.bundle.generation + 1);
  await encoder.process.waitFor((message) => message.event === 'disconnected');
  await encoder.process.waitFor(
    (message) => message.event === 'refused' && /[Nn]ot authorized/.test(message.reason),
  );

  // Only now a card is finished that was in work: nothing may be known of it before the new credentials are in use.
  await encoder.process.waitFor((message) => message.event === 'entry' && message.status === 'written');
  await encoder.kill();
  await encoder.replaceBundle(second);
  encoder.start();
  for (const { keyId } of entries) expect((await outcomeOf(keyId)).status).not.toBe('failed');
  expect((await outcomeOf(entries[0]?.keyId ?? '')).status).toBe('written');
});

it('survives an encoder that sends everything twice and in the wrong order', async () => {
  const encoder = await connectedEncoder('muddled');
  encoder.command({ do: 'duplicate', on: true });
  encoder.command({ do: 'reorder', on: true });
  const entries = drawKeys(keyIds(3));
  await site.requestWrite(encoder.id, 'request', entries);
  for (const { keyId } of entries) {
    expect((await outcomeOf(keyId)).status).toBe('written');
    const ranks = statusesOf(keyId).map((status) => STEPS.indexOf(status));
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
    expect(eventsOf(keyId).filter(isTerminalEvent)).toHaveLength(1);
  }
});

it('repeats a write the encoder took no notice of', async () => {
  const encoder = await connectedEncoder('inattentive');
  encoder.command({ do: 'ignoreWrites', count: 1 });
  const entries = drawKeys(keyIds(1));
  await site.requestWrite(encoder.id, 'request', entries);
  expect((await outcomeOf(entries[0]?.keyId ?? '')).status).toBe('written');
});

it('writes on over lost connections, and on an encoder whose clock is years off', async () => {
  const encoder = await site.addEncoder('wanderer', { timings: QUICK });
  encoder.start({ clockOffsetDays: -9_000 });
  await encoder.process.waitFor(({ event }) => event === 'connected');
  encoder.command({ do: 'disconnect', at: { status: 'cardDetected', when: 'after' }, forMs: 200 });
  encoder.command({ do: 'disconnect', at: { status: 'written', when: 'before' } });
  const entries = drawKeys(keyIds(3));
  await site.requestWrite(encoder.id, 'request', entries);
  for (const { keyId } of entries) expect((await outcomeOf(keyId)).status).toBe('written');
});

it('comes through a storm of connections', async () => {
  const encoder = await connectedEncoder('stormy');
  encoder.command({ do: 'storm', connections: 30 });
  const before = encoder.process.messages.length;
  await encoder.process.waitFor(
    (message) => message.event === 'connected' && encoder.process.messages.indexOf(message) > before,
  );
  const entries = drawKeys(keyIds(1));
  let answer = await site.requestWrite(encoder.id, 'request', entries);
  while (answer.status === 422) answer = await site.requestWrite(encoder.id, 'request', entries);
  expect((await outcomeOf(entries[0]?.keyId ?? '')).status).toBe('written');
});

it('ends a key unknown when the encoder lost its journal, and never writes it again', async () => {
  const encoder = await connectedEncoder('forgetful', { ...QUICK, writeMs: 1_000 });
  const touched = () => encoder.physicalLog().filter(({ what }) => what === 'partial');
  const entries = drawKeys(keyIds(1));
  await site.requestWrite(encoder.id, 'request', entries);
  await vi.waitFor(() => expect(touched()).toHaveLength(1), WAIT);
  await encoder.loseJournal();
  encoder.start();
  expect(await outcomeOf(entries[0]?.keyId ?? '')).toMatchObject({ status: 'unknown' });
  expect(touched()).toHaveLength(1);
});

it('cancels what has no card yet', async () => {
  const encoder = await site.addEncoder('cancelled', { endlessCards: false, timings: QUICK });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  const entries = drawKeys(keyIds(2));
  await site.requestWrite(encoder.id, 'request', entries);
  await encoder.process.waitFor((message) => message.event === 'entry' && message.status === 'cardRequested');
  const path = `/encoder/${encoder.id}/write-request/request`;
  const { status } = await site.daemon.call('DELETE', path, site.tokens['front-desk']);
  expect(status).toBe(200);
  for (const { keyId } of entries) expect((await outcomeOf(keyId)).status).toBe('cancelled');
});

it('says upstream what was wrong with a card', async () => {
  const timings = { ...QUICK, cardTimeoutMs: 100 };
  const encoder = await site.addEncoder('bad-cards', { endlessCards: false, timings });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  for (const kind of ['incompatible', 'damaged', 'locked', 'unverifiable'] as const) {
    encoder.command({ do: 'card', card: { kind } });
  }
  encoder.command({ do: 'card', card: { removedDuring: 'writing' } });
  const entries = drawKeys(keyIds(6));
  await site.requestWrite(encoder.id, 'request', entries);
  const codes = [];
  for (const { keyId } of entries) codes.push((await outcomeOf(keyId)).error);
  expect(codes).toMatchObject([
    { code: 'CARD_INCOMPATIBLE' },
    { code: 'CARD_DAMAGED' },
    { code: 'CARD_LOCKED' },
    { code: 'VERIFY_FAILED' },
    { code: 'CARD_REMOVED' },
    { code: 'NO_CARD' },
  ]);
});

it('shows what the encoder says of itself, and refuses writes during an upgrade', async () => {
  const encoder = await connectedEncoder('talkative');
  const job = {
    id: 'upgrade-7',
    apps: [{ name: 'writer', version: '1.5.0' }],
    platform: { name: 'simulator', version: '2' },
    versions: [{ name: 'bootloader', version: '2.1' }],
  };
  encoder.command({ do: 'alarm', raised: true });
  encoder.command({ do: 'upgrade', job });
  const path = `/encoder/${encoder.id}`;
  let body: Record<string, unknown> = {};
  while (body.upgradeJobInfo == null) {
    ({ body } = await site.daemon.call('GET', path, site.tokens['service-tool']));
  }
  expect(body).toMatchObject({
    alarmState: { raised: true },
    connectionState: { connected: true },
    ipAddress: '127.0.0.1',
    apps: [{ name: 'writer', version: '1.4.0' }],
    platform: { name: 'simulator', version: '1' },
    upgradeJobInfo: job,
  });
  const answer = await site.requestWrite(encoder.id, 'request', drawKeys(keyIds(1)));
  expect([answer.status, answer.body.error]).toEqual([422, 'ENCODER_UPGRADING']);
});

it('stores events while the notification service is away and sends them when it is back', async () => {
  const encoder = await connectedEncoder('offline', { ...QUICK, startMs: LIFELIKE.startMs });
  await site.upstream.goAway();
  const entries = drawKeys(keyIds(2));
  await site.requestWrite(encoder.id, 'request', entries);
  const last = entries[1]?.keyId;
  await encoder.process.waitFor(
    (message) => message.event === 'entry' && message.keyId === last && message.status === 'written',
  );
  expect(entries.flatMap(({ keyId }) => eventsOf(keyId))).toEqual([]);
  await site.upstream.comeBack();
  for (const { keyId } of entries) {
    expect((await outcomeOf(keyId)).status).toBe('written');
    expect(statusesOf(keyId).slice(-5)).toEqual(STEPS.slice(1));
  }
});

/** What the daemon has given to write(2), the answers to this test among it: a bound of what wears its disk on any file system. */
const bytesWritten = () =>
  Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${site.daemon.pid}/io`, 'utf8'))?.[1]);

it('writes at most 60 kB to the disk for a key, and 12 kB for a change of a door', async () => {
  const { id } = await connectedEncoder('frugal');
  await site.daemon.importSite({ doors: [{ accessPointId: 1, name: 'Gate' }] });
  const clerk = site.tokens['front-desk-admin'];
  using agent = Object.assign(new Agent({ keepAlive: true, ca: readFileSync(site.daemon.caFile) }), {
    [Symbol.dispose]: () => agent.destroy(),
  });
  const call = (method: string, path: string, body?: object) =>
    site.daemon.call(method, `/access/doors${path}`, clerk, body, agent);
  const { items } = (await call('GET', '')).body as { items: { id: string }[] };
  const writeKey = async (n: number) => {
    const entries = drawKeys(keyIds(1));
    expect((await site.requestWrite(id, `frugal-${n}`, entries)).status).toBe(202);
    expect((await outcomeOf(entries[0]?.keyId ?? '')).status).toBe('written');
  };
  const rename = async (n: number) =>
    expect((await call('PUT', `/${items[0]?.id}`, { name: `Gate ${n}` })).status).toBe(200);
  for (const [work, times, most] of [
    [writeKey, 8, 60_000],
    [rename, 20, 12_000],
  ] as const) {
    await work(0);
    const before = bytesWritten();
    for (let n = 1; n <= times; n += 1) await work(n);
    expect((bytesWritten() - before) / times).toBeLessThan(most);
  }
});
