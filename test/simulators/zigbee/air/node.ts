/** A node of the network: its membership, its address, its sleep, and its side of the device profile. */
import { bytes, ieee, openReader, u16 } from '../bytes.ts';
import { STATUS } from '../mt/status.ts';
import type { ConfirmFaults } from '../plan.ts';
import type { JoinOutcome } from '../stick/admissions.ts';
import { PAYLOAD_MAX } from '../stick/af.ts';
import type { Network } from '../stick/nib.ts';
import { type TransportKey, WELL_KNOWN_KEY } from '../stick/security.ts';
import type { Stick } from '../stick/stick.ts';
import type { Time } from '../time.ts';
import type { Air, Aps, Node } from './frames.ts';
import { childrenOf, neighbours } from './neighbours.ts';
import {
  answerZdo,
  type Binding,
  energyIn,
  type SimpleDescriptor,
  ZDO,
  ZDO_RESPONSE,
  type ZdoSubject,
  zdoFrame,
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
  /** Of a router: how long it keeps a frame for a child that sleeps. */
  holdMs: number | undefined;
  parent: string | undefined;
  lqi: number;
  pollMs: number | undefined;
  /** So long after it spoke it polls often. */
  awakeMs: number;
  manufacturerCode: number;
  followsChannel: boolean;
  /** Of one that lost its coordinator, until it looks for it on all channels; undefined: it never does. */
  rejoinMs: number | undefined;
  installKey: Buffer | undefined;
  /** Exchanges its link key with the trust center after it has joined. */
  exchangesKey: boolean;
  /** Sends in parts what does not fit into a frame. */
  fragments(): boolean;
  isOnline(): boolean;
  /** Takes one away from the account of answers to lose. */
  losesResponse(): boolean;
  misses(): boolean;
  confirmFault(): ConfirmFaults | undefined;
  /** Takes one away from the account of frames that arrive twice. */
  duplicates(): boolean;
  /** What it sends arrives so much later. */
  lagMs(): number;
  /** Takes one away from the account of frames that arrive once more, after so long. */
  replaysAfter(): number | undefined;
  bindingsMax: number;
  application: Application;
}

export interface OpenNode extends Node {
  readonly bindings: Binding[];
  /** A router lets joiners in. */
  readonly permitsJoin: boolean;
  join(): JoinOutcome;
  /** Takes part in the network of the stick without having asked. */
  adopt(): void;
  /** Finds the network it belongs to again. False: it is not there, or has another key. */
  rejoin(): boolean;
  /**
   * Asks the trust center for the network key again, as one that missed a change of it (Zigbee specification R22,
   * 4.6.3.3). False: it was answered with another link key than its own, or with an old counter, and has no network.
   */
  askForKey(): boolean;
  /** `as`: the IEEE address that it says it has; without, its own. */
  announce(as?: string): void;
  readdress(isAnnounced: boolean): void;
  /** False: it has no network, or its coordinator hears nothing of it. */
  send(frame: Omit<Aps, 'source'>): boolean;
  /** Polls often until then. */
  stayAwake(until: number): void;
  /** To a router, or to the coordinator. `isHeard`: the coordinator learns of it by its announcement. */
  moveTo(parent: string | undefined, isHeard: boolean): void;
  change(changes: Partial<Pick<NodeOptions, 'lqi' | 'pollMs' | 'awakeMs' | 'followsChannel'>>): void;
}

/** While it is awake, and for a while after it spoke, since an answer may come. */
const SHORT_POLL_MS = 50;
/** Between the key and the announcement. */
const ANNOUNCE_MS = 30;
/** Between the answer to a request to leave and the leaving. */
const LEAVE_MS = 5;
/** As the coordinator does (test/simulators/zigbee/stick/subject.ts). */
const CHANNEL_MOVE_MS = 500;
/** Of a range extender: NWK_MAX_DEVICE_LIST of Z-Stack, as it comes. */
const ROUTER_CHILDREN = 20;
const CAPABILITY = { router: 0x8e, listening: 0x88, sleepy: 0x80 };

const FIRST_KEY: TransportKey = { key: WELL_KNOWN_KEY, counter: -1 };

/** What changes of a node. */
interface State extends Pick<NodeOptions, 'parent' | 'lqi' | 'pollMs' | 'awakeMs' | 'followsChannel'> {
  network: Network | undefined;
  nwk: number;
  awakeUntil: number;
  permitUntil: number;
  zdoSequence: number;
  /** The last frame counter of its neighbour. */
  frameCounter: number;
  /** That of the trust center, and its last counter with it. */
  linkKey: TransportKey;
  readonly pollPhase: number;
  readonly bindings: Binding[];
}

