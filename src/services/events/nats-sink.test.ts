/** Events into a NATS JetStream of the server from Debian. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { numbers } from '../../../test/services/events/arrivals.ts';
import { openTestLog, SYSTEM_ID, type TestLog, until } from '../../../test/services/events/log.ts';
import { natsMissing, openNats, type TestNats } from '../../../test/services/events/nats.ts';
import { temporaryFolder } from '../../../test/temporary.ts';

const STREAM = { name: 'events', subjects: ['gatehouse.>'] };
const sink = (...urls: string[]) => ({ kind: 'nats' as const, urls, window: 64 });
const waiting = ({ events }: TestLog) => events.backlog().waiting;

interface StoredMessage {
  message?: { subject: string; data: string; hdrs?: string };
}

async function streamState(nats: TestNats) {
  const { state } = await nats.ask('STREAM.INFO.events');
  return state as { first_seq: number; last_seq: number; messages: number };
}

async function stored(nats: TestNats) {
  const state = await streamState(nats);
  const found: { subject: string; sequence: number; headers: string }[] = [];
  for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq += 1) {
    const { message } = (await nats.ask('STREAM.MSG.GET.events', { seq })) as StoredMessage;
    if (!message) continue;
    const { sequence } = JSON.parse(Buffer.from(message.data, 'base64').toString()) as { sequence: string };
    const headers = Buffer.from(message.hdrs ?? '', 'base64').toString();
    found.push({ subject: message.subject, sequence: Number(sequence), headers });
  }
  return found;
}

async function addStream(nats: TestNats, changes: object = {}): Promise<void> {
  const answer = await nats.ask('STREAM.CREATE.events', { ...STREAM, storage: 'file', ...changes });
  if (answer.error) throw new Error(JSON.stringify(answer.error));
}

it.skipIf(natsMissing)('are stored in order, each once, however often they are sent', async () => {
  await using nats = await openNats(temporaryFolder());
  await addStream(nats);
  const folder = temporaryFolder();
  {
    await using log = await openTestLog({ folder });
    await log.record(1, 200, 'desk.1');
    const forwarding = log.forward(sink(nats.url));
    await until(() => waiting(log) === 0);
    await forwarding.stop();
    // As after a crash before the cursor was saved.
    await log.database.commit(() => log.events.table.setAcked(100));
  }
  await using log = await openTestLog({ folder });
  await log.record(201, 210, 'desk.1');
  log.forward(sink(nats.url));
  await until(() => log.events.link.sentThrough >= 210);
  await until(() => log.events.link.unsaved.through >= 210);
  const messages = await stored(nats);
  expect(messages.map(({ sequence }) => sequence)).toEqual(numbers(1, 210));
  expect(messages[0]?.subject).toBe(`gatehouse.1.${SYSTEM_ID}.encoders.desk%2E1.events`);
  const ids = messages.map(({ headers }) => /^Nats-Msg-Id: (.*)\r$/m.exec(headers)?.[1]);
  expect(new Set(ids).size).toBe(210);
});

it.skipIf(natsMissing)(
  'wait for the stream, and lose nothing when the server is killed and comes back',
  async () => {
    const folder = temporaryFolder();
    const first = await openNats(folder);
    const log = await openTestLog();
    await log.record(1, 50);
    log.forward(sink(first.url));
    await until(() => log.events.backlog().lastError?.includes('no stream takes gatehouse.1.') === true);
    expect(log.events.backlog()).toMatchObject({ waiting: 50, deadLetters: 0 });
    await addStream(first);
    await until(() => waiting(log) === 0);
    await first.kill();
    await log.record(51, 80);
    await until(() => log.events.link.connectedSince === null);
    await using again = await openNats(folder, { port: first.port });
    await until(() => waiting(log) === 0);
    expect((await stored(again)).map(({ sequence }) => sequence)).toEqual(numbers(1, 80));
  },
);

it.skipIf(natsMissing)('go on when the stream is full or purged behind our back', async () => {
  await using nats = await openNats(temporaryFolder());
  await addStream(nats, { max_msgs: 10, discard: 'new' });
  const log = await openTestLog();
  await log.record(1, 30);
  log.forward(sink(nats.url));
  await until(() => /maximum messages exceeded/.test(log.events.backlog().lastError ?? ''));
  expect(log.events.backlog().deadLetters).toBe(0);
  while (waiting(log) > 0) await nats.ask('STREAM.PURGE.events');
  // Counted by the stream itself: what is stored between two readings may be purged unseen.
  expect((await streamState(nats)).last_seq).toBe(30);
});

it.skipIf(natsMissing)('are not taken by what else answers on the subject', async () => {
  await using nats = await openNats(temporaryFolder());
  const impostor = connect(nats.port, '127.0.0.1');
  impostor.write('CONNECT {"verbose":false}\r\nSUB gatehouse.> 1\r\n');
  impostor.on('data', (chunk) => {
    for (const [, reply] of String(chunk).matchAll(/^MSG \S+ 1 (\S+) \d+\r$/gm))
      impostor.write(`PUB ${reply} 12\r\n{"ok": true}\r\n`);
  });
  const log = await openTestLog();
  await log.record(1, 3);
  log.forward(sink(nats.url));
  await until(() => log.events.backlog().lastError?.includes('what answered is no stream') === true);
  expect(waiting(log)).toBe(3);
  impostor.destroy();
});

it.each(['PING', '+OK'])('a server that sends %s without an end is left', async (flood) => {
  const FLOOD = 100_000;
  let [answers, peer] = [0, undefined as Socket | undefined];
  const server = createServer((socket) => {
    peer = socket;
    let rest = '';
    socket.write('INFO {"headers":true,"max_payload":1048576}\r\n');
    socket.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\r\n');
      rest = lines.pop() ?? '';
      if (lines.includes('PING')) socket.write('PONG\r\n');
      answers += lines.filter((line) => line === 'PONG').length;
    });
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const log = await openTestLog();
  await log.record(1, 1);
  log.forward(sink(`nats://127.0.0.1:${(server.address() as AddressInfo).port}`));
  await until(() => log.events.link.sentThrough >= 1);
  peer?.write(`${flood}\r\n`.repeat(FLOOD));
  await until(() => log.events.backlog().lastError?.includes('it sends without being asked') === true);
  expect(answers).toBeLessThan(FLOOD / 10);
  expect(waiting(log)).toBe(1);
});

const LONG = 'x'.repeat(60_000);
const INFO = 'INFO {"headers":true,"max_payload":1048576}\r\n';

it.each<[string, string, string, RegExp]>([
  ['an INFO of null', 'INFO null\r\n', '', /its INFO is none of a NATS server$/],
  [
    'an INFO with a limit that is none',
    'INFO {"max_payload":"abc"}\r\n',
    '',
    /its INFO is none of a NATS server$/,
  ],
  ['a long error', INFO, `-ERR '\u001b[31m${LONG}'\r\n`, /^[ -~]{400,500}$/],
  ['an error in several lines', INFO, "-ERR 'one\u0007\u0085two'\r\n", /one two$/],
])('%s is said in a line of bounded length', async (_, info, answer, expected) => {
  const server = createServer((socket) => {
    socket.write(info);
    socket.on('data', (chunk) => String(chunk).includes('PING') && socket.write(answer));
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const log = await openTestLog();
  await log.record(1, 1);
  log.forward(sink(`nats://127.0.0.1:${(server.address() as AddressInfo).port}`));
  await until(() => log.events.backlog().lastError !== null);
  expect(log.events.backlog().lastError).toMatch(expected);
  expect(waiting(log)).toBe(1);
});

it('begin with one alone, so that none is stored before one that a stream refuses for a moment', async () => {
  const perConnection: number[] = [];
  const server = createServer((socket) => {
    const index = perConnection.push(0) - 1;
    socket.write(INFO);
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (text.includes('PING')) socket.write('PONG\r\n');
      const [, reply] = /^HPUB \S+ (\S+) /m.exec(text) ?? [];
      perConnection[index] = (perConnection[index] ?? 0) + [...text.matchAll(/^HPUB /gm)].length;
      const status = 'NATS/1.0 503\r\n\r\n';
      if (reply) socket.write(`HMSG ${reply} 1 ${status.length} ${status.length}\r\n${status}\r\n`);
    });
    socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const log = await openTestLog();
  await log.record(1, 50);
  log.forward(sink(`nats://127.0.0.1:${(server.address() as AddressInfo).port}`));
  await until(() => perConnection.length > 3);
  expect(perConnection.slice(0, 3)).toEqual([1, 1, 1]);
  expect(waiting(log)).toBe(50);
});
