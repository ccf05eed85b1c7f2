import { duplexPair } from 'node:stream';
import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FRAME_MAX_BYTES, openChannel, readFrames } from './channel.ts';

function frame(value: unknown): Buffer {
  const body = serialize(value);
  const header = Buffer.alloc(4);
  header.writeUInt32BE(body.length);
  return Buffer.concat([header, body]);
}

describe('a channel', () => {
  it('carries any values in order, however the bytes are cut', () => {
    const values = fc.array(
      fc.oneof(fc.string(), fc.integer(), fc.uint8Array(), fc.dictionary(fc.string(), fc.nat())),
    );
    fc.assert(
      fc.property(values, fc.infiniteStream(fc.integer({ min: 1, max: 40 })), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(frame));
        const received: unknown[] = [];
        let unread: Buffer = Buffer.alloc(0);
        for (let at = 0; at < bytes.length; ) {
          const end = at + (cuts.next().value ?? 1);
          unread = readFrames(Buffer.concat([unread, bytes.subarray(at, end)]), (body) =>
            received.push(deserialize(body)),
          );
          at = end;
        }
        expect(received).toEqual(sent);
        expect(unread).toHaveLength(0);
      }),
    );
  });

  it.each([
    ['bytes that are no value', Buffer.from([0, 0, 0, 4, 0xde, 0xad, 0xbe, 0xef])],
    ['a length without end', Buffer.from('zzzzzzzzzz')],
    ['an empty frame', Buffer.alloc(4)],
    ['a value its reader refuses', frame('nonsense')],
  ])('closes on %s, and hears nothing after it', async (_what, bytes) => {
    const [near, far] = duplexPair();
    const heard: unknown[] = [];
    const parse = (value: unknown) => {
      if (value === 'nonsense') throw new Error('nonsense');
      return value;
    };
    const channel = openChannel(near, parse, (value) => heard.push(value));
    far.write(Buffer.concat([frame('hello'), bytes, frame('more')]));
    expect(await channel.closed).toBeInstanceOf(Error);
    expect(heard).toEqual(['hello']);
    await channel.send('to no one');
  });

  it('closes without a reason when the other side goes', async () => {
    const [near, far] = duplexPair();
    const channel = openChannel(
      near,
      (value) => value,
      () => undefined,
    );
    far.end();
    expect(await channel.closed).toBeUndefined();
  });

  it('holds a sender back while the other side does not read', async () => {
    const [near, far] = duplexPair({ highWaterMark: 1_024 });
    const channel = openChannel<unknown, string>(
      near,
      (value) => value,
      () => undefined,
    );
    let sent = 0;
    const sending = (async () => {
      for (; sent < 100; sent += 1) await channel.send('x'.repeat(1_000));
    })();
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toBeLessThan(5);
    far.resume();
    await sending;
  });

  it('refuses to send what the other side would not take', () => {
    const [near] = duplexPair();
    const channel = openChannel<unknown, string>(
      near,
      (value) => value,
      () => undefined,
    );
    expect(() => channel.send('x'.repeat(FRAME_MAX_BYTES + 1))).toThrow(RangeError);
  });
});
