/** A host that says and hears bytes, for tests of what a stick answers. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import type { SimulatedGateway } from './gateway.ts';
import { encodeMt, readMt } from './mt/frame.ts';

/** What the stick sends, as hex of subsystem and id and of the data. */
export async function openRaw(gateway: SimulatedGateway) {
  const [, host, port] = /^tcp:\/\/(.*):(\d+)$/.exec(gateway.port) ?? [];
  const socket = connect(Number(port), host);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  const messages: string[] = [];
  let pending = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    for (let reading = readMt(pending); reading.kind !== 'incomplete'; reading = readMt(pending)) {
      pending = pending.subarray(reading.length);
      if (reading.kind !== 'frame') continue;
      const { type, subsystem, id, data } = reading.frame;
      messages.push(`${type} ${subsystem}/${id.toString(16)} ${Buffer.from(data).toString('hex')}`);
    }
  });
  return {
    messages,
    async ask(subsystem: number, id: number, data = ''): Promise<string> {
      messages.length = 0;
      socket.write(encodeMt({ type: 'SREQ', subsystem, id, data: Buffer.from(data, 'hex') }));
      await expect.poll(() => messages.some((one) => one.startsWith('SRSP'))).toBe(true);
      return messages.find((one) => one.startsWith('SRSP')) ?? '';
    },
    say: (bytes: string) => void socket.write(Buffer.from(bytes, 'hex')),
  };
}
