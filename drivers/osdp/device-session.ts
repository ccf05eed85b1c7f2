/**
 * The session with one device: the pure machine (protocol/session.ts), worked over the bus. A poll and an order of the bus are
 * each one exchange: it sends what the machine has to send. Commands wait in a queue, and the
 * one on the wire is finished before the next begins: to abandon it would end the session.
 */
import { randomBytes } from 'node:crypto';
import type { Bus } from '../bus/bus.ts';
import type { Attempt, Exchange, OrderClass, Reading } from '../bus/exchange.ts';
import { type Clock, DriverError, type DriverErrorCode } from '../contract/driver.ts';
import { type CommandQueue, endedBy, openCommandQueue, type QueuedCommand } from './command-queue.ts';
import type { LateReplies } from './late-replies.ts';
import { type Check, FRAME_MAX } from './protocol/frame.ts';
import { type Command, nakText, type Reply } from './protocol/messages.ts';
import { NONCE_LENGTH } from './protocol/secure-channel.ts';
import {
  channelOf,
  type Effect,
  forgetDevice,
  openSession,
  type Security,
  type Session,
} from './protocol/state.ts';
import { type Examined, examine, nextRequest, settle } from './protocol/transmission.ts';

export interface Asking {
  class: OrderClass;
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
  /** The device that is meant. One in clear text says its name right before; if it does not, nothing is sent. */
  hwId?: string | undefined;
  sends?: QueuedCommand['sends'];
}

export interface DeviceSession {
  /** The state of the machine. */
  state(): Session;
  /** The next exchange, for a poll or an order of the bus. */
  exchange(): Exchange<null>;
  /** Call it after each attempt of such an exchange; a second call does nothing. */
  conclude(): void;
  /**
   * Resolves with the answer of the device, within the session. Rejects with a DriverError, after which the command is not sent
   * any more; OUTCOME_UNKNOWN: it was sent, and may have been carried out.
   */
  ask(command: Command, asking: Asking): Promise<Reply>;
  /** Starts a new session under this security. */
  begin(security: Security): void;
  /** The session goes on; the next one has this security. */
  keepTo(security: Security): void;
  /** The device was silent for long: another one may answer next. */
  forget(): void;
  /** While the device is reserved, every command is refused (BUSY) except those of a file transfer. */
  reserve(isReserved: boolean): void;
  /** Another device is at the address now: the queued commands were meant for the one before. */
  dismiss(): void;
  /** The device is not polled any more: queued commands and new ones are refused. */
  close(): void;
}

export interface DeviceSessionOptions {
  address: number;
  check: Check;
  security: Security;
  bus: Pick<Bus, 'exchange'>;
  clock: Clock;
  /** Shared by all devices of the bus. */
  lateReplies: LateReplies;
  /** The device is asked for its identity only, in clear text. */
  isLooking(): boolean;
  /** `askedAt`: monotonic milliseconds at which the request of the effect's reply was sent for the first time. */
  effect(effect: Effect, askedAt: number): void;
  /** After each exchange. `answered`: with a reply, NAK or "busy"; `garbled`: bytes came, and no valid frame in them. */
  exchanged(answered: boolean, garbled: boolean): void;
  /** The device has been silent for so long that commands do not wait for it. */
  isGone(): boolean;
  /** It is connected, under this name. */
  isThere(hwId: string): boolean;
}

const POLL: Command = { kind: 'POLL' };
const OF_FILES: readonly Command['kind'][] = ['FILETRANSFER', 'ABORT'];
/** Most answers to a POLL are shorter. A reply that never comes costs the time of so many characters. */
const USUAL_REPLY = 64;
/** After a reply that was cut off because it was longer: the longest that there is. */
const LONG_REPLY = FRAME_MAX;
/** The bus stops asking a device after three misses; a bad wire causes them at a good device now and then. */
const LEFT_ALONE_MS = 50;
/** So long after a device has said its name, no other one can be in its place. */
const NAMED_FOR_MS = 1_000;
const NO_CHANNEL = 'it has no secure channel: sessionFault of its state says why';
/** Errors after which the command is tried again. */
const MISSES: readonly DriverErrorCode[] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED'];

