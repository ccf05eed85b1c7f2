import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../test/drivers/encoder/certificates.ts';
import { describeEmbedded, openEmbeddedSite, up, warnings } from '../../test/drivers/encoder/embedded.ts';
import { encoderLinkContract } from '../../test/drivers/encoder/link-contract.ts';
import {
  connectPacket,
  DISCONNECT,
  identifierOf,
  PINGREQ,
  packet,
  publishPacket,
  readPublish,
  TYPE,
  WAIT,
} from '../../test/drivers/encoder/peer.ts';
import { BadMessage } from './link.ts';

describe.skipIf(opensslIsMissing)('embedded broker', () => {
  let authority: TestAuthority;
  beforeAll(() => {
    authority = openTestAuthority();
  });
  afterAll(() => authority[Symbol.dispose]());
  encoderLinkContract('embedded broker', () => openEmbeddedSite(authority));
});

describeEmbedded('acknowledgement', (site) => {
  it('comes only after the host has stored the message', async () => {
    const { promise: stored, resolve: store } = Promise.withResolvers<void>();
    site().host.store = () => stored;
    const peer = await site().enter('e1');
    peer.send(up('e1', 'a', 77));
    await site().host.wait('received', 'e1');
    peer.send(PINGREQ);
    await new Promise((resolve) => setImmediate(resolve));
    expect(peer.packets).toEqual([]);
    store();
    expect(identifierOf(await peer.next(TYPE.puback))).toBe(77);
  });

  it('is withheld while the host cannot store, and the connection stays', async () => {
    site().host.store = async (payload) => {
      if (payload === 'disk full') throw new Error('STORAGE_UNAVAILABLE');
    };
    const peer = await site().enter('e1');
    for (let id = 1; id <= 100; id += 1) peer.send(up('e1', 'disk full', id));
    peer.send(up('e1', 'space again', 101), PINGREQ);
    await peer.next(TYPE.pingresp);
    expect(identifierOf(await peer.next(TYPE.puback))).toBe(101);
    expect(peer.packets.filter(({ type }) => type === TYPE.puback)).toEqual([]);
    expect(warnings).toEqual(['a message could not be stored: Error: STORAGE_UNAVAILABLE']);
    // Repeated on the same connection, and on the next one.
    site().host.store = async () => undefined;
    peer.send(publishPacket({ topic: 'enc/e1/up/progress', payload: 'disk full', id: 1, dup: true }));
    expect(identifierOf(await peer.next(TYPE.puback))).toBe(1);
    peer.reset();
    await site().host.wait('lost', 'e1');
    const again = await site().enter('e1', site().register('e1', 2));
    again.send(up('e1', 'disk full', 2));
    expect(identifierOf(await again.next(TYPE.puback))).toBe(2);
  });

  it('is withheld beyond 1.5 times the keep-alive without losing the encoder', async () => {
    site().host.store = () => Promise.reject(new Error('STORAGE_UNAVAILABLE'));
    const peer = await site().enter('e1', undefined, { keepAlive: 1 });
    for (let beat = 1; beat <= 4; beat += 1) {
      peer.send(up('e1', 'kept', beat));
      await new Promise((resolve) => peer.socket.setTimeout(600, () => resolve(undefined)));
    }
    expect(site().host.calls.filter(({ what }) => what === 'lost')).toEqual([]);
  });

  it('leaves the order of what follows as it was sent', async () => {
    let stored = Promise.resolve();
    site().host.store = () => {
      stored = stored.then(() => new Promise((resolve) => setImmediate(resolve)));
      return stored;
    };
    const peer = await site().enter('e1');
    peer.send(...Array.from({ length: 200 }, (_, index) => up('e1', String(index), index + 1)));
    for (let id = 1; id <= 200; id += 1) expect(identifierOf(await peer.next(TYPE.puback))).toBe(id);
  });

  it('closes the connection for a bad message, says why in the log, and acknowledges nothing', async () => {
    site().host.store = () => Promise.reject(new BadMessage('not JSON in UTF-8'));
    const peer = await site().enter('e1');
    // One line, however many are in hand.
    peer.send(...[1, 2, 3].map((id) => up('e1', '}{', id)));
    await peer.ended();
    expect(peer.packets).toEqual([]);
    expect((await site().host.wait('lost', 'e1'))[0]?.reason).toBe('not JSON in UTF-8');
    expect(warnings).toEqual(['encoder disconnected for a bad message: not JSON in UTF-8']);
  });
});

