/** A node of the network: its membership, its address, its sleep, and its side of the device profile. */
import { bytes, ieee, openReader, u16 } from '../bytes.ts';
import type { ConfirmFault } from '../mt/status.ts';
import { STATUS } from '../mt/status.ts';
import type { Network } from '../stick/nib.ts';
import type { JoinOutcome, Stick } from '../stick/stick.ts';
import type { Time } from '../time.ts';
import type { Air, Aps, Node } from './air.ts';
import {
  answerZdo,
  type Binding,
  type Neighbour,
  type SimpleDescriptor,
  ZDO,
  ZDO_RESPONSE,
  type ZdoSubject,
} from './zdo.ts';

/** What a node does beside being one. */
export interface Application {
  endpoints(): SimpleDescriptor[];
  /** Those it claims, which may be more. */
  activeEndpoints(): number[];
  /** A frame to an endpoint that is not the device profile's. */
  hear(frame: Aps): void;
  /** It has joined a network newly: bindings and reporting are forgotten. */
  joined(): void;
}

/** Routers of the same network, by their IEEE address. */
export type Routers = ReadonlyMap<string, { permitsJoin: boolean }>;

export interface NodeOptions {
  routers: Routers;
  time: Time;
  air: () => Air;
  stick: Stick;
  random: () => number;
  ieee: string;
  nwk: number | undefined;
  isRouter: boolean;
  parent: string | undefined;
  lqi: number;
  pollMs: number | undefined;
  manufacturerCode: number;
  followsChannel: boolean;
  installKey: Buffer | undefined;
  isOnline(): boolean;
  /** Takes one away from the account of answers to lose. */
  losesResponse(): boolean;
  misses(): boolean;
  confirmFault(): ConfirmFault | undefined;
  application: Application;
}

export interface OpenNode extends Node {
  readonly bindings: Binding[];
  /** A router lets joiners in. */
  readonly permitsJoin: boolean;
  join(): JoinOutcome;
  /** Takes part in the network of the stick without having asked. */
  adopt(): void;
  leave(isRejoin: boolean): void;
  /** Finds the network it belongs to again. False: it is not there, or has another key. */
  rejoin(): boolean;
  announce(): void;
  readdress(isAnnounced: boolean): void;
  /** False: it has no network, or its coordinator hears nothing of it. */
  send(frame: Omit<Aps, 'source'>): boolean;
  /** Polls often until then. */
  stayAwake(until: number): void;
  change(changes: Partial<Pick<NodeOptions, 'lqi' | 'pollMs' | 'followsChannel' | 'parent'>>): void;
}

/** While it is awake, and for a while after it spoke, since an answer may come. */
const SHORT_POLL_MS = 50;
const AWAKE_AFTER_UP_MS = 500;
/** Between the key and the announcement. */
const ANNOUNCE_MS = 30;
/** Between the answer to a request to leave and the leaving. */
const LEAVE_MS = 5;
/** As the coordinator does (stick/subject.ts). */
const CHANNEL_MOVE_MS = 500;
const CAPABILITY = { router: 0x8e, listening: 0x88, sleepy: 0x80 };

