/** A stick on the network, as those with an Ethernet port are: the newest connection has it, an older one is closed. */
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../free-port.ts';
import type { Receive, Transport } from '../bus/transport.ts';

/** `connected`: what a host sent before is void. `wanted`: its port; 0 takes a free one. */
export async function openTcpStick(
  receive: Receive,
  connected: () => void,
  wanted: number,
): Promise<Transport> {
  let socket: Socket | undefined;
  let server: Server | undefined;
  let isReading = true;
  const port = wanted || (await freePort());
  await listen();

  async function listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const opened = createServer(accept).once('error', reject);
    opened.listen(port, '127.0.0.1', resolve);
    await promise;
    server = opened;
  }
  function accept(accepted: Socket): void {
    socket?.destroy();
    socket = accepted;
    connected();
    accepted.setNoDelay(true);
    accepted.on('error', () => undefined);
    accepted.on('data', (bytes) => {
      if (socket === accepted) receive(bytes);
    });
    if (!isReading) accepted.pause();
  }
  async function hangUp(): Promise<void> {
    const closing = server;
    server = undefined;
    socket?.destroy();
    socket = undefined;
    if (closing) await new Promise((closed) => closing.close(closed));
  }

  return {
    get port() {
      return `tcp://127.0.0.1:${port}`;
    },
    write(bytes) {
      if (socket?.writable) socket.write(bytes);
    },
    readNow: () => undefined,
    baudRate: () => undefined,
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
