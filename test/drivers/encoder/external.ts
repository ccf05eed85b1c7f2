/** External brokers for the contract suite of encoder links: mosquitto with dynamic security, and a cluster of NATS servers. */
import { randomUUID } from 'node:crypto';
import { connect as connectTls } from 'node:tls';
import { expect, vi } from 'vitest';
import type { BrokerAdministration } from '../../../drivers/encoder/administration.ts';
import { type ExternalLink, openExternalLink } from '../../../drivers/encoder/external.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openTasks } from '../../../src/platform/supervise.ts';
import type { TestAuthority, TestIdentity } from './certificates.ts';
import { openTestHost, type TestHost } from './host.ts';
import type { ContractSite } from './link-contract.ts';
import {
  type ConnectOptions,
  connectPacket,
  openTestPeer,
  type Packet,
  pubackPacket,
  publishPacket,
  readPublish,
  subscribePacket,
  type TestPeer,
  TYPE,
  WAIT,
} from './peer.ts';

/** A broker as the tests need it; processes are shared by all sites of a file. */
export interface TestBroker extends AsyncDisposable {
  /** Its servers. */
  addresses(): readonly { host: string; port: number }[];
  /** As the operator: the broker lets this credential in. The gateway does it itself where it administers the broker. */
  admit?(encoderId: string, generation: number): Promise<void>;
  shutOut?(encoderId: string, generation: number): Promise<void>;
  /** Where the gateway connects, if that is elsewhere. */
  readonly gatewayPort?: number;
  /** Whether a certificate is the only one under its client identifier; by default it is. */
  readonly bindsClientIds?: boolean;
  /** Whether it refuses a subscription, or grants it and delivers nothing; by default it refuses. */
  readonly refusesSubscriptions?: boolean;
}

export interface ExternalSite extends ContractSite {
  link: ExternalLink;
  /** Connects, subscribes and answers probes from then on, at that server. */
  enterAt(server: number, encoderId: string, identity: TestIdentity): Promise<TestPeer>;
}

export interface SiteOptions {
  authority: TestAuthority;
  broker: TestBroker;
  /** The certificate of the gateway. */
  gateway: TestIdentity;
  administration: BrokerAdministration;
}

/** Of NATS, twice: one election may follow another. */
const ELECTED = { timeout: 60_000, interval: 20 };
const BACKOFF = { firstMs: 50, longestMs: 500, healthyMs: 1_000 };
const log = { debug() {}, info() {}, warn() {}, error() {} };