export function openDeviceSession(options: DeviceSessionOptions): DeviceSession {
  const { address, check, clock } = options;
  const queue = openCommandQueue();
  const exchanges = openExchanges(options, queue);
  const { state, exchange, conclude, replace, keepTo } = exchanges;
  let isReserved = false;
  let isClosed = false;
  const isCoolingDown = () => state().stage.kind === 'cooldown';
  const exchangeUntilSettled = openCommandExchanges(options, { exchange, conclude, isCoolingDown });

  async function carry(command: Command, asking: Asking): Promise<Reply> {
    if (isClosed) throw gone('is not polled any more');
    if (isReserved && !OF_FILES.includes(command.kind))
      throw new DriverError('BUSY', 'it takes a file and nothing else: wait for the end of its update');
    const queued = queue.add(command, asking);
    try {
      await exchangeUntilSettled(queued, asking);
      return await queued.result;
    } finally {
      queue.remove(queued);
    }
  }

  /**
   * In clear text nothing of a command or its answer says who is there, and two devices may have changed places without a missed
   * reply. Throws a DriverError; then nothing was sent.
   */
  async function named(hwId: string, asking: Asking): Promise<Asking> {
    const askedAt = clock.monotonic();
    await carry({ kind: 'ID' }, { ...asking, sends: undefined }).catch((cause: unknown) => {
      if (cause instanceof DriverError && cause.code === 'BUSY') throw cause;
      throw new DriverError('DEVICE_OFFLINE', 'the device does not say its name; nothing was sent', {
        cause,
      });
    });
    if (!options.isThere(hwId))
      throw gone(
        'there gives another name, or has no session: see in the list which device is at that address',
      );
    return { ...asking, deadline: Math.min(asking.deadline, askedAt + NAMED_FOR_MS) };
  }

  return {
    state,
    exchange,
    conclude,
    keepTo,
    async ask(command, asking) {
      const { hwId } = asking;
      const isProven = hwId === undefined || channelOf(state()) !== null;
      return await carry(command, isProven ? asking : await named(hwId, asking));
    },
    begin: (security) => replace(openSession({ address, check, security })),
    forget: () => replace(forgetDevice(state())),
    reserve(next) {
      isReserved = next;
    },
    dismiss: () => queue.dismiss(gone('is not there any more, but another one')),
    close() {
      isClosed = true;
      queue.dismiss(gone('is not polled any more'));
    },
  };
}

function gone(how: string): DriverError {
  return new DriverError('DEVICE_OFFLINE', `the device ${how}; nothing was sent`);
}

interface SessionExchanges extends Pick<DeviceSession, 'state' | 'exchange' | 'conclude' | 'keepTo'> {
  /** Starts this session; commands that were sent in the one before end OUTCOME_UNKNOWN. */
  replace(session: Session): void;
}

/** The machine, exchange by exchange: what each sends, and its outcome. */
function openExchanges(options: DeviceSessionOptions, queue: CommandQueue): SessionExchanges {
  const { address, check, security, lateReplies, clock } = options;
  let session = openSession({ address, check, security });
  /** Not moved by a repetition: its reply may be the one that the device made to the first request. */
  let askedAt = 0;
  /** Set while a request is out: what was read since. */
  let heard: { examined: Examined | null; length: number } | undefined;
  let replyLength = USUAL_REPLY;
  /** Drawn again after each challenge, not for each poll. */
  let nonce = randomBytes(NONCE_LENGTH);
  const onTheWire = () => queue.of(session.outstanding?.command);

  function request(): Uint8Array {
    conclude();
    if (options.isLooking()) session = forgetDevice(session);
    const now = clock.monotonic();
    const current = onTheWire();
    // Past its deadline it is not repeated either: the device may not have received it before.
    const wanted = (current && now < current.deadline ? current : queue.first(now))?.command ?? POLL;
    const next = nextRequest(session, wanted, nonce);
    session = next.session;
    if (session.outstanding?.command.kind === 'CHLNG') nonce = randomBytes(NONCE_LENGTH);
    if (session.outstanding?.sent === 1) askedAt = now;
    heard = { examined: null, length: 0 };
    const queued = onTheWire();
    if (queued) queued.sent = true;
    return next.bytes;
  }

  function read(received: Uint8Array): Reading<null> {
    const { outstanding } = session;
    if (!outstanding || !heard) return { kind: 'more', fault: 'foreign' };
    const examined = examine(session.options, outstanding, received);
    heard = { examined, length: received.length };
    return readingOf(examined);
  }

  function conclude(): void {
    if (!heard) return;
    const { examined, length } = heard;
    heard = undefined;
    const isCutOff = !examined?.answer && length >= USUAL_REPLY / 2;
    replyLength = isCutOff ? LONG_REPLY : USUAL_REPLY;
    const isOwn = session.outstanding?.isOwn === true;
    const queued = onTheWire();
    const credible = examined && lateReplies.credible(address, examined);
    if (!credible || !hasSpoken(credible))
      lateReplies.missed(address, isAnsweredInClear(session.outstanding));
    // No key is sent where two devices may answer, even if a late reply would explain what was heard.
    const isPairing = session.options.security.secure === 'pairing';
    const settled = settle(session, isPairing ? examined : credible);
    session = settled.session;
    if (queued && !isOwn) queue.finish(queued, settled.outcome);
    for (const effect of settled.effects) options.effect(effect, askedAt);
    const answered = (examined?.answer ?? null) !== null;
    options.exchanged(answered, !answered && length > 0);
  }

  /** One object for all exchanges: the bus has one exchange at a time, and reads these getters when it makes the request. */
  const exchange: Exchange<null> = {
    address,
    numbered: true,
    request,
    read,
    get operation() {
      return session.outstanding?.command.kind ?? 'POLL';
    },
    get replyLength() {
      return replyLength;
    },
    get exhaustive() {
      return isOpenToOthers(session);
    },
  };
  return {
    state: () => session,
    exchange: () => exchange,
    conclude,
    replace(next) {
      conclude();
      queue.abandonSent();
      session = next;
    },
    keepTo(next) {
      session = { ...session, options: { ...session.options, security: next } };
    },
  };
}

