/** Brokers that do what none should: servers on plain sockets that write every byte themselves (MQTT 3.1.1 and 5, OASIS). */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { openTasks } from '../../src/platform/supervise.ts';
import { writeCertificate } from '../../src/services/pki/certificates.ts';
import { openTestHost } from '../../test/drivers/encoder/host.ts';
import {
  firstPacket,
  identifierOf,
  type Packet,
  packet,
  publishPacket,
  readPublish,
  TYPE,
  WAIT,
} from '../../test/drivers/encoder/peer.ts';
import { manualClock } from '../../test/manual-clock.ts';
import type { Clock } from '../contract/driver.ts';
import { type BrokerAdministration, crlFileAdministration, NO_ADMINISTRATION } from './administration.ts';
import { openExternalLink } from './external.ts';

const CONNECT = 1;
const SUBSCRIBE = 8;
const PROBE = '0b7c2f1e-5a0d-4f0e-9a53-6c1d2e3f4a5b';
const SESSION = 'b1a5c8f2-0b1e-4c39-9f0e-2f8f3a9d7c10';
const BIRTH = JSON.stringify({ boot: SESSION, seq: 1, session: SESSION, online: true, journal: SESSION });
const log = { debug() {}, info() {}, warn() {}, error() {} };

interface Behaviour {
  /** Properties of the CONNACK of MQTT 5; without them it is 3.1.1. */
  properties?: number[];
  connackCode?: (connection: number) => number;
  /** Of each PUBLISH; by default it is acknowledged. */
  published?: (socket: Socket, identifier: number, packet: Packet) => void;
}

const puback = (identifier: number) => packet(0x40, Buffer.from([identifier >> 8, identifier & 0xff]));

