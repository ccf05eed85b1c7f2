import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { runOnce } from '../../../test/services/events/arrivals.ts';
import { openTestBroker } from '../../../test/services/events/broker.ts';
import { openTestLog } from '../../../test/services/events/log.ts';

/** A PUBLISH of QoS 0 with a remaining length of 268,435,455 (MQTT 5, 1.5.5 and 3.3.1). */
const LONGEST_PUBLISH = Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]);
/** A CONNACK of the same length. */
const LONGEST_CONNACK = Buffer.from([0x20, 0xff, 0xff, 0xff, 0x7f]);
/** A PUBLISH of QoS 2 to the topic "t" with packet identifier 1 and the payload "x" (MQTT 3.1.1, 3.3). */
const SHORT_PUBLISH = Buffer.from([0x34, 6, 0, 1, 0x74, 0, 1, 0x78]);
/** PINGRESP (MQTT 5, 3.13) again and again. */
const PING_RESPONSES = Buffer.alloc(1024 * 1024, Buffer.from([0xd0, 0]));
/** Far more than the buffers of two sockets hold. */
const FLOOD_BYTES = 64 * 1024 * 1024;

/** Writes until all is taken or the peer is gone. */
function flood(socket: Socket, head: Buffer): void {
  const chunk = Buffer.alloc(64 * 1024);
  socket.write(head);
  const more = () => {
    while (socket.writable && socket.bytesWritten < FLOOD_BYTES) if (!socket.write(chunk)) return;
  };
  socket.on('drain', more);
  more();
}

it.each([
  ['a PUBLISH of 256 MB', LONGEST_PUBLISH, 'a packet of type 3 is not expected'],
  ['a second CONNACK of 256 MB', LONGEST_CONNACK, 'a packet is longer than 16384 bytes'],
  ['a flood of PINGRESP', PING_RESPONSES, 'more answers than questions'],
])(
  '%s from the notification service ends the connection before it is collected',
  async (_name, head, why) => {
    let taken = 0;
    const broker = await openTestBroker({
      connected(socket) {
        socket.once('close', () => {
          taken = socket.bytesWritten - socket.writableLength;
        });
        flood(socket, head);
      },
    });
    const log = await openTestLog();
    await log.record(1, 1);
    expect(String(await runOnce(log, broker))).toContain(why);
    await broker.goAway();
    expect(taken).toBeLessThan(FLOOD_BYTES / 2);
    // What was in flight is not to blame.
    expect(log.events.table.cursor()).toMatchObject({ suspectFailures: 0 });
    expect(log.events.backlog()).toMatchObject({ waiting: 1 });
  },
);

it('a message to this side, which subscribes to nothing, ends the connection', async () => {
  const broker = await openTestBroker({ connected: (socket) => void socket.write(SHORT_PUBLISH) });
  const log = await openTestLog();
  await log.record(1, 1);
  expect(String(await runOnce(log, broker))).toContain('a packet of type 3 is not expected');
});
