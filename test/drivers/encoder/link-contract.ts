/** What every EncoderLink must do, whichever broker stands behind it. Registers vitest tests. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { EmbeddedLink } from '../../../drivers/encoder/embedded.ts';
import type { CredentialVerdict, EncoderLink, EncoderLinkHost } from '../../../drivers/encoder/link.ts';
import type { TestAuthority, TestIdentity } from './certificates.ts';
import { openTestHost, type TestHost } from './host.ts';
import {
  type ConnectOptions,
  connectPacket,
  DISCONNECT,
  identifierOf,
  openTestPeer,
  PINGREQ,
  publishPacket,
  readPublish,
  SESSION,
  subscribePacket,
  type TestPeer,
  TYPE,
  WAIT,
} from './peer.ts';

type Refused = Extract<CredentialVerdict, { ok: false }>['reason'];

/** A link with its host and a way to be an encoder on it, whichever broker stands between. */
export interface ContractSite extends AsyncDisposable {
  link: EncoderLink;
  host: TestHost;
  /** Issues a certificate, and makes the host and the broker admit it. */
  register(encoderId: string, generation?: number): TestIdentity | Promise<TestIdentity>;
  /** Makes the host refuse it, and the broker where that is for the broker. */
  shutOut(encoderId: string, identity: TestIdentity, reason: Refused): void | Promise<void>;
  /** The TLS connection alone. */
  dial(identity?: Pick<TestIdentity, 'cert' | 'key'>): Promise<TestPeer>;
  /** Sends a CONNECT and gives the CONNACK's return code; undefined when the connection was closed instead. */
  ask(peer: TestPeer, options: ConnectOptions): Promise<number | undefined>;
  /** Whether no encoder can connect under the client identifier of another. */
  readonly bindsClientIds: boolean;
  /** Whether it refuses an encoder what it may not hear, or delivers nothing of it. */
  readonly refusesSubscriptions: boolean;
  /** The session that is in the will of a peer. */
  sessionOf(peer: TestPeer): string;
  /** Registers when no identity is given, connects, subscribes, and does what else makes it present. */
  enter(encoderId: string, identity?: TestIdentity, options?: Partial<ConnectOptions>): Promise<TestPeer>;
}

/** With the embedded broker, which is informed by the host alone. */
export interface Site extends ContractSite {
  link: EmbeddedLink;
  authority: TestAuthority;
  register(encoderId: string, generation?: number): TestIdentity;
}

export async function openSite(
  authority: TestAuthority,
  openLink: (host: EncoderLinkHost) => Promise<EmbeddedLink>,
): Promise<Site> {
  const host = openTestHost();
  const link = await openLink(host);
  const peers = new AsyncDisposableStack();
  const site: Site = {
    link,
    host,
    authority,
    register(encoderId, generation = 1) {
      const identity = authority.client(`/CN=${encoderId}/OU=g${generation}`);
      host.credentials.set(identity.fingerprint256, { ok: true, generation, encoderId });
      return identity;
    },
    shutOut(encoderId, { fingerprint256 }, reason) {
      host.credentials.set(fingerprint256, { ok: false, reason, encoderId });
    },
    async dial(identity) {
      const { cert, key } = identity ?? {};
      const tls = cert && key ? { cert, key } : {};
      return peers.use(await openTestPeer({ address: link.address, ca: authority.root, ...tls }));
    },
    async ask(peer, options) {
      peer.send(connectPacket(options));
      await vi.waitFor(() => expect(peer.packets.length > 0 || peer.socket.closed).toBe(true), WAIT);
      return peer.packets.shift()?.body[1];
    },
    async enter(encoderId, identity = site.register(encoderId), options = {}) {
      const peer = await site.dial(identity);
      expect(await site.ask(peer, { clientId: encoderId, ...options })).toBe(0);
      peer.send(subscribePacket(1, [`enc/${encoderId}/down/#`, 1]));
      expect((await peer.next(TYPE.suback)).body[2]).toBe(1);
      return peer;
    },
    bindsClientIds: true,
    refusesSubscriptions: true,
    sessionOf: () => SESSION,
    async [Symbol.asyncDispose]() {
      await peers.disposeAsync();
      await link[Symbol.asyncDispose]();
    },
  };
  return site;
}