export async function openExternalSite(options: SiteOptions): Promise<ExternalSite> {
  const { authority, broker } = options;
  const host = openTestHost();
  const stack = new AsyncDisposableStack();
  const link = stack.use(await openLink(options, host, stack));
  const encoders = openEncoders(options, host, stack);
  const generations = new Map<string, number>();
  const register = async (encoderId: string, generation = 1) => {
    const identity = authority.client(`/CN=${encoderId}/OU=g${generation}`);
    for (const [fingerprint, known] of host.credentials)
      if (known.encoderId === encoderId)
        host.credentials.set(fingerprint, { ok: false, reason: 'superseded', encoderId });
    host.credentials.set(identity.fingerprint256, { ok: true, generation, encoderId });
    generations.set(identity.fingerprint256, generation);
    await broker.admit?.(encoderId, generation);
    await link.kick(encoderId, 'it was registered');
    return identity;
  };
  return {
    link,
    host,
    register,
    async shutOut(encoderId, { fingerprint256 }, reason) {
      host.credentials.set(fingerprint256, { ok: false, reason, encoderId });
      await broker.shutOut?.(encoderId, generations.get(fingerprint256) ?? 0);
      await link.kick(encoderId, reason);
    },
    dial: (identity) => encoders.dial(0, identity),
    ask: encoders.ask,
    sessionOf: encoders.sessionOf,
    bindsClientIds: broker.bindsClientIds ?? true,
    refusesSubscriptions: broker.refusesSubscriptions ?? true,
    enterAt: encoders.enter,
    enter: async (encoderId, identity, options) =>
      encoders.enter(0, encoderId, identity ?? (await register(encoderId)), options),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function openLink(
  { authority, broker, gateway, administration }: SiteOptions,
  host: TestHost,
  stack: AsyncDisposableStack,
): Promise<ExternalLink> {
  const ports = broker.gatewayPort ? [broker.gatewayPort] : broker.addresses().map(({ port }) => port);
  const urls = ports.map((port) => `mqtts://127.0.0.1:${port}`);
  const open = (url: string) => {
    const { hostname, port } = new URL(url);
    const { cert, key } = gateway;
    return connectTls({ host: hostname, port: Number(port), ca: authority.root, cert, key }).setNoDelay(true);
  };
  const clientId = `gatehouse-${randomUUID()}`;
  const access = { clientId, protocolVersion: 4 as const, password: () => undefined, open };
  const link = openExternalLink({ urls, access, administration, clock: systemClock, log }, host);
  const tasks = stack.use(openTasks(systemClock, log));
  tasks.start('broker', link.run, BACKOFF);
  await vi.waitFor(() => expect(link.state().url).not.toBeNull(), WAIT);
  return link;
}

function openEncoders({ authority, broker }: SiteOptions, host: TestHost, stack: AsyncDisposableStack) {
  const answers = new WeakMap<TestPeer, (packet: Packet) => Buffer[] | undefined>();
  const sessions = new WeakMap<TestPeer, string>();
  async function dial(server: number, identity?: Pick<TestIdentity, 'cert' | 'key'>): Promise<TestPeer> {
    const address = broker.addresses()[server];
    if (!address) throw new Error(`the broker has no server ${server}`);
    const { cert, key } = identity ?? {};
    const tls = cert && key ? { cert, key } : {};
    const answer = (packet: Packet) => answers.get(peer)?.(packet);
    const peer: TestPeer = stack.use(await openTestPeer({ address, ca: authority.root, answer, ...tls }));
    return peer;
  }
  async function ask(peer: TestPeer, options: ConnectOptions): Promise<number | undefined> {
    peer.send(connectPacket(options));
    await vi.waitFor(() => expect(peer.packets.length > 0 || peer.socket.closed).toBe(true), WAIT);
    return peer.packets.shift()?.body[1];
  }
  async function enter(
    server: number,
    encoderId: string,
    identity: TestIdentity,
    options: Partial<ConnectOptions> = {},
  ): Promise<TestPeer> {
    const session = randomUUID();
    const will = { topic: `enc/${encoderId}/up/status`, payload: JSON.stringify({ online: false, session }) };
    // As an encoder does it tries again: NATS holds a client identifier back for a second after it has changed hands, and
    // lets none subscribe while it has no leader.
    const peer = await vi.waitFor(async () => {
      const dialled = await dial(server, identity);
      answers.set(dialled, (packet) => answerOf(encoderId, session, packet));
      const answer = await ask(dialled, { clientId: encoderId, will, ...options });
      dialled.send(subscribePacket(1, [`enc/${encoderId}/down/#`, 1]));
      const granted = answer === 0 ? (await dialled.next(TYPE.suback)).body[2] : undefined;
      if (granted !== 1) dialled.socket.destroy();
      expect([answer, granted]).toEqual([0, 1]);
      return dialled;
    }, ELECTED);
    sessions.set(peer, session);
    // What makes the gateway ask: of one that it has seen, a birth; of another one anything, and this is not handed up.
    const isKnown = host.calls.some(({ connection }) => connection.encoderId === encoderId);
    peer.send(isKnown ? birth(encoderId, session) : presence(encoderId, session, randomUUID()));
    await vi.waitFor(() => {
      const isPresent = host.calls.some(
        ({ what, connection }) => what === 'subscribed' && connection.session === session,
      );
      expect(isPresent).toBe(true);
    }, WAIT);
    await peer.next(TYPE.puback);
    return peer;
  }
  return { dial, ask, enter, sessionOf: (peer: TestPeer) => sessions.get(peer) ?? '' };
}

/** What an encoder does by itself: acknowledges, and answers probes. */
function answerOf(encoderId: string, session: string, packet: Packet): Buffer[] | undefined {
  if (packet.type !== TYPE.publish) return undefined;
  const { topic, payload } = readPublish(packet);
  if (topic !== `enc/${encoderId}/down/probe`) return undefined;
  const { probe } = JSON.parse(payload) as { probe: string };
  return [pubackPacket(packet), presence(encoderId, session, probe, 0)];
}

const birth = (encoderId: string, session: string): Buffer =>
  publishPacket({
    topic: `enc/${encoderId}/up/status`,
    payload: JSON.stringify({ boot: session, seq: 1, session, online: true, journal: session }),
    id: 65_535,
  });
const presence = (encoderId: string, session: string, probe: string, qos = 1): Buffer =>
  publishPacket({
    topic: `enc/${encoderId}/up/presence`,
    payload: JSON.stringify({ probe, session }),
    id: 65_535,
    qos,
  });
