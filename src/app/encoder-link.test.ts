/** A broker of the site, to which both gateways of a cluster have one client identifier: the one whose time is over is not connected. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import 'mqtt';
import { expect, it } from 'vitest';
import type { EncoderLinkHost } from '../../drivers/encoder/link.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { actingUntil } from '../platform/acting.ts';
import { configSchema } from '../platform/config/config.ts';
import { silentLog } from '../platform/log.ts';
import { openEncoderLink } from './encoder-link.ts';

it('connects while its time lasts, and hangs up before it is over', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const { encoders, dataDirectory } = configSchema.parse({
    encoders: { broker: { urls: [`mqtt://127.0.0.1:${port}`] }, endpoint: 'mqtts://broker.example:8883' },
  });
  await using opening = new AsyncDisposableStack();
  opening.defer(() => void server.close());
  const accepted: Socket[] = [];
  server.on('connection', (socket) => accepted.push(socket));
  const clock = manualClock();
  let until = 0;
  const acting = actingUntil(() => until, 2_000, clock);
  const ca = { root: '', encoderIssuer: '', revocationList: async () => '' };
  const identity = { chain: '', key: '' };
  await openEncoderLink(
    {
      config: { encoders, dataDirectory },
      systemId: 'one',
      ca,
      ended: () => [],
      identity,
      acting,
      clock,
      log: silentLog,
    },
    {} as EncoderLinkHost,
    opening,
  );
  await clock.advance(5_000);
  // Of this test: one that was begun before would have come before.
  const own = connect(port, '127.0.0.1');
  opening.defer(() => void own.destroy());
  await once(server, 'connection');
  expect(accepted).toHaveLength(1);
  const connected = once(server, 'connection') as Promise<[Socket]>;
  until = Number.POSITIVE_INFINITY;
  await clock.advance(1_000);
  const [socket] = await connected;
  const closed = once(socket.resume(), 'close');
  until = 0;
  await clock.advance(1_000);
  await closed;
});