export function encoderLinkContract(name: string, open: () => Promise<ContractSite>): void {
  describe(`encoder link: ${name}`, () => {
    let site: ContractSite;
    beforeAll(async () => {
      site = await open();
    });
    afterAll(() => site[Symbol.asyncDispose]());
    presence(() => site);
    messages(() => site);
    credentials(() => site);
    it('reports every connection as lost when the link is closed', async () => {
      await using other = await open();
      await other.enter('closing');
      await other.link[Symbol.asyncDispose]();
      expect(other.host.calls.filter(({ what }) => what === 'lost')).toHaveLength(1);
    });
  });
}

function presence(site: () => ContractSite): void {
  it('reports that down/# was granted, once, with generation and address', async () => {
    const { enter, host, register } = site();
    const peer = await enter('granted', await register('granted', 7));
    peer.send(subscribePacket(2, ['enc/granted/down/#', 1]));
    await peer.next(TYPE.suback);
    const calls = await host.wait('subscribed', 'granted');
    expect(calls).toHaveLength(1);
    expect(calls[0]?.connection).toMatchObject({ encoderId: 'granted', generation: 7 });
  });

  /** A broker keeps the will to itself after a DISCONNECT: an encoder says it first (docs/encoder-protocol.md, Connection). */
  const sayGoodbye = (peer: TestPeer, encoderId: string): void => {
    const payload = JSON.stringify({ online: false, session: site().sessionOf(peer) });
    peer.send(publishPacket({ topic: `enc/${encoderId}/up/status`, payload }), DISCONNECT);
  };
  it.each<[string, (peer: TestPeer, encoderId: string) => void]>([
    ['says goodbye', sayGoodbye],
    ['closes the connection', (peer) => peer.socket.end()],
    ['breaks the connection off', (peer) => peer.reset()],
    ['falls silent for 1.5 times its keep-alive', () => undefined],
  ])('loses an encoder that %s, exactly once', async (how, leave) => {
    const { enter, host, register } = site();
    const encoderId = how.replaceAll(/[^a-z]/g, '-');
    const peer = await enter(encoderId, await register(encoderId), { keepAlive: 1 });
    leave(peer, encoderId);
    await peer.ended();
    const [subscribed] = await host.wait('subscribed', encoderId);
    await host.wait('lost', encoderId);
    // By the time another encoder has come and gone a second report would have come too.
    (await enter('passing')).socket.destroy();
    await host.wait('lost', 'passing');
    const lost = await host.wait('lost', encoderId);
    expect(lost.map(({ connection }) => connection)).toEqual([subscribed?.connection]);
  });

  it('keeps an encoder that only pings', async () => {
    const { enter, host, register } = site();
    const peer = await enter('pinging', await register('pinging'), { keepAlive: 1 });
    for (let beat = 0; beat < 4; beat += 1) {
      // Waits on a timer of the peer's own: three quarters of its keep-alive, for twice its deadline.
      await new Promise((resolve) => peer.socket.setTimeout(750, () => resolve(undefined)));
      peer.send(PINGREQ);
      await peer.next(TYPE.pingresp);
    }
    expect(
      host.calls.some(({ what, connection }) => what === 'lost' && connection.encoderId === 'pinging'),
    ).toBe(false);
  });

  it('gives the place to a newer connection of the same encoder', async () => {
    const { enter, host, link, register } = site();
    const identity = await register('twice');
    const older = await enter('twice', identity);
    const newer = await enter('twice', identity);
    await older.ended();
    const [first, second] = await host.wait('subscribed', 'twice', 2);
    const lost = await host.wait('lost', 'twice');
    expect(lost.map(({ connection }) => connection)).toEqual([first?.connection]);
    expect(second?.connection.connectionId).not.toBe(first?.connection.connectionId);
    await link.send('twice', 'hello', Buffer.from('{"epoch":1}'));
    expect(readPublish(await newer.next(TYPE.publish)).topic).toBe('enc/twice/down/hello');
  });

  it('ends with one live connection when an encoder reconnects in a storm', async () => {
    const { ask, dial, host, link, register } = site();
    const identity = await register('storm');
    const peers = await Promise.all(Array.from({ length: 24 }, () => dial(identity)));
    const answers = await Promise.all(peers.map((peer) => ask(peer, { clientId: 'storm' })));
    expect(answers).toContain(0);
    const last = await site().enter('storm', identity);
    await Promise.all(peers.map((peer) => peer.ended()));
    const admitted = new Set(
      host.calls
        .filter(({ connection }) => connection.encoderId === 'storm')
        .map(({ connection }) => connection.connectionId),
    );
    const lost = await host.wait('lost', 'storm', admitted.size - 1);
    expect(new Set(lost.map(({ connection }) => connection.connectionId)).size).toBe(lost.length);
    await link.send('storm', 'hello', Buffer.from('{}'));
    await last.next(TYPE.publish);
  });
}

