/**
 * The session with one device: the pure machine (protocol/session.ts), worked over the bus. A poll and an order of the bus are
 * each one exchange: it sends what the machine has to send. Commands wait in a queue, and the
 * one on the wire is finished before the next begins: to abandon it would end the session.
 */
import { randomBytes } from 'node:crypto';
import type { Bus } from '../bus/bus.ts';
import type { Attempt, Exchange, OrderClass, Reading } from '../bus/exchange.ts';
import { type Clock, DriverError, type DriverErrorCode } from '../contract/driver.ts';
import type { LateReplies } from './late-replies.ts';
import { type Check, FRAME_MAX } from './protocol/frame.ts';
import { type Command, nakText, type Reply } from './protocol/messages.ts';
import { NONCE_LENGTH } from './protocol/secure-channel.ts';
import {
  type Effect,
  forgetDevice,
  isQuestion,
  type Outcome,
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
}

const POLL: Command = { kind: 'POLL' };
const OF_FILES: readonly Command['kind'][] = ['FILETRANSFER', 'ABORT'];
/** Most answers to a POLL are shorter. A reply that never comes costs the time of so many characters. */
const USUAL_REPLY = 64;
/** After a reply that was cut off because it was longer: the longest that there is. */
const LONG_REPLY = FRAME_MAX;
/** The bus stops asking a device after three misses; a bad wire causes them at a good device now and then. */
const LEFT_ALONE_MS = 50;
const NO_CHANNEL = 'it has no secure channel: sessionFault of its state says why';
/** Errors after which the command is tried again. */
const MISSES: readonly DriverErrorCode[] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED'];

export function openDeviceSession(options: DeviceSessionOptions): DeviceSession {
  const { address, check } = options;
  const queue = openCommandQueue();
  const exchanges = openExchanges(options, queue);
  const { state, exchange, conclude, replace, keepTo } = exchanges;
  let isReserved = false;
  let isClosed = false;
  const isCoolingDown = () => state().stage.kind === 'cooldown';
  const exchangeUntilSettled = openCommandExchanges(options, { exchange, conclude, isCoolingDown });
  return {
    state,
    exchange,
    conclude,
    keepTo,
    async ask(command, asking) {
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

// The commands that wait for the device, and the outcome of each.

interface QueuedCommand {
  readonly command: Command;
  readonly class: OrderClass;
  /** Monotonic milliseconds. After it the command is not sent, not even in the exchange of a poll. */
  readonly deadline: number;
  /** It was on the wire at least once. */
  sent: boolean;
  /** Resolves with the answer; rejects with a DriverError. */
  readonly result: Promise<Reply>;
  /** Fires when `result` is settled. */
  readonly over: AbortSignal;
  settle(result: Promise<Reply>): void;
}

interface CommandQueue {
  /** Throws BUSY. */
  add(command: Command, asking: { class: OrderClass; deadline: number }): QueuedCommand;
  remove(queued: QueuedCommand): void;
  /** The entry of this command object; undefined where the command is none of the queue. */
  of(command: Command | undefined): QueuedCommand | undefined;
  /** The entry to send next; entries past their deadline are skipped. `now`: monotonic milliseconds. */
  first(now: number): QueuedCommand | undefined;
  finish(queued: QueuedCommand, outcome: Outcome): void;
  /** The session has ended: commands that were sent in it may have been carried out, so they end OUTCOME_UNKNOWN. */
  abandonSent(): void;
  /** The device is gone: ends all commands. Those that were not sent reject with `reason`. */
  dismiss(reason: DriverError): void;
}

/** Commands of one class. More of them come from a fault of the caller. */
const QUEUE_MAX = 16;

function openCommandQueue(): CommandQueue {
  let waiting: readonly QueuedCommand[] = [];

  function remove(queued: QueuedCommand): void {
    waiting = waiting.filter((one) => one !== queued);
  }

  function finish(queued: QueuedCommand, outcome: Outcome): void {
    if (outcome.kind === 'again' || outcome.kind === 'silent') return;
    remove(queued);
    queued.settle(resultOf(outcome));
  }

  return {
    remove,
    finish,
    add(command, { class: orderClass, deadline }) {
      if (waiting.filter((one) => one.class === orderClass).length >= QUEUE_MAX)
        throw new DriverError('BUSY', 'too many commands wait for this device: try again in a second');
      const { promise, resolve } = Promise.withResolvers<Reply>();
      const over = new AbortController();
      const queued: QueuedCommand = {
        command,
        class: orderClass,
        deadline,
        sent: false,
        result: promise,
        over: over.signal,
        settle(result) {
          // Without a handler, a rejection after the caller has left would end the process.
          result.catch(() => undefined);
          resolve(result);
          over.abort();
        },
      };
      const before = waiting.filter((one) => orderClass !== 'command' || one.class === 'command');
      waiting = [...before, queued, ...waiting.filter((one) => !before.includes(one))];
      return queued;
    },
    of: (command) => waiting.find((one) => one.command === command),
    first: (now) => waiting.find(({ deadline }) => now < deadline),
    abandonSent() {
      for (const queued of waiting.filter(({ sent }) => sent)) finish(queued, { kind: 'unknown' });
    },
    dismiss(reason) {
      for (const queued of waiting) {
        if (queued.sent) finish(queued, { kind: 'unknown' });
        else queued.settle(Promise.reject(reason));
      }
      waiting = [];
    },
  };
}

/** The error for the caller of a command that will not be sent again. */
function endedBy({ sent, command }: QueuedCommand, error: unknown, signal: AbortSignal): unknown {
  if (sent && !isQuestion(command))
    return new DriverError('OUTCOME_UNKNOWN', 'it was sent, and no answer came', { cause: error });
  return signal.aborted
    ? new DriverError('DEADLINE_PASSED', 'nothing was sent in time', { cause: error })
    : error;
}

async function resultOf(outcome: Outcome): Promise<Reply> {
  switch (outcome.kind) {
    case 'answered':
      return outcome.reply;
    case 'refused':
      throw new DriverError('REFUSED', nakText(outcome.code));
    case 'unknown':
      throw new DriverError('OUTCOME_UNKNOWN', 'it was sent, and the session was lost before the answer');
    default:
      throw new DriverError('BAD_REPLY', 'the device answered what is no answer to it');
  }
}
