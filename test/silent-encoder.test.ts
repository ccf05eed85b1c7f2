/**
 * Encoders that keep their socket and say nothing, on a site with a short keep-alive. On a busy machine a healthy encoder may
 * miss it too, and connects again: what is waited for is a connection, never the first one.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { SiteEncoder } from './simulators/site.ts';
import { drawKeys, openTestSite, type TestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

let site: TestSite;
beforeAll(async () => {
  site = await openTestSite({ config: { encoders: { keepAlive: '2s' } } });
});
afterAll(() => site[Symbol.asyncDispose]());

const TIMINGS = { startMs: 5, placeMs: 5, detectMs: 5, writeMs: 10, reconnectMs: 20, repeatMs: 200 };

async function connectedEncoder(id: string): Promise<SiteEncoder> {
  const encoder = await site.addEncoder(id, { timings: TIMINGS });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  return encoder;
}

async function isConnected(encoder: SiteEncoder): Promise<boolean> {
  const { body } = await site.daemon.call('GET', `/encoder/${encoder.id}`, site.tokens['service-tool']);
  return (body.connectionState as { connected: boolean }).connected;
}

it('takes an encoder that is silent for 1.5 keep-alives for lost', async () => {
  const encoder = await connectedEncoder('silent');
  // Once the gateway has hung up it stays away, so that the loss can be seen.
  encoder.command({ do: 'timings', timings: { reconnectMs: 600_000 } });
  const since = performance.now();
  encoder.command({ do: 'silence' });
  while (await isConnected(encoder));
  expect(performance.now() - since).toBeGreaterThan(1_900);
  const answer = await site.requestWrite(encoder.id, 'request', drawKeys([randomUUID()]));
  expect([answer.status, answer.body.error]).toEqual([422, 'NOT_CONNECTED']);
});

it('gets the outcome of a write whose receipt the encoder never acknowledged', async () => {
  const encoder = await connectedEncoder('no-puback');
  encoder.command({ do: 'withholdPuback', on: true });
  const entries = drawKeys([randomUUID(), randomUUID()]);
  await vi.waitFor(
    async () => expect((await site.requestWrite(encoder.id, 'request', entries)).status).toBe(202),
    { timeout: 20_000 },
  );
  for (const { keyId } of entries) {
    const { data } = await site.upstream.waitFor(
      (event) => event.subject === keyId && isTerminalEvent(event),
    );
    expect(data.status).toBe('written');
  }
  expect(encoder.physicalLog().filter(({ what }) => what === 'partial')).toHaveLength(2);
});