interface Turning extends Pick<DeviceSession, 'exchange' | 'conclude'> {
  /** The session is in cooldown: there will be none for some time. */
  isCoolingDown(): boolean;
}

/** Exchanges until the command is settled: orders of its own, while polls in between may carry it too. */
function openCommandExchanges(
  { bus, clock, isGone }: Pick<DeviceSessionOptions, 'bus' | 'clock' | 'isGone'>,
  { exchange, conclude, isCoolingDown }: Turning,
) {
  return async (queued: QueuedCommand, { class: orderClass, deadline, signal }: Asking): Promise<void> => {
    let isBusy = false;
    const observe = ({ outcome }: Attempt) => {
      isBusy = outcome === 'busy';
      conclude();
    };
    const order = { class: orderClass, deadline, attempts: 1, observe };
    const either = AbortSignal.any([signal, queued.over]);
    while (!queued.over.aborted) {
      isBusy = false;
      try {
        await bus.exchange(exchange(), order, either);
      } catch (error) {
        if (queued.over.aborted) return;
        const code = error instanceof DriverError && !signal.aborted ? error.code : undefined;
        const isLeftAlone = code === 'DEVICE_OFFLINE' && !isGone();
        // A poll that probes the device carries the command too. A busy device has done nothing yet, and is asked again.
        const left = deadline - clock.monotonic();
        if ((isBusy || isLeftAlone) && left > 0)
          await clock.sleep(Math.min(LEFT_ALONE_MS, Math.ceil(left)), either).catch(() => undefined);
        else if (code === undefined || !MISSES.includes(code)) throw endedBy(queued, error, signal);
      }
      if (!queued.over.aborted && isCoolingDown())
        throw endedBy(queued, new DriverError('DEVICE_OFFLINE', NO_CHANNEL), signal);
    }
  };
}

/** A device gets its key only when it is alone at the address: twice the whole reply time is listened for others. */
function isOpenToOthers({ options, stage, claim }: Session): boolean {
  if (options.security.secure !== 'pairing' || stage.kind !== 'idRequest') return false;
  return claim === null || claim === 'contested' || claim.times < 2;
}

/** False in the handshake, where replies have a security block. */
function isAnsweredInClear(outstanding: Session['outstanding']): boolean {
  return outstanding?.seal === null && !['CHLNG', 'SCRYPT'].includes(outstanding.command.kind);
}

/** Something came that is, or may have been, the reply, whole or damaged. Otherwise the reply may still come. */
function hasSpoken({ answer, fault, incidents }: Examined): boolean {
  if (answer || fault === 'crc' || fault === 'framing') return true;
  return incidents.some((incident) => incident !== 'foreignAddress');
}

function readingOf({ answer, fault }: Examined): Reading<null> {
  if (!answer) return fault ? { kind: 'more', fault } : { kind: 'more' };
  if (answer.kind === 'busy') return { kind: 'busy' };
  return answer.kind === 'nak'
    ? { kind: 'refused', reason: nakText(answer.code) }
    : { kind: 'reply', reply: null };
}