function messages(site: () => ContractSite): void {
  it('hands up each message of the three channels, in order, unchanged', async () => {
    const { enter, host, sessionOf } = site();
    const peer = await enter('talking');
    const channels = ['status', 'job', 'progress'] as const;
    const session = sessionOf(peer);
    const sent = Array.from({ length: 300 }, (_, index) => {
      const channel = channels[index % 3] ?? 'status';
      const birth = { boot: session, seq: index + 1, session, online: true, journal: session, é: 'é' };
      return { channel, payload: channel === 'status' ? JSON.stringify(birth) : `{"seq":${index}} é` };
    });
    peer.send(
      ...sent.map(({ channel, payload }, index) =>
        publishPacket({ topic: `enc/talking/up/${channel}`, payload, id: index + 1 }),
      ),
    );
    const received = await host.wait('received', 'talking', sent.length);
    expect(received.map(({ channel, payload }) => ({ channel, payload }))).toEqual(sent);
    for (let id = 1; id <= sent.length; id += 1) expect(identifierOf(await peer.next(TYPE.puback))).toBe(id);
  });

  it('sends down in order, not retained, also 256 KiB', async () => {
    const { enter, link } = site();
    const peer = await enter('listening');
    const large = 'x'.repeat(256 * 1024);
    await Promise.all([
      ...Array.from({ length: 200 }, (_, index) =>
        link.send('listening', index % 2 ? 'ack' : 'cancel', Buffer.from(String(index))),
      ),
      link.send('listening', 'write', Buffer.from(large)),
    ]);
    for (let index = 0; index < 200; index += 1) {
      const packet = await peer.next(TYPE.publish);
      const topic = `enc/listening/down/${index % 2 ? 'ack' : 'cancel'}`;
      expect(readPublish(packet)).toEqual({ topic, payload: String(index), qos: 1 });
      expect(packet.flags & 1).toBe(0);
    }
    expect(readPublish(await peer.next(TYPE.publish)).payload).toBe(large);
  });

  it('keeps nothing for an encoder that is away or has not subscribed', async () => {
    const { ask, dial, link, register } = site();
    const away = link.send('away', 'hello', Buffer.from('{}'));
    await expect(away).rejects.toThrow(DriverError);
    const identity = await register('away');
    const peer = await dial(identity);
    await ask(peer, { clientId: 'away', clean: false });
    await expect(link.send('away', 'hello', Buffer.from('{}'))).rejects.toMatchObject({ code: 'LINK_LOST' });
    peer.send(subscribePacket(1, ['enc/away/down/#', 1]), PINGREQ);
    await peer.next(TYPE.pingresp);
    expect(peer.packets.filter(({ type }) => type === TYPE.publish)).toEqual([]);
  });

  it('brings one encoder nothing of another', async () => {
    const { enter, link } = site();
    const [one, other] = [await enter('one'), await enter('other')];
    one.send(subscribePacket(9, ['enc/other/down/#', 1], ['enc/+/down/#', 1], ['#', 1], ['enc/one/up/#', 1]));
    const granted = [...(await one.next(TYPE.suback)).body.subarray(2)];
    expect(granted).toEqual(Array(4).fill(site().refusesSubscriptions ? 128 : 1));
    await link.send('other', 'hello', Buffer.from('{}'));
    await other.next(TYPE.publish);
    one.send(PINGREQ);
    await one.next(TYPE.pingresp);
    expect(one.packets).toEqual([]);
  });

  it('lets no encoder take the place of another by its client identifier', async () => {
    const { ask, dial, enter, host, link, register } = site();
    const identity = await register('robbed');
    const robbed = await enter('robbed', identity);
    const robber = await dial(await register('robber'));
    await ask(robber, { clientId: 'robbed' });
    if (!site().bindsClientIds) return saysAndHearsNothing(site(), robber, identity);
    robbed.send(PINGREQ);
    await robbed.next(TYPE.pingresp);
    await link.send('robbed', 'hello', Buffer.from('{}'));
    await robbed.next(TYPE.publish);
    expect(
      host.calls.filter(({ what, connection }) => what === 'lost' && connection.encoderId === 'robbed'),
    ).toEqual([]);
  });
}

