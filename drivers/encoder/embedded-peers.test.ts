import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { TestIdentity } from '../../test/drivers/encoder/certificates.ts';
import { describeEmbedded, notes, up, warnings } from '../../test/drivers/encoder/embedded.ts';
import {
  connectPacket,
  openTestPeer,
  PINGREQ,
  readPublish,
  subscribePacket,
  TYPE,
  WAIT,
} from '../../test/drivers/encoder/peer.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describeEmbedded('defects of aedes 1.2.0 that must not come through', (site) => {
  it.each([0, 1])('loses and reorders nothing on a subscription of QoS %i', async (qos) => {
    const peer = await site().dial(site().register('e1'));
    await site().ask(peer, { clientId: 'e1' });
    peer.send(subscribePacket(1, ['enc/e1/down/#', qos]));
    await peer.next(TYPE.suback);
    const channels = ['hello', 'ack', 'write', 'cancel'] as const;
    await Promise.all(
      Array.from({ length: 300 }, (_, index) => {
        peer.send(up('e1', String(index), index + 1));
        return site().link.send('e1', channels[index % 4] ?? 'ack', Buffer.from(String(index)));
      }),
    );
    for (let index = 0; index < 300; index += 1) {
      expect(readPublish(await peer.next(TYPE.publish))).toMatchObject({ payload: String(index), qos });
    }
  });

  it('does not let an encoder that stopped reading hold up another', async () => {
    const frozen = await site().enter('frozen');
    frozen.socket.pause();
    const sends: Promise<void>[] = [];
    let settled = 0;
    const count = (): void => {
      settled += 1;
    };
    // Until the buffers of both kernels are full and three writes stay behind.
    while (sends.length - settled < 3) {
      const sent = site().link.send('frozen', 'write', Buffer.alloc(200_000));
      sends.push(sent);
      void sent.then(count, count);
      for (let turn = 0; turn < 50 && settled < sends.length; turn += 1) await nextTurn();
    }
    const healthy = await site().enter('healthy');
    for (let index = 0; index < 100; index += 1) {
      await site().link.send('healthy', 'ack', Buffer.from(String(index)));
      expect(readPublish(await healthy.next(TYPE.publish)).payload).toBe(String(index));
    }
    const outcomes = Promise.allSettled(sends);
    await site().link.kick('frozen', 'enough');
    expect((await outcomes).at(-1)?.status).toBe('rejected');
  });

  it('grants nothing through a persistent session: every session is clean', async () => {
    const identity = site().register('e1');
    const first = await site().dial(identity);
    await site().ask(first, { clientId: 'e1', clean: false });
    first.send(subscribePacket(1, ['enc/e1/down/#', 1], ['enc/e2/down/#', 1], ['#', 1]));
    expect([...(await first.next(TYPE.suback)).body.subarray(2)]).toEqual([1, 128, 128]);
    first.reset();
    await site().host.wait('lost', 'e1');
    const second = await site().dial(identity);
    second.send(connectPacket({ clientId: 'e1', clean: false }));
    // Session present is 0 (MQTT 3.1.1, 3.2.2.2).
    expect([...(await second.next(TYPE.connack)).body]).toEqual([0, 0]);
    await expect(site().link.send('e1', 'hello', Buffer.from('{}'))).rejects.toMatchObject({
      code: 'LINK_LOST',
    });
    const other = await site().enter('e2');
    await site().link.send('e2', 'write', Buffer.from('secret'));
    await other.next(TYPE.publish);
    second.send(PINGREQ);
    await second.next(TYPE.pingresp);
    expect(second.packets).toEqual([]);
  });

  it('survives half-open QoS 2 handshakes and acknowledgements of nothing', async () => {
    const peer = await site().enter('e1');
    // PUBACK, PUBREC, PUBREL and PUBCOMP of an identifier that was never used (3.4 to 3.7).
    peer.send(...[0x40, 0x50, 0x62, 0x70].map((first) => Buffer.from([first, 2, 0, 9])), PINGREQ);
    await peer.next(TYPE.pingresp);
    peer.send(up('e1', 'x'));
    await peer.next(TYPE.puback);
  });
});

