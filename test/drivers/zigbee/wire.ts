/** A wire between the driver and its coordinator that a test can cut into, of Z-Stack by the simulator's codec. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { MAKE } from '../../simulators/zigbee/make.ts';
import { encodeMt, type MtFrame, readMt } from '../../simulators/zigbee/mt/frame.ts';
import type { Cleanup } from './gateway.ts';

export interface Wire {
  /** tcp://127.0.0.1:port, in the place of the coordinator's. */
  readonly port: string;
  /** So many bytes of the coordinator arrive from now on. */
  bytesLeft: number;
  /** Of Z-Stack. What becomes of a frame of the coordinator; undefined: it is lost. */
  tamper: (frame: MtFrame) => MtFrame | undefined;
  /** To the driver, as if the coordinator had said it. Resolves when it is taken. */
  inject(bytes: Uint8Array): Promise<void>;
}

export async function openWire(coordinator: string, cleanup: Cleanup = onTestFinished): Promise<Wire> {
  const [, host, number] = /^tcp:\/\/(.*):(\d+)$/.exec(coordinator) ?? [];
  let driver: Socket | undefined;
  const wire = {
    port: '',
    bytesLeft: Number.POSITIVE_INFINITY,
    tamper: (frame: MtFrame): MtFrame | undefined => frame,
    inject: (bytes: Uint8Array) =>
      new Promise<void>((resolve, reject) => {
        if (driver) driver.write(bytes, (error) => (error ? reject(error) : resolve()));
        else reject(new Error('no one is there'));
      }),
  };
  const server = createServer({ noDelay: true }, (socket) => {
    driver = socket;
    const stick = connect({ port: Number(number), host, noDelay: true });
    for (const one of [socket, stick]) one.on('error', () => undefined);
    socket.on('close', () => stick.destroy());
    stick.on('close', () => socket.destroy());
    socket.pipe(stick);
    let pending = Buffer.alloc(0);
    stick.on('data', (chunk) => {
      const arrived = chunk.subarray(0, Math.max(0, wire.bytesLeft));
      wire.bytesLeft -= arrived.length;
      if (MAKE.adapter !== 'zstack') return void socket.write(arrived);
      pending = Buffer.concat([pending, arrived]);
      for (let reading = readMt(pending); reading.kind !== 'incomplete'; reading = readMt(pending)) {
        pending = pending.subarray(reading.length);
        const frame = reading.kind === 'frame' ? wire.tamper(reading.frame) : undefined;
        if (frame) socket.write(encodeMt(frame));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanup(async () => {
    driver?.destroy();
    server.close();
  });
  wire.port = `tcp://127.0.0.1:${(server.address() as { port: number }).port}`;
  return wire;
}

/** AF_INCOMING_MSG (Z-Stack Monitor and Test API, 3.3.2.3). */
export function incoming(
  message: { nwk: number; cluster: number; endpoint?: number; lqi?: number },
  zcl: Uint8Array,
): MtFrame {
  const { nwk, cluster, endpoint = 1, lqi = 180 } = message;
  const head = Buffer.alloc(17);
  head.writeUInt16LE(cluster, 2);
  head.writeUInt16LE(nwk, 4);
  head.writeUInt8(endpoint, 6);
  head.writeUInt8(1, 7);
  head.writeUInt8(lqi, 9);
  head.writeUInt8(zcl.length, 16);
  // The address and the radius of the last hop.
  const tail = Buffer.from([nwk & 0xff, nwk >> 8, 0x1d]);
  return { type: 'AREQ', subsystem: 4, id: 0x81, data: Buffer.concat([head, zcl, tail]) };
}

/** AF_INCOMING_MSG_EXT (the same, 3.3.2.4) of a frame that was sent in another PAN, from the address that it claims. */
export function foreign(from: { nwk: number } | { ieee: string }, cluster: number, zcl: Uint8Array): MtFrame {
  const head = Buffer.alloc(27);
  head.writeUInt16LE(cluster, 2);
  if ('nwk' in from) {
    head.writeUInt8(2, 4);
    head.writeUInt16LE(from.nwk, 5);
  } else {
    head.writeUInt8(3, 4);
    head.set(Buffer.from(from.ieee, 'hex').reverse(), 5);
  }
  head.writeUInt8(1, 13);
  head.writeUInt16LE(0x42_42, 14);
  head.writeUInt8(1, 16);
  head.writeUInt8(180, 18);
  head.writeUInt16LE(zcl.length, 25);
  return { type: 'AREQ', subsystem: 4, id: 0x82, data: Buffer.concat([head, zcl]) };
}