describeEmbedded('bounds', (site) => {
  const will = { topic: 'enc/e1/up/status', payload: 'x'.repeat(2_100) };
  const longConnect = connectPacket({ clientId: 'e1', will });

  it('never has more than 32 messages of one encoder in hand, however they are cut', async () => {
    let waiting = 0;
    let most = 0;
    const releases: (() => void)[] = [];
    site().host.store = async () => {
      waiting += 1;
      most = Math.max(most, waiting);
      await new Promise<void>((resolve) => releases.push(resolve));
      waiting -= 1;
    };
    const peer = await site().enter('e1');
    for (let id = 1; id <= 500; id += 1) {
      peer.send(up('e1', 'x', id));
      // Every third in a TLS record and a turn of its own: aedes would read one more with each.
      if (id % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (let id = 1; id <= 500; ) {
      await vi.waitFor(() => expect(releases.length).toBeGreaterThan(0), WAIT);
      for (const release of releases.splice(0)) {
        release();
        id += 1;
      }
    }
    for (let id = 1; id <= 500; id += 1) expect(identifierOf(await peer.next(TYPE.puback))).toBe(id);
    expect(most).toBe(32);
  });

  it('lets no one wait for an encoder that floods', async () => {
    const flooding = await site().enter('flood');
    const calm = await site().enter('calm');
    let isFlooding = true;
    const flood = (): boolean => flooding.socket.write(Buffer.concat(Array(200).fill(up('flood', 'x'))));
    const keepFlooding = (): void => {
      while (isFlooding && flood());
      if (isFlooding) flooding.socket.once('drain', keepFlooding);
    };
    keepFlooding();
    await site().host.wait('received', 'flood', 1_000);
    // The flood has no end before these are answered.
    for (let id = 1; id <= 50; id += 1) {
      calm.send(up('calm', 'x', id));
      await calm.next(TYPE.puback);
    }
    isFlooding = false;
  });

  it('closes an encoder that does not read before it costs memory', async () => {
    const peer = await site().enter('deaf');
    peer.socket.pause();
    const payload = Buffer.alloc(200 * 1024);
    const sends = Array.from({ length: 100 }, () => site().link.send('deaf', 'write', payload));
    const outcomes = await Promise.allSettled(sends);
    expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true);
    expect((await site().host.wait('lost', 'deaf'))[0]?.reason).toBe(
      'it left more than 1048576 bytes unread',
    );
  });

  it.each([
    ['longer than 2 KiB before it is admitted', false, longConnect],
    ['longer than 64 KiB', true, publishPacket({ topic: 'enc/e1/up/job', payload: Buffer.alloc(65_536) })],
    ['announced with 256 MiB', true, Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f, 0])],
    ['of a malformed length', true, Buffer.from([0x32, 0x80, 0x80, 0x80, 0x80, 0x01])],
    ['of no known type', true, Buffer.from([0xf0, 0])],
    ['with a broken header', true, Buffer.from([0x36, 2, 0, 0])],
    ['whose topic is longer than itself', true, Buffer.from([0x32, 4, 0xff, 0xff, 0, 0])],
    ['that is a second CONNECT', true, packet(0x10, Buffer.from('000 MQTT'))],
    ['before a CONNECT', false, PINGREQ],
    ['that speaks HTTP', false, Buffer.from('GET / HTTP/1.1\r\nHost: gatehouse\r\n\r\n')],
  ])('closes a connection for a packet %s', async (_what, admitted, bytes) => {
    const identity = site().register('e1');
    const peer = admitted ? await site().enter('e1', identity) : await site().dial(identity);
    peer.send(bytes);
    await peer.ended();
    expect(peer.packets).toEqual([]);
    if (admitted) await site().host.wait('lost', 'e1');
    expect(site().host.calls.filter(({ what }) => what === 'received')).toEqual([]);
    await site().enter('e1', identity);
  });

  it('takes a message of just under 64 KiB, byte by byte', async () => {
    const peer = await site().enter('e1');
    const message = publishPacket({ topic: 'enc/e1/up/job', payload: 'x'.repeat(65_000) });
    for (const byte of message.subarray(0, 40)) {
      peer.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    peer.send(message.subarray(40));
    await peer.next(TYPE.puback);
    expect((await site().host.wait('received', 'e1'))[0]?.payload).toHaveLength(65_000);
  });

  it('loses nothing that came before the end of the connection in one piece', async () => {
    const peer = await site().enter('e1');
    const messages = Array.from({ length: 150 }, (_, index) => up('e1', String(index), index + 1));
    peer.send(...messages, DISCONNECT);
    peer.socket.end();
    const received = await site().host.wait('received', 'e1', 150);
    expect(received.map(({ payload }) => Number(payload))).toEqual([...Array(150).keys()]);
  });

  it('does not let half a packet hold a connection without end', async () => {
    const peer = await site().enter('e1', undefined, { keepAlive: 1 });
    peer.send(up('e1', 'x'.repeat(100)).subarray(0, 30));
    await peer.ended();
    expect((await site().host.wait('lost', 'e1'))[0]?.reason).toBe('keep alive timeout');
  });

  it('serves 50 encoders at once', async () => {
    const ids = Array.from({ length: 50 }, (_, index) => `many-${index}`);
    const peers = await Promise.all(ids.map((id) => site().enter(id)));
    await Promise.all(
      peers.map(async (peer, index) => {
        const id = ids[index] ?? '';
        peer.send(up(id, id));
        await peer.next(TYPE.puback);
        await site().link.send(id, 'ack', Buffer.from(id));
        expect(readPublish(await peer.next(TYPE.publish)).payload).toBe(id);
      }),
    );
    expect(site().host.calls.filter(({ what }) => what === 'received')).toHaveLength(50);
  });
});
