/** Encoders of a gateway whose time is over: nothing is sent, nothing is acknowledged, and none is let in. */
import { expect, it } from 'vitest';
import type { EncoderConnection, EncoderLink, EncoderLinkHost } from '../../drivers/encoder/link.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { actingUntil } from '../platform/acting.ts';
import { cutOffWhenOver, whileActing } from './encoders-while-acting.ts';

const CONNECTION = { encoderId: 'e' } as EncoderConnection;

function played() {
  let acts = true;
  let kept = Promise.resolve();
  const said: string[] = [];
  const link = {
    send: async (_: string, channel: string) => void said.push(channel),
    kick: async () => undefined,
  } as unknown as EncoderLink;
  const host = {
    credential: () => ({ ok: true, generation: 1 }),
    received: async () => void said.push('stored'),
  } as unknown as EncoderLinkHost;
  const acted = whileActing({ mayAct: () => acts, mayAdmit: () => acts, kept: () => kept });
  return {
    said,
    link: acted.link(link),
    host: acted.host(host),
    over: () => {
      acts = false;
    },
    keep: (promise: Promise<void>) => {
      kept = promise;
    },
  };
}

it('sends and acknowledges while its time lasts, and not after it', async () => {
  const { said, link, host, over } = played();
  const message = [CONNECTION, 'job', Buffer.from('{}')] as const;
  await link.send('e', 'write', Buffer.from('{}'));
  await host.received(...message);
  expect(host.credential('e', 'AA')).toEqual({ ok: true, generation: 1 });
  over();
  await expect(link.send('e', 'write', Buffer.from('{}'))).rejects.toMatchObject({ code: 'LINK_LOST' });
  await expect(link.send('e', 'ack', Buffer.from('{}'))).rejects.toMatchObject({ code: 'LINK_LOST' });
  await expect(host.received(...message)).rejects.toMatchObject({ code: 'LINK_LOST' });
  expect(() => host.credential('e', 'AA')).toThrow('cannot renew its lease');
  expect(said).toEqual(['write', 'stored', 'stored']);
});

it('acknowledges what JetStream has, where that is asked for', async () => {
  const { said, link, host, keep } = played();
  const acknowledged = Promise.withResolvers<void>();
  keep(acknowledged.promise);
  const ack = link.send('e', 'ack', Buffer.from('{}'));
  const received = host.received(CONNECTION, 'job', Buffer.from('{}')).then(() => said.push('PUBACK'));
  await link.send('e', 'write', Buffer.from('{}'));
  expect(said).toEqual(['stored', 'write']);
  acknowledged.resolve();
  await Promise.all([ack, received]);
  expect(said.toSorted()).toEqual(['PUBACK', 'ack', 'stored', 'write']);
  const lost = Promise.reject(new Error('NATS is away'));
  keep(lost);
  await expect(host.received(CONNECTION, 'job', Buffer.from('{}'))).rejects.toThrow('NATS is away');
});

it('cuts them off each time its time is over', async () => {
  const clock = manualClock();
  let until = 10_000;
  const dropped: string[] = [];
  const connections = {
    expected: () => [{ encoderId: 'e', generation: 1 }],
    drop: async (encoderId: string) => void dropped.push(encoderId),
  };
  const stop = new AbortController();
  const running = cutOffWhenOver(
    actingUntil(() => until, 2_000, clock),
    connections,
    stop.signal,
  );
  await clock.advance(7_000);
  expect(dropped).toEqual([]);
  await clock.advance(2_000);
  expect(dropped).toEqual(['e']);
  until = 20_000;
  await clock.advance(1_000);
  expect(dropped).toEqual(['e']);
  await clock.advance(9_000);
  expect(dropped).toEqual(['e', 'e']);
  stop.abort(new Error('over'));
  await expect(running).rejects.toThrow('over');
});
