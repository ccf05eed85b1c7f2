/**
 * What every exchange says of the way to the devices: that it hears itself, that nothing comes any more, that its peer is gone though no
 * error says so. TCP notices a dead peer after a quarter of an hour while data is unacknowledged, so devices that answered and then all
 * fall silent at once are taken for the way to them.
 */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Conversation, Line } from './line.ts';
import type { BusOptions } from './options.ts';

export interface PeerWatch {
  /** An exchange is over. `moves`: it may close a relay, or open one. Takes the port for lost where its peer is gone. */
  listened(station: Listened, conversation: Conversation, moves: boolean): void;
  warnings(now: number): BusWarning[];
}

/** `lastOperation`: what the device has answered through this port before. */
interface Listened {
  address: number;
  lastOperation: string | undefined;
}

/** Requests that were heard as they were sent, in a row, before there is a warning. */
const ECHOES_TO_WARN = 3;
/** Nothing at all was heard for so long, though devices were asked. */
const UNHEARD_MS = 5_000;

export function openPeerWatch(line: Line, options: Pick<BusOptions, 'localEcho'>): PeerWatch {
  let silence = NO_SILENCE;
  /** Monotonic: the first request since the newest byte. */
  let unheardSince: number | undefined;
  let echoes = 0;
  return {
    warnings(now) {
      const isUnheard = unheardSince !== undefined && now - unheardSince >= UNHEARD_MS;
      return [
        ...(echoes >= ECHOES_TO_WARN ? [busWarning('ECHO', {})] : []),
        ...(isUnheard ? [busWarning('NOTHING_HEARD', {})] : []),
      ];
    },
    listened(station, conversation, moves) {
      const { heardAt, sentAt, endedAt, outcome, soundsLikeEcho } = conversation;
      if (outcome.kind === 'reply') echoes = 0;
      else if (soundsLikeEcho && !options.localEcho) echoes += 1;
      // What was late was heard.
      if (unheardSince === undefined || heardAt >= unheardSince) unheardSince = sentAt;
      if (heardAt >= sentAt) unheardSince = undefined;
      silence = nextSilence(silence, station, conversation, moves);
      const gone = line.port.diesUnnoticed ? whyGone(silence, endedAt) : undefined;
      if (gone !== undefined) line.lose(new Error(gone));
    },
  };
}

interface PeerSilence {
  readonly misses: number;
  /** Who missed: the first two say enough. */
  readonly addresses: readonly number[];
  readonly since: number | undefined;
  /** When the first order was sent of which nothing is known to have arrived. */
  readonly orderedAt: number | undefined;
  /** When the newest of these exchanges began. */
  readonly askedAt: number;
}

const NO_SILENCE: PeerSilence = {
  misses: 0,
  addresses: [],
  since: undefined,
  orderedAt: undefined,
  askedAt: Number.POSITIVE_INFINITY,
};

/** Two devices with open breakers need some more than the six misses that opened them. */
const MISSES_MAX = 8;
const ADDRESSES_ENOUGH = 2;
/** A single device may be off, and then a new connection changes nothing; it costs little once in so long. */
const SINGLE_DEVICE_MS = 10_000;

/**
 * The kernel sends what was not acknowledged again, for a quarter of an hour: a relay would close whenever the network is
 * back. A connection that is given up takes that with it. One lost packet is sent again within this time.
 */
const ORDER_MS = 2_000;

function nextSilence(
  silence: PeerSilence,
  { address, lastOperation }: Listened,
  { heardAt, sentAt, endedAt }: Conversation,
  moves: boolean,
): PeerSilence {
  if (heardAt >= sentAt) return NO_SILENCE;
  // A late reply came since the exchange before: all that was silent until then is no silence of the peer.
  const before = heardAt >= silence.askedAt ? NO_SILENCE : silence;
  const order = { orderedAt: before.orderedAt ?? (moves ? sentAt : undefined), askedAt: sentAt };
  if (lastOperation === undefined) return { ...before, ...order };
  const { misses, addresses, since = endedAt } = before;
  const isNew = addresses.length < ADDRESSES_ENOUGH && !addresses.includes(address);
  return { misses: misses + 1, addresses: isNew ? [...addresses, address] : addresses, since, ...order };
}

/** undefined: it may be there. */
function whyGone({ misses, addresses, since, orderedAt }: PeerSilence, now: number): string | undefined {
  if (orderedAt !== undefined && now - orderedAt >= ORDER_MS)
    return 'nothing was heard since an order was sent: the connection is given up, so that the order is not delivered later';
  if (misses < MISSES_MAX || since === undefined) return undefined;
  return addresses.length >= ADDRESSES_ENOUGH || now - since >= SINGLE_DEVICE_MS
    ? 'nothing is heard any more from any device that answered before'
    : undefined;
}