async function openBroker({
  properties,
  connackCode = () => 0,
  published = (socket, id) => socket.write(puback(id)),
}: Behaviour) {
  const sockets: Socket[] = [];
  /** Packet identifiers that the gateway has acknowledged. */
  const acknowledged: number[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    const code = connackCode(sockets.length);
    let waiting = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      waiting = Buffer.concat([waiting, chunk]);
      for (let next = firstPacket(waiting); next; next = firstPacket(waiting)) {
        waiting = waiting.subarray(next.bytes);
        if (next.type === CONNECT)
          socket.write(
            packet(0x20, Buffer.from([0, code, ...(properties ? [properties.length, ...properties] : [])])),
          );
        if (next.type === CONNECT && code !== 0) socket.end();
        if (next.type === SUBSCRIBE)
          socket.write(
            packet(0x90, Buffer.from([...next.body.subarray(0, 2), ...(properties ? [0] : []), 1])),
          );
        if (next.type === TYPE.puback) acknowledged.push(identifierOf(next));
        if (next.type === TYPE.publish) {
          const at = 2 + next.body.readUInt16BE(0);
          published(socket, next.body.readUInt16BE(at), next);
        }
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return {
    port,
    sockets,
    acknowledged,
    say: (...packets: Buffer[]) => sockets.at(-1)?.write(Buffer.concat(packets)),
  };
}

function openLink(
  port: number,
  {
    clock = systemClock as Clock,
    protocolVersion = 4 as 4 | 5,
    administration = NO_ADMINISTRATION as BrokerAdministration,
  } = {},
) {
  const host = openTestHost();
  host.credentials.set('AA', { ok: true, generation: 1, encoderId: 'e1' });
  const open = () => connect(port, '127.0.0.1');
  const access = { clientId: 'gatehouse', protocolVersion, password: () => undefined, open };
  const urls = [`mqtt://127.0.0.1:${port}`];
  const link = openExternalLink({ urls, access, administration, clock, log }, host);
  onTestFinished(() => link[Symbol.asyncDispose]());
  return { host, link };
}

/** Runs it once, until it is connected; `over` rejects with why it ended. */
async function run({ link }: ReturnType<typeof openLink>) {
  const over = link.run(new AbortController().signal);
  over.catch(() => undefined);
  await vi.waitFor(() => expect(link.state().url).not.toBeNull(), WAIT);
  // Not itself: an async function would wait for it.
  return { over };
}

/** Answers probes as the encoder e1. */
const present = (socket: Socket, identifier: number, received: Packet): boolean => {
  const { topic, payload } = readPublish(received);
  if (topic !== 'enc/e1/down/probe') return false;
  const { probe } = JSON.parse(payload) as { probe: string };
  const answer = JSON.stringify({ probe, session: SESSION });
  socket.write(
    Buffer.concat([puback(identifier), publishPacket({ topic: 'enc/e1/up/presence', payload: answer })]),
  );
  return true;
};

it('is asked again after every refusal of a CONNECT, whatever its code', async () => {
  const broker = await openBroker({ connackCode: (connection) => (connection <= 5 ? connection : 0) });
  const { link } = openLink(broker.port);
  const tasks = openTasks(systemClock, log);
  tasks.start('broker', link.run, { firstMs: 1, longestMs: 1, healthyMs: 60_000 });
  await vi.waitFor(() => expect(link.state().url).not.toBeNull(), WAIT);
  expect(broker.sockets).toHaveLength(6);
  expect(link.state().lastError).toMatch(/Not authorized/i);
  await link[Symbol.asyncDispose]();
  await tasks[Symbol.asyncDispose]();
});

it('is left when it acknowledges nothing, and what was sent is not taken for sent', async () => {
  const clock = manualClock();
  const broker = await openBroker({
    published: (socket, id, received) => void present(socket, id, received),
  });
  const opened = openLink(broker.port, { clock });
  const { over } = await run(opened);
  await opened.host.wait('subscribed', 'e1');
  const sent = opened.link.send('e1', 'hello', Buffer.from('{}'));
  sent.catch(() => undefined);
  await clock.advance(11_000);
  await expect(sent).rejects.toMatchObject({ code: 'LINK_LOST' });
  await expect(over).rejects.toThrow('acknowledges nothing');
  expect((await opened.host.wait('lost', 'e1'))[0]?.reason).toBe('the broker is away');
});

it('may acknowledge what was never sent', async () => {
  const broker = await openBroker({
    published: (socket, id, received) => void (present(socket, id, received) || socket.write(puback(id))),
  });
  const opened = openLink(broker.port);
  await run(opened);
  await opened.host.wait('subscribed', 'e1');
  broker.say(puback(4_711), puback(1), puback(0));
  await opened.link.send('e1', 'hello', Buffer.from('{}'));
  expect(opened.link.state().url).not.toBeNull();
});

it('that takes one message at a time gets no second one before', async () => {
  let unanswered = 0;
  let most = 0;
  const broker = await openBroker({
    properties: [0x21, 0, 1],
    published(socket, id, received) {
      unanswered += 1;
      most = Math.max(most, unanswered);
      const answer = received.body.includes('/probe') ? probed(received) : [];
      setImmediate(() => {
        unanswered -= 1;
        socket.write(Buffer.concat([puback(id), ...answer]));
      });
    },
  });
  const opened = openLink(broker.port, { protocolVersion: 5 });
  await run(opened);
  await opened.host.wait('subscribed', 'e1');
  await Promise.all(Array.from({ length: 20 }, () => opened.link.send('e1', 'ack', Buffer.from('{}'))));
  expect(most).toBe(1);
});

/** The answer of e1 in MQTT 5: no properties, one byte. */
function probed({ body }: Packet): Buffer[] {
  const { probe } = JSON.parse(body.subarray(body.indexOf('{"probe"')).toString()) as { probe: string };
  const topic = Buffer.from('enc/e1/up/presence');
  const payload = Buffer.from(JSON.stringify({ probe, session: SESSION }));
  return [packet(0x30, Buffer.concat([Buffer.from([0, topic.length]), topic, Buffer.from([0]), payload]))];
}

it('that takes short packets only is sent none that is longer', async () => {
  const broker = await openBroker({
    properties: [0x27, 0, 0, 4, 0],
    published: (socket, id, received) =>
      void socket.write(
        Buffer.concat([puback(id), ...(received.body.includes('/probe') ? probed(received) : [])]),
      ),
  });
  const opened = openLink(broker.port, { protocolVersion: 5 });
  await run(opened);
  await opened.host.wait('subscribed', 'e1');
  const long = opened.link.send('e1', 'write', Buffer.alloc(2_000));
  await expect(long).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  await opened.link.send('e1', 'ack', Buffer.from('{}'));
});

it.each([
  ['a birth that it kept', publishPacket({ topic: 'enc/e1/up/status', payload: BIRTH, retain: true })],
  [
    'an answer to no question',
    publishPacket({
      topic: 'enc/e1/up/presence',
      payload: JSON.stringify({ probe: PROBE, session: SESSION }),
    }),
  ],
  [
    'a birth of an encoder that is not registered',
    publishPacket({ topic: 'enc/e2/up/status', payload: BIRTH }),
  ],
  ['a birth, and no answer follows', publishPacket({ topic: 'enc/e1/up/status', payload: BIRTH })],
  [
    'a will',
    publishPacket({
      topic: 'enc/e1/up/status',
      payload: JSON.stringify({ online: false, session: SESSION }),
    }),
  ],
  ['what is no message', publishPacket({ topic: 'enc/e1/up/status', payload: '}{' })],
  ['a message that is too long', publishPacket({ topic: 'enc/e1/up/job', payload: Buffer.alloc(70_000) })],
  ['another topic', publishPacket({ topic: 'enc/e1/up/status/x', payload: BIRTH })],
])('makes no one present by %s', async (_what, bytes) => {
  const broker = await openBroker({});
  const opened = openLink(broker.port);
  await run(opened);
  broker.say(bytes, publishPacket({ topic: 'enc/e1/up/job', payload: '{}', id: 9 }));
  // It is acknowledged to the broker once it and what came before is dealt with.
  await vi.waitFor(() => expect(broker.acknowledged).toContain(9), WAIT);
  await expect(opened.link.send('e1', 'hello', Buffer.from('{}'))).rejects.toMatchObject({
    code: 'LINK_LOST',
  });
  expect(opened.host.calls).toEqual([]);
  expect(opened.link.state().url).not.toBeNull();
});

it('carries a second question to an encoder that came after the first', async () => {
  let asked = 0;
  const broker = await openBroker({
    published(socket, id, received) {
      asked += 1;
      if (asked === 1) socket.write(puback(id));
      else present(socket, id, received);
    },
  });
  const opened = openLink(broker.port);
  await run(opened);
  await vi.waitFor(() => expect(asked).toBe(1), WAIT);
  broker.say(publishPacket({ topic: 'enc/e1/up/status', payload: BIRTH }));
  await opened.host.wait('subscribed', 'e1');
  await opened.host.wait('received', 'e1');
  expect(asked).toBe(2);
});

it('is made to end a connection once more when it has read who is shut out', async () => {
  const clock = manualClock();
  const broker = await openBroker({});
  let lists = 0;
  const administration = crlFileAdministration(async () => {
    lists += 1;
  });
  const opened = openLink(broker.port, { clock, administration });
  await run(opened);
  await vi.waitFor(() => expect(lists).toBe(2), WAIT);
  opened.host.credentials.set('AA', { ok: false, reason: 'revoked', encoderId: 'e1' });
  await opened.link.kick('e1', 'it is revoked');
  expect([lists, broker.sockets.length]).toEqual([3, 2]);
  await clock.advance(5_000);
  await vi.waitFor(() => expect(broker.sockets).toHaveLength(3), WAIT);
});

it('that the operator administers: which certificate to let in is said at each change', async () => {
  const broker = await openBroker({});
  const opened = openLink(broker.port);
  await run(opened);
  const warned = vi.spyOn(log, 'warn');
  await opened.link.kick('e1', 'it is registered');
  opened.host.credentials.set('AA', { ok: false, reason: 'revoked', encoderId: 'e1' });
  await opened.link.kick('e1', 'it is revoked');
  const text = expect.stringContaining('the operator administers the broker');
  expect(warned.mock.calls).toEqual([
    [expect.objectContaining({ encoderId: 'e1', letIn: 'CN=e1, OU=g1' }), text],
    [expect.objectContaining({ encoderId: 'e1', letIn: null }), text],
  ]);
});

it('is left when it announces a packet that no one would send', async () => {
  const broker = await openBroker({});
  const { over } = await run(openLink(broker.port));
  broker.say(Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f]));
  await expect(over).rejects.toThrow('longer than 1048576 bytes');
});

it.each([
  ['of another authority', 3_600_000, /self.signed/],
  ['that has expired', -1, /expired/],
])('is not spoken to with a certificate %s', async (_what, lifeMs, reason) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = Date.now();
  const content = {
    subject: [['CN', 'broker']] as const,
    spki: publicKey.export({ type: 'spki', format: 'der' }),
    notBefore: now - 86_400_000,
    notAfter: now + lifeMs,
    names: ['127.0.0.1'],
  };
  const cert = await writeCertificate(content, { key: privateKey });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const server = createTlsServer({ cert, key }).listen(0, '127.0.0.1');
  server.on('tlsClientError', () => undefined);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const trusted = lifeMs < 0 ? { ca: cert } : {};
  const access = {
    clientId: 'gatehouse',
    protocolVersion: 4 as const,
    password: () => undefined,
    open: () => connectTls({ host: '127.0.0.1', port, ...trusted }),
  };
  const urls = [`mqtts://127.0.0.1:${port}`];
  const options = { urls, access, administration: NO_ADMINISTRATION, clock: systemClock, log };
  await using link = openExternalLink(options, openTestHost());
  await expect(link.run(new AbortController().signal)).rejects.toThrow(reason);
  expect(link.state().lastError).toMatch(reason);
});
