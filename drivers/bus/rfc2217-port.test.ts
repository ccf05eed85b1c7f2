/** Serial device servers by RFC 2217: ser2net before a pty, and played ones that refuse. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { silentLog } from '../../src/platform/log.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { freePort } from '../../test/free-port.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openPty } from '../../test/simulators/bus/pty.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { openPort } from './bus.ts';

const forever = new AbortController().signal;
const SER2NET = '/usr/sbin/ser2net';
const hasSer2net = spawnSync(SER2NET, ['-v']).error === undefined;

async function open(port: string, { clock = systemClock } = {}) {
  const received: number[] = [];
  const lost: string[] = [];
  const opened = await openPort(
    optionsWith({ port, baudRate: 19_200, parity: 'none' }),
    { data: (bytes) => received.push(...bytes), lost: ({ message }) => lost.push(message) },
    { clock, log: silentLog },
    forever,
  );
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return { port: opened, received, lost };
}

async function server(connected: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const listening = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    connected(socket);
  }).listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  });
  const address = listening.address();
  return `rfc2217://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
}

it.runIf(hasSer2net)(
  'carries all bytes to a wire behind ser2net and back, and changes its baud rate',
  async () => {
    const folder = temporaryFolder();
    const pty = openPty(join(folder, 'serial'));
    onTestFinished(() => pty[Symbol.asyncDispose]());
    const wire: number[] = [];
    pty.master.on('data', (bytes: Buffer) => {
      wire.push(...bytes);
      pty.master.write(bytes);
    });
    const number = await freePort();
    const file = join(folder, 'ser2net.yaml');
    const accepter = `telnet(rfc2217),tcp,127.0.0.1,${number}`;
    writeFileSync(
      file,
      `connection: &bus\n  accepter: ${accepter}\n  connector: serialdev,${pty.path},9600n81,local\n`,
    );
    const child = spawn(SER2NET, ['-n', '-d', '-c', file], { stdio: 'ignore' });
    onTestFinished(() => ended(child));
    const { port, received, lost } = await vi.waitFor(() => open(`rfc2217://127.0.0.1:${number}`), {
      interval: 100,
    });
    const all = Array.from({ length: 256 }, (_, byte) => byte);
    port.write(Uint8Array.from(all));
    await vi.waitFor(() => expect(received).toEqual(all));
    await port.retune?.({ baudRate: 9_600, parity: 'none', stopBits: 1 });
    port.write(Uint8Array.of(0xff, 0xf0, 0xff));
    await vi.waitFor(() => expect(received.slice(256)).toEqual([0xff, 0xf0, 0xff]));
    // Nothing of the negotiation was on the wire.
    expect(wire).toEqual([...all, 0xff, 0xf0, 0xff]);
    expect(lost).toEqual([]);
  },
);

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill();
  await exit;
}

const IAC = 0xff;
/** Agrees to what is asked of it, and has these settings: the values that it confirms. */
function obliging(socket: Socket, values: Record<number, number[]> = {}): void {
  socket.write(Uint8Array.of(IAC, 0xfd, 44, IAC, 0xfd, 0, IAC, 0xfb, 0));
  socket.on('data', (bytes: Buffer) => {
    for (const match of bytes.toString('latin1').matchAll(/\xff\xfa\x2c([\s\S]*?)\xff\xf0/g)) {
      const [code = 0, ...value] = Buffer.from(match[1] ?? '', 'latin1');
      socket.write(Uint8Array.of(IAC, 0xfa, 44, code + 100, ...(values[code] ?? value), IAC, 0xf0));
    }
  });
}

it.each([
  [
    'refuses COM-PORT-OPTION',
    (socket: Socket) => socket.write(Uint8Array.of(IAC, 0xfe, 44)),
    /refuses RFC 2217/,
  ],
  [
    'refuses binary data',
    (socket: Socket) => socket.write(Uint8Array.of(IAC, 0xfd, 44, IAC, 0xfe, 0)),
    /refuses binary transmission/,
  ],
  [
    'has another baud rate',
    (socket: Socket) => obliging(socket, { 1: [0, 0, 0x25, 0x80] }),
    /does not take baud rate 19200: it has 9600/,
  ],
  [
    'has another parity',
    (socket: Socket) => obliging(socket, { 3: [3] }),
    /does not take parity .* 1: it has 3/,
  ],
  ['hangs up', (socket: Socket) => socket.end(), /closed the connection/],
])('says so of a server that %s', async (_, connected, message) => {
  await expect(open(await server(connected))).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringMatching(message),
  });
});

it('says so of a server that answers nothing, as one in raw mode', async () => {
  const clock = manualClock();
  const asked = Promise.withResolvers<void>();
  const opening = open(await server((socket) => socket.once('data', () => asked.resolve())), { clock });
  const refused = expect(opening).rejects.toMatchObject({
    message: expect.stringMatching(/raw TCP server mode/),
  });
  await asked.promise;
  await clock.advance(5_000);
  await refused;
});

it('hears nothing of the bus before its settings are confirmed, and nothing of options ever', async () => {
  const peers: Socket[] = [];
  const name = await server((socket) => {
    peers.push(socket);
    socket.write(Uint8Array.of(1, 2, 3));
    obliging(socket);
  });
  const { port, received } = await open(name);
  const [peer] = peers;
  // A line state, an option, and data around them.
  peer?.write(Uint8Array.of(7, IAC, 0xfa, 44, 106, 0x60, IAC, 0xf0, IAC, 0xfb, 1, IAC, IAC, 9));
  await vi.waitFor(() => expect(received).toEqual([7, 0xff, 9]));
  expect(port).toMatchObject({ diesUnnoticed: true, paced: false });
});

it('is lost when a retuning is refused', async () => {
  const values: Record<number, number[]> = {};
  const { port, received, lost } = await open(await server((socket) => obliging(socket, values)));
  values[1] = [0, 0, 0x4b, 0];
  await expect(port.retune?.({ baudRate: 9_600, parity: 'none', stopBits: 1 })).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringMatching(/does not take baud rate 9600: it has 19200/),
  });
  expect(() => port.write(Uint8Array.of(1))).toThrow(/closed/);
  expect({ received, lost }).toEqual({ received: [], lost: [] });
});