export function openNode(options: NodeOptions): OpenNode {
  const { time, stick, random } = options;
  const { parent, lqi, pollMs, awakeMs, followsChannel } = options;
  const state: State = {
    parent,
    lqi,
    pollMs,
    awakeMs,
    followsChannel,
    network: undefined,
    nwk: 0xfffe,
    bindings: [],
    awakeUntil: 0,
    permitUntil: 0,
    zdoSequence: 0,
    frameCounter: -1,
    linkKey: FIRST_KEY,
    pollPhase: time.now() + random() * (pollMs ?? 0),
  };
  const announce = (as = options.ieee) => {
    state.zdoSequence = (state.zdoSequence + 1) & 0xff;
    const body = bytes(u16(state.nwk), ieee(as), capabilityOf(options, state));
    node.send(zdoFrame(0xfffd, ZDO.deviceAnnounce, state.zdoSequence, body));
  };
  const node: OpenNode = {
    ieee: options.ieee,
    isRouter: options.isRouter,
    holdMs: options.holdMs,
    bindings: state.bindings,
    announce,
    misses: options.misses,
    accepts(frameCounter) {
      const isNew = frameCounter > state.frameCounter;
      if (isNew) state.frameCounter = frameCounter;
      return isNew;
    },
    confirmFault: options.confirmFault,
    get nwk() {
      return state.nwk;
    },
    get parent() {
      return state.parent;
    },
    get lqi() {
      return state.lqi;
    },
    get network() {
      return state.network;
    },
    get isOnline() {
      return options.isOnline();
    },
    get permitsJoin() {
      return time.now() < state.permitUntil;
    },
    nextPoll: (now) => nextPoll(state, now),
    hear(frame) {
      if (frame.endpoint === 0) hearZdo(options, state, node, frame);
      else options.application.hear(frame);
    },
    ...membership(options, state, () => node),
    readdress(isAnnounced) {
      state.nwk = newAddress({ ...options, nwk: undefined });
      // Its parent has given it the address.
      if (state.parent === undefined && state.network) stick.admit(node, state.nwk);
      if (isAnnounced) announce();
    },
    send(frame) {
      if (!state.network || !options.isOnline()) return false;
      state.awakeUntil = Math.max(state.awakeUntil, time.now() + state.awakeMs);
      if (frame.data.length > PAYLOAD_MAX && !options.fragments()) return false;
      if (options.losesResponse()) return true;
      const sent = { ...frame, source: state.nwk };
      return sendUp(options, () => options.air().up(node, sent));
    },
    stayAwake(until) {
      state.awakeUntil = until;
    },
    moveTo(parent, isHeard) {
      state.parent = parent;
      if (!state.network) return;
      if (parent === undefined) stick.admit(node, state.nwk);
      if (isHeard) announce();
    },
    // Without a time to stay awake it sleeps from now on, whatever kept it awake.
    change: (changes) => void Object.assign(state, changes, changes.awakeMs === 0 && { awakeUntil: 0 }),
  };
  return node;
}

/** Once or more often, at once or later. False: no one can hear it. */
function sendUp(options: NodeOptions, up: () => boolean): boolean {
  const { time } = options;
  if (options.duplicates()) up();
  const [lagMs, againMs] = [options.lagMs(), options.replaysAfter()];
  if (againMs !== undefined) time.after(againMs, up);
  if (lagMs === 0) return up();
  time.after(lagMs, up);
  return true;
}

function newAddress({ nwk, random }: Pick<NodeOptions, 'nwk' | 'random'>): number {
  return nwk ?? 1 + Math.floor(random() * 0xfff0);
}

function capabilityOf({ isRouter }: NodeOptions, { pollMs }: State): number {
  if (isRouter) return CAPABILITY.router;
  return pollMs === undefined ? CAPABILITY.listening : CAPABILITY.sleepy;
}

function nextPoll({ pollMs, pollPhase, awakeUntil }: State, now: number): number | undefined {
  if (pollMs === undefined) return undefined;
  const period = now < awakeUntil ? Math.min(SHORT_POLL_MS, pollMs) : pollMs;
  const due = pollPhase + Math.ceil((now - pollPhase) / period) * period;
  return due <= now ? due + period : due;
}

/** How it comes into a network, and goes. */
function membership(
  options: NodeOptions,
  state: State,
  node: () => OpenNode,
): Pick<OpenNode, 'join' | 'adopt' | 'leave' | 'rejoin' | 'askForKey' | 'lost'> {
  const { stick, time } = options;
  function rejoin(): boolean {
    const [found, before] = [stick.network(), state.network];
    if (!options.isOnline()) return false;
    if (!before || !found?.key.equals(before.key) || !found.extendedPanId.equals(before.extendedPanId))
      return false;
    state.network = found;
    if (state.parent === undefined) stick.admit(node(), state.nwk);
    node().announce();
    return true;
  }
  return {
    join: () => join(options, state, node()),
    lost() {
      const { rejoinMs } = options;
      if (rejoinMs === undefined || !state.network) return;
      time.after(rejoinMs, () => {
        if (state.network && !options.air().reaches(node()) && !node().rejoin()) node().lost();
      });
    },
    adopt() {
      if (!options.isRouter && state.parent === undefined && !stick.hasRoom(options.ieee))
        state.parent = routerWithRoom(options);
      state.network = stick.network();
      state.nwk = newAddress(options);
      stick.admit(node(), state.nwk);
      exchangeKey(options, state);
    },
    leave: (isRejoin) => leave(options, state, node(), isRejoin),
    rejoin,
    askForKey() {
      const { key, counter } = stick.transportKey(options.ieee);
      if (key.equals(state.linkKey.key) && counter > state.linkKey.counter) {
        state.linkKey = { key, counter };
        return rejoin();
      }
      state.network = undefined;
      return false;
    },
  };
}