/** In the name of the encoder whose client identifier it has. */
async function saysAndHearsNothing(
  { enter, host, link, refusesSubscriptions }: ContractSite,
  robber: TestPeer,
  robbed: TestIdentity,
): Promise<void> {
  robber.send(
    subscribePacket(1, ['enc/robbed/down/#', 1]),
    publishPacket({ topic: 'enc/robbed/up/job', payload: '{"of":"robber"}', qos: 0 }),
  );
  expect((await robber.next(TYPE.suback)).body[2]).toBe(refusesSubscriptions ? 128 : 1);
  const back = await enter('robbed', robbed);
  await link.send('robbed', 'hello', Buffer.from('{}'));
  await back.next(TYPE.publish);
  expect(robber.packets).toEqual([]);
  expect(host.calls.some((call) => call.what === 'received' && call.payload.includes('robber'))).toBe(false);
}

function credentials(site: () => ContractSite): void {
  it('kicks the live connection and resolves when it is lost; no one there is no error', async () => {
    const { enter, host, link } = site();
    const peer = await enter('kicked');
    await link.kick('kicked', 'credential revoked');
    const [lost] = await host.wait('lost', 'kicked');
    expect(lost?.reason).toBe('credential revoked');
    await peer.ended();
    await expect(link.send('kicked', 'hello', Buffer.from('{}'))).rejects.toMatchObject({
      code: 'LINK_LOST',
    });
    await link.kick('kicked', 'again');
  });

  it.each(['unknown', 'superseded', 'revoked'] as const)(
    'refuses a credential that is %s',
    async (reason) => {
      const { host, register, shutOut } = site();
      const encoderId = `refused-${reason}`;
      const identity = await register(encoderId);
      await shutOut(encoderId, identity, reason);
      await turnedAway(site(), encoderId, identity);
      expect(host.calls.filter(({ connection }) => connection.encoderId === encoderId)).toEqual([]);
    },
  );

  it('lets a new generation in where the old one is shut out', async () => {
    const { enter, host, link, register, shutOut } = site();
    const old = await register('renewed', 1);
    await enter('renewed', old);
    const fresh = await register('renewed', 2);
    await shutOut('renewed', old, 'superseded');
    await link.kick('renewed', 'superseded');
    await turnedAway(site(), 'renewed', old);
    await enter('renewed', fresh);
    expect((await host.wait('subscribed', 'renewed', 2)).at(-1)?.connection.generation).toBe(2);
  });
}

/** Not admitted, or admitted and allowed nothing. */
async function turnedAway(
  { ask, dial }: ContractSite,
  encoderId: string,
  identity: TestIdentity,
): Promise<void> {
  const peer = await dial(identity);
  const answer = await ask(peer, { clientId: encoderId });
  if (answer !== 0) {
    // Not authorised (MQTT 3.1.1, 3.2.2.3), or the connection was closed by a broker that says nothing.
    expect([5, undefined]).toContain(answer);
    return;
  }
  peer.send(subscribePacket(1, [`enc/${encoderId}/down/#`, 1]));
  await vi.waitFor(() => expect(peer.packets.length > 0 || peer.socket.closed).toBe(true), WAIT);
  expect(peer.packets.shift()?.body[2] ?? 128).toBe(128);
}