export function openNode(options: NodeOptions): OpenNode {
  const { time, stick, application } = options;
  let { parent, lqi, pollMs, followsChannel } = options;
  let network: Network | undefined;
  let nwk = 0xfffe;
  let awakeUntil = 0;
  let zdoSequence = 0;
  let permitUntil = 0;
  const pollPhase = time.now() + options.random() * (pollMs ?? 0);
  const bindings: Binding[] = [];

  const newAddress = () => options.nwk ?? 1 + Math.floor(options.random() * 0xfff0);
  const capability = () =>
    options.isRouter ? CAPABILITY.router : pollMs === undefined ? CAPABILITY.listening : CAPABILITY.sleepy;

  function send(frame: Omit<Aps, 'source'>): boolean {
    if (!network || !options.isOnline()) return false;
    awakeUntil = Math.max(awakeUntil, time.now() + AWAKE_AFTER_UP_MS);
    return options.losesResponse() || options.air().up(node, { ...frame, source: nwk });
  }
  function sendZdo(destination: number, cluster: number, tsn: number, body: Buffer): void {
    const head = { destination, cluster, endpoint: 0, sourceEndpoint: 0, profile: 0 };
    send({ ...head, data: bytes(tsn, body) });
  }
  function announce(): void {
    zdoSequence = (zdoSequence + 1) & 0xff;
    sendZdo(0xfffd, ZDO.deviceAnnounce, zdoSequence, bytes(u16(nwk), ieee(options.ieee), capability()));
  }
  function leave(isRejoin: boolean): void {
    if (!network) return;
    const wasHeard = options.air().reaches(node);
    if (wasHeard) time.after(LEAVE_MS, () => stick.left(node, isRejoin));
    if (isRejoin) return void time.after(ANNOUNCE_MS, announce);
    network = undefined;
    bindings.length = 0;
  }
  function hearZdo(frame: Aps): void {
    const input = openReader(frame.data);
    if (frame.cluster >= ZDO_RESPONSE || input.left() === 0) return;
    const tsn = input.u8();
    let afterwards: (() => void) | undefined;
    const subject = subjectOf((action) => {
      afterwards = action;
    });
    try {
      const answer = answerZdo(subject, frame.cluster, input.rest(), frame.destination >= 0xfff8);
      if (answer) sendZdo(frame.source, frame.cluster | ZDO_RESPONSE, tsn, answer);
    } catch (error) {
      // A node says nothing to what it cannot read.
      if (!(error instanceof RangeError)) throw error;
    }
    afterwards?.();
  }
  function subjectOf(afterAnswer: (action: () => void) => void): ZdoSubject {
    return {
      ...{ ieee: options.ieee, nwk, capability: capability(), manufacturerCode: options.manufacturerCode },
      extendedPanId: network?.extendedPanId ?? Buffer.alloc(8),
      logicalType: options.isRouter ? 1 : 2,
      activeEndpoints: application.activeEndpoints(),
      simple: (endpoint) => application.endpoints().find((one) => one.endpoint === endpoint),
      neighbours: () => neighbours(options, lqi),
      routes: () => [{ destination: 0, nextHop: 0 }],
      children: () => childrenOf(options).map((one) => one.nwk),
      bindings,
      permitJoin(seconds) {
        permitUntil = time.now() + seconds * 1_000;
      },
      leave(device, isRejoin) {
        if (device !== options.ieee) return STATUS.zdoNotSupported;
        // The answer goes out before it is gone.
        afterAnswer(() => time.after(LEAVE_MS, () => leave(isRejoin)));
        return STATUS.success;
      },
      moveChannel(mask, updateId) {
        if (!followsChannel) return;
        time.after(CHANNEL_MOVE_MS, () => {
          if (network) network = { ...network, channel: Math.log2(mask), updateId };
        });
      },
    };
  }

  const node: OpenNode = {
    ieee: options.ieee,
    isRouter: options.isRouter,
    get nwk() {
      return nwk;
    },
    get parent() {
      return parent;
    },
    get lqi() {
      return lqi;
    },
    get network() {
      return network;
    },
    get isOnline() {
      return options.isOnline();
    },
    bindings,
    nextPoll(now) {
      if (pollMs === undefined) return undefined;
      const period = now < awakeUntil ? Math.min(SHORT_POLL_MS, pollMs) : pollMs;
      const due = pollPhase + Math.ceil((now - pollPhase) / period) * period;
      return due <= now ? due + period : due;
    },
    misses: options.misses,
    confirmFault: options.confirmFault,
    hear(frame) {
      if (frame.endpoint === 0) hearZdo(frame);
      else application.hear(frame);
    },
    join() {
      const isOpenThere = parent === undefined ? undefined : options.routers.get(parent)?.permitsJoin;
      const address = newAddress();
      const outcome = options.isOnline()
        ? stick.join(node, address, options.installKey, isOpenThere)
        : 'noNetwork';
      if (outcome !== 'joined') return outcome;
      network = stick.network();
      nwk = address;
      bindings.length = 0;
      application.joined();
      time.after(ANNOUNCE_MS + 2 * options.air().options().airMs, announce);
      return outcome;
    },
    adopt() {
      network = stick.network();
      nwk = newAddress();
      stick.admit(node, nwk);
    },
    leave,
    rejoin() {
      const found = stick.network();
      if (!network || !found?.key.equals(network.key) || !found.extendedPanId.equals(network.extendedPanId))
        return false;
      network = found;
      announce();
      return true;
    },
    announce,
    readdress(isAnnounced) {
      nwk = 1 + Math.floor(options.random() * 0xfff0);
      if (isAnnounced) announce();
    },
    send,
    stayAwake(until) {
      awakeUntil = until;
    },
    get permitsJoin() {
      return time.now() < permitUntil;
    },
    change(changes) {
      lqi = changes.lqi ?? lqi;
      if ('pollMs' in changes) pollMs = changes.pollMs;
      followsChannel = changes.followsChannel ?? followsChannel;
      if ('parent' in changes) parent = changes.parent;
    },
  };
  return node;
}

function childrenOf({ air, ieee: own }: NodeOptions): Node[] {
  return air()
    .nodes()
    .filter((one) => one.parent === own && air().reaches(one));
}

function neighbours(options: NodeOptions, lqi: number): Neighbour[] {
  const { ieee: coordinator } = options.stick.state();
  const parent: Neighbour = {
    ...{ ieee: coordinator, nwk: 0, type: 'coordinator', isReceiverOn: true, relationship: 'parent' },
    ...{ lqi, depth: 0 },
  };
  const children = childrenOf(options).map((one): Neighbour => {
    const isReceiverOn = one.nextPoll(options.time.now()) === undefined;
    const head = { ieee: one.ieee, nwk: one.nwk, type: 'endDevice' as const, isReceiverOn };
    return { ...head, relationship: 'child', lqi: one.lqi, depth: 2 };
  });
  return [parent, ...children];
}