/** The coordinator answers no node that its table has no room for; a router that has some answers instead. */
function join(options: NodeOptions, state: State, node: OpenNode): JoinOutcome {
  const { stick, time, routers } = options;
  if (!options.isOnline()) return 'noNetwork';
  const isTurnedAway = !options.isRouter && state.parent === undefined && !stick.hasRoom(options.ieee);
  const router = isTurnedAway ? routerWithRoom(options) : state.parent;
  const isOpenThere = router === undefined ? undefined : routers.get(router)?.permitsJoin === true;
  if (isTurnedAway && !isOpenThere) return stick.network() ? 'full' : 'noNetwork';
  const address = newAddress(options);
  const before = state.parent;
  state.parent = router;
  const outcome = stick.join(node, address, options.installKey, isOpenThere);
  if (outcome !== 'joined') {
    state.parent = before;
    return outcome;
  }
  state.network = stick.network();
  state.nwk = address;
  state.frameCounter = -1;
  state.bindings.length = 0;
  options.application.joined();
  const announced = ANNOUNCE_MS + 2 * options.air().options().airMs;
  time.after(announced, node.announce);
  state.linkKey = FIRST_KEY;
  time.after(2 * announced, () => state.network && exchangeKey(options, state));
  return outcome;
}

/** Zigbee specification R22, 4.7.3.8: it is given a key of its own, and proves it. */
function exchangeKey({ stick, ieee: own, exchangesKey }: NodeOptions, state: State): void {
  if (!exchangesKey) return;
  stick.verifyKey(own);
  state.linkKey = stick.transportKey(own);
}

function routerWithRoom({ routers, air }: NodeOptions): string | undefined {
  return [...routers.keys()].find((router) => {
    const isThere = air().byIeee(router)?.network !== undefined;
    return isThere && childrenOf(air(), router).length < ROUTER_CHILDREN;
  });
}

function leave({ air, stick, time }: NodeOptions, state: State, node: OpenNode, isRejoin: boolean): void {
  if (!state.network) return;
  if (air().reaches(node)) time.after(LEAVE_MS, () => stick.left(node, isRejoin));
  if (isRejoin) {
    time.after(ANNOUNCE_MS, node.announce);
    return;
  }
  state.network = undefined;
  state.bindings.length = 0;
}

function hearZdo(options: NodeOptions, state: State, node: OpenNode, frame: Aps): void {
  const input = openReader(frame.data);
  if (frame.cluster >= ZDO_RESPONSE || input.left() === 0) return;
  const tsn = input.u8();
  const subject = subjectOf(options, state, node);
  try {
    const answer = answerZdo(subject, frame.cluster, input.rest(), frame.destination >= 0xfff8);
    if (answer) node.send(zdoFrame(frame.source, frame.cluster | ZDO_RESPONSE, tsn, answer));
  } catch (error) {
    // A node says nothing to what it cannot read.
    if (!(error instanceof RangeError)) throw error;
  }
}

function subjectOf(options: NodeOptions, state: State, node: OpenNode): ZdoSubject {
  const { time, application } = options;
  return {
    ieee: options.ieee,
    nwk: state.nwk,
    manufacturerCode: options.manufacturerCode,
    capability: capabilityOf(options, state),
    logicalType: options.isRouter ? 1 : 2,
    extendedPanId: state.network?.extendedPanId ?? Buffer.alloc(8),
    activeEndpoints: application.activeEndpoints(),
    simple: (endpoint) => application.endpoints().find((one) => one.endpoint === endpoint),
    neighbours: () => neighbours(options, state.lqi),
    routes: () => [{ destination: 0, nextHop: 0 }],
    children: () => childrenOf(options.air(), options.ieee).map((one) => one.nwk),
    bindings: state.bindings,
    bindingsMax: options.bindingsMax,
    permitJoin(seconds) {
      state.permitUntil = time.now() + seconds * 1_000;
    },
    leave(device, isRejoin) {
      if (device !== options.ieee) return STATUS.zdoNotSupported;
      // The answer goes out before it is gone.
      time.after(LEAVE_MS, () => node.leave(isRejoin));
      return STATUS.success;
    },
    energy: (channel) => energyIn(options.air())(channel),
    moveChannel(mask, updateId) {
      if (!state.followsChannel) return;
      time.after(CHANNEL_MOVE_MS, () => {
        if (state.network) state.network = { ...state.network, channel: Math.log2(mask), updateId };
      });
    },
  };
}