describeEmbedded('hostile peers', (site) => {
  it('survives mutated streams and serves the others', async () => {
    const bystander = await site().enter('bystander');
    const identity = site().register('e1');
    const tls = { address: site().link.address, ca: site().authority.root, ...identity };
    const valid = Buffer.concat([
      connectPacket({ clientId: 'e1', will: { topic: 'enc/e1/up/status', payload: '{"online":false}' } }),
      subscribePacket(1, ['enc/e1/down/#', 1]),
      up('e1', '{"seq":1}'),
      PINGREQ,
      up('e1', '{"seq":2}', 2),
    ]);
    const mutation = fc.record({
      at: fc.nat(valid.length - 1),
      byte: fc.nat(255),
      cut: fc.nat(valid.length),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (mutations, cut) => {
          const bytes = Buffer.from(valid);
          for (const { at, byte } of mutations) bytes[at] = byte;
          await using peer = await openTestPeer(tls);
          peer.send(cut ? bytes.subarray(0, mutations[0]?.cut) : bytes);
          bystander.send(up('bystander', 'here'));
          await bystander.next(TYPE.puback);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('accepts 128 connections of one address at once, and still serves another address', async () => {
    const identity = site().register('e1');
    const tls = { address: site().link.address, ca: site().authority.root, ...identity };
    const begun = performance.now();
    const flood = await Promise.all(Array.from({ length: 200 }, () => openTestPeer(tls)));
    const seconds = (performance.now() - begun) / 1_000;
    const served = flood.filter(({ socket }) => socket.authorized).length;
    expect(served).toBeGreaterThanOrEqual(128);
    // 32 more each second (accept-rate.ts), for a machine that is busy takes long over 200 handshakes.
    expect(served).toBeLessThanOrEqual(128 + Math.ceil(32 * seconds));
    await using other = await openTestPeer({ ...tls, localAddress: '127.0.0.2' });
    expect(await site().ask(other, { clientId: 'e1' })).toBe(0);
    for (const peer of flood) peer.socket.destroy();
  });
});

/** TCP connections that say nothing; open until `close`. */
async function openSilent(
  { port }: { port: number },
  count: number,
  localAddress: string,
): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect({ host: '127.0.0.1', port, localAddress }));
  await Promise.all(
    sockets.map((socket) => {
      socket.on('error', () => undefined).resume();
      return once(socket, 'connect');
    }),
  );
  return sockets;
}

describeEmbedded('connections that are only held open', (site) => {
  const close = (sockets: Socket[]): void => {
    for (const socket of sockets) socket.destroy();
  };

  it('leave room for an encoder, from however many addresses they come', async () => {
    const identity = site().register('e1');
    const admitted = await site().enter('e1', identity);
    const silent: Socket[] = [];
    for (let address = 1; address <= 11; address += 1) {
      silent.push(...(await openSilent(site().link.address, 100, `127.0.1.${address}`)));
    }
    await site().enter('e2');
    const open = () => silent.filter(({ closed }) => !closed).length;
    await vi.waitFor(() => expect(open()).toBeLessThanOrEqual(512), WAIT);
    // Those of the two encoders were among the 512 for a moment.
    expect(open()).toBeGreaterThanOrEqual(510);
    admitted.send(PINGREQ);
    await admitted.next(TYPE.pingresp);
    expect(warnings.length).toBeLessThanOrEqual(11);
    close(silent);
  });

  it('leave room for an encoder of the same address', async () => {
    const { link, authority } = site();
    const silent = await openSilent(link.address, 128, '127.0.0.3');
    const tls = { address: link.address, ca: authority.root, localAddress: '127.0.0.3' };
    const identity = site().register('e1');
    // The burst is used up; one more connection is accepted every 31 ms.
    const peer = await vi.waitFor(async () => {
      const dialled = await openTestPeer({ ...tls, ...identity });
      expect(dialled.socket.authorized).toBe(true);
      return dialled;
    }, WAIT);
    expect(await site().ask(peer, { clientId: 'e1' })).toBe(0);
    expect(silent.filter(({ closed }) => closed).length).toBeGreaterThan(0);
    close(silent);
    peer.socket.destroy();
  });
});

describeEmbedded('the log', (site) => {
  it('has one line of an encoder that is refused again and again, and one of another beside it', async () => {
    const [first, second] = [site().register('e1'), site().register('e2')];
    site().host.credentials.clear();
    const asked = { clientId: 'e1', protocol: 'MQIsdp', level: 3 };
    expect(await site().ask(await site().dial(first), asked)).toBe(1);
    for (let turn = 0; turn < 10; turn += 1) {
      expect(await site().ask(await site().dial(first), { clientId: 'e1' })).toBe(5);
      expect(await site().ask(await site().dial(second), { clientId: 'e2' })).toBe(5);
    }
    const reasons = ['it does not speak MQTT 3.1.1', 'its credential is unknown'];
    expect(warnings).toEqual(reasons.map((reason) => `encoder refused: ${reason}`));
  });

  it('has one line of an address that fails the handshake again and again', async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      const [socket] = await openSilent(site().link.address, 1, '127.0.0.1');
      socket?.write('GET / HTTP/1.1\r\n\r\n');
      await new Promise((resolve) => socket?.once('close', resolve));
    }
    expect(notes).toEqual(['TLS handshake with an encoder failed: it does not speak TLS']);
  });
});

const WILL = { online: false, session: '7a9d2c14-0b5e-4f6a-8c3d-91e2f4a6b8c0' };
const mosquittoIsMissing = spawnSync('mosquitto_pub', ['--help']).error !== undefined;

describeEmbedded('the mosquitto clients', (site) => {
  /** Runs one as the encoder e1. */
  function run(command: string, identity: TestIdentity, args: string[]) {
    const { link, authority } = site();
    const child = spawn(command, [
      ...['-h', link.address.host, '-p', String(link.address.port), '--cafile', authority.rootFile],
      ...['--cert', identity.certFile, '--key', identity.keyFile, '-i', 'e1', '-V', 'mqttv311', '-k', '20'],
      ...['--will-topic', 'enc/e1/up/status', '--will-qos', '1', '--will-payload', JSON.stringify(WILL)],
      ...['-q', '1', ...args],
    ]);
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => output.push(String(chunk)));
    const ended = once(child, 'close').then(([code]) => ({ code, output: output.join('') }));
    return { stdin: child.stdin, ended };
  }

  it.skipIf(mosquittoIsMissing)('publish what the host stores', async () => {
    const { stdin, ended } = run('mosquitto_pub', site().register('e1'), ['-t', 'enc/e1/up/progress', '-l']);
    stdin.end('one\ntwo\nthree\n');
    expect(await ended).toEqual({ code: 0, output: '' });
    const received = await site().host.wait('received', 'e1', 3);
    expect(received.map(({ payload }) => payload)).toEqual(['one', 'two', 'three']);
  });

  it.skipIf(mosquittoIsMissing)('receive what the gateway sends', async () => {
    const args = ['-t', 'enc/e1/down/#', '-v', '-C', '2'];
    const { ended } = run('mosquitto_sub', site().register('e1'), args);
    await site().host.wait('subscribed', 'e1');
    await site().link.send('e1', 'hello', Buffer.from('{"epoch":1}'));
    await site().link.send('e1', 'cancel', Buffer.from('{"epoch":2}'));
    const output = 'enc/e1/down/hello {"epoch":1}\nenc/e1/down/cancel {"epoch":2}\n';
    expect(await ended).toEqual({ code: 0, output });
  });

  it.skipIf(mosquittoIsMissing)('read the refusal of a revoked credential', async () => {
    const identity = site().register('e1');
    site().host.credentials.set(identity.fingerprint256, { ok: false, reason: 'revoked', encoderId: 'e1' });
    const { code, output } = await run('mosquitto_pub', identity, ['-t', 'enc/e1/up/progress', '-m', 'x'])
      .ended;
    // The return code of the CONNACK.
    expect(code).toBe(5);
    expect(output).toContain('not authorised');
  });
});
