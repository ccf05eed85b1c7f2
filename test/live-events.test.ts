import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestStream, type Received } from './services/events/stream.ts';
import { drawKeys, openTestSite, type TestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

let site: TestSite;
beforeAll(async () => {
  site = await openTestSite();
});
afterAll(() => site[Symbol.asyncDispose]());

const follow = (lastEventId?: string) =>
  openTestStream(`${site.daemon.baseUrl}/events`, {
    token: site.tokens.pms,
    ca: readFileSync(site.daemon.caFile, 'utf8'),
    ...(lastEventId !== undefined && { lastEventId }),
  });
const messages = (received: Received[]) =>
  received.filter(({ name }) => name === 'message').map(({ data }) => data);

it('live readers hear what the notification service hears, and go on across a kill -9 of the daemon', async () => {
  const before = await follow();
  const [hello] = await before.take(1);
  const encoder = await site.addEncoder('desk-1');
  encoder.start();
  expect((await before.take(1))[0]?.data).toMatchObject({
    type: 'gatehouse.encoder.connection.v1',
    subject: 'desk-1',
    data: { encoderId: 'desk-1', connected: true },
  });
  const keyId = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
  expect((await site.requestWrite('desk-1', 'r-1', drawKeys([keyId]))).status).toBe(202);
  await site.upstream.waitFor(isTerminalEvent);
  await before.take(site.upstream.events.length);

  await site.daemon.kill();
  await before.ended;
  await encoder.kill();
  await site.daemon.start();
  const after = await follow(hello?.id);
  const received = messages(await after.take(3 + site.upstream.events.length));
  expect(received.filter(({ type }) => type === 'gatehouse.encoder.connection.v1')).toMatchObject([
    { data: { connected: true } },
    { data: { connected: false } },
  ]);
  expect(received.slice(1, -1).map(({ id }) => id)).toEqual(site.upstream.events.map(({ id }) => id));

  const started = performance.now();
  await site.daemon[Symbol.asyncDispose]();
  await after.ended;
  expect(after.received.at(-1)).toMatchObject({ name: 'end', data: { reason: 'SHUTTING_DOWN' } });
  // After so long what is under way is cut off.
  expect(performance.now() - started).toBeLessThan(8_000);
});
