/** What the gateway opens: a pty, or a TCP listener that plays a serial device server. */
import { readSync, writeSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { openPty } from './pty.ts';

export interface Transport extends AsyncDisposable {
  /** As the configuration of a link names it. */
  readonly port: string;
  /** What no one takes is lost, as in a UART without flow control. */
  write(bytes: Uint8Array): void;
  /** What has come and was not passed on yet. Only where the process blocks. */
  readNow(): Uint8Array | undefined;
  setReading(on: boolean): void;
  /** Of who has the port open, where that can be known; undefined while it is pulled. */
  baudRate?(): number | undefined;
  hangUp(): Promise<void>;
  replug(): Promise<void>;
}

export type Receive = (bytes: Uint8Array) => void;

const READ_SIZE = 4_096;

export function openPtyTransport(link: string | undefined, receive: Receive): Transport {
  const pty = openPty(link);
  const buffer = Buffer.alloc(READ_SIZE);
  let isPlugged = true;
  let isReading = true;
  listen();

  function listen(): void {
    pty.master.on('data', receive);
    if (!isReading) pty.master.pause();
  }
  return {
    get port() {
      return pty.path;
    },
    write(bytes) {
      if (isPlugged) unlessFull(() => writeSync(pty.fd, bytes));
    },
    readNow() {
      if (!isPlugged || !isReading) return undefined;
      const count = unlessFull(() => readSync(pty.fd, buffer, 0, READ_SIZE, null));
      return count === undefined ? undefined : Uint8Array.from(buffer.subarray(0, count));
    },
    setReading(on) {
      isReading = on;
      if (isPlugged) pty.master[on ? 'resume' : 'pause']();
    },
    baudRate: () => (isPlugged ? pty.baudRate() : undefined),
    async hangUp() {
      isPlugged = false;
      await pty.hangUp();
    },
    async replug() {
      await pty.replug();
      isPlugged = true;
      listen();
    },
    [Symbol.asyncDispose]: () => pty[Symbol.asyncDispose](),
  };
}

/** Undefined when there is nothing to read, or no room to write. */
function unlessFull<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}

/**
 * One connection at a time, as device servers have it; a further one is closed at once, and one on which `receive` throws.
 * `port`: 0 takes a free one.
 */
export async function openTcpTransport(
  receive: Receive,
  port: number,
  connected: () => void = () => undefined,
): Promise<Transport> {
  let socket: Socket | undefined;
  let isReading = true;
  let server: Server | undefined;
  let listensOn = port;
  await listen();

  async function listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const opened = createServer(accept).once('error', reject);
    opened.listen(listensOn, '127.0.0.1', resolve);
    await promise;
    server = opened;
    listensOn = (opened.address() as { port: number }).port;
  }
  function accept(accepted: Socket): void {
    if (socket) {
      accepted.destroy();
      return;
    }
    socket = accepted;
    accepted.setNoDelay(true);
    accepted
      .on('error', () => undefined)
      .on('close', () => {
        if (socket === accepted) socket = undefined;
      });
    connected();
    accepted.on('data', (bytes) => {
      try {
        receive(bytes);
      } catch (error) {
        accepted.destroy(error as Error);
      }
    });
    if (!isReading) accepted.pause();
  }
  async function hangUp(): Promise<void> {
    const closing = server;
    server = undefined;
    socket?.destroy();
    if (closing) await new Promise((closed) => closing.close(closed));
  }

  return {
    get port() {
      return `tcp://127.0.0.1:${listensOn}`;
    },
    write: (bytes) => void socket?.write(bytes),
    readNow: () => undefined,
    setReading(on) {
      isReading = on;
      socket?.[on ? 'resume' : 'pause']();
    },
    hangUp,
    async replug() {
      await hangUp();
      await listen();
    },
    [Symbol.asyncDispose]: hangUp,
  };
}
