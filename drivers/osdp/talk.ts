/**
 * The conversation with one device: its session (protocol/session.ts), worked over the bus. Polls and orders are turns
 * alike: each sends what the session has to send. Commands wait one behind the other (errands.ts), and the one that is on
 * the wire is finished before another is begun, for to leave it would end the session.
 */
import { randomBytes } from 'node:crypto';
import type { Bus } from '../bus/bus.ts';
import type { Attempt, Exchange, OrderClass, Reading } from '../bus/exchange.ts';
import { type Clock, DriverError, type DriverErrorCode } from '../contract/driver.ts';
import { type Errand, type Errands, endedBy, nakText, openErrands } from './errands.ts';
import type { Lateness } from './lateness.ts';
import type { Check } from './protocol/frame.ts';
import type { Command, Reply } from './protocol/messages.ts';
import { type Examined, examine } from './protocol/reading.ts';
import { NONCE_LENGTH } from './protocol/secure-channel.ts';
import { type Effect, forgetDevice, openSession, type Security, type Session } from './protocol/state.ts';
import { settle, turn } from './protocol/transmission.ts';

export interface Asking {
  class: OrderClass;
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
}

export interface Talk {
  session(): Session;
  /** The next turn, for a poll or an order of the bus. */
  exchange(): Exchange<null>;
  /** After each attempt of such an exchange; a second time does nothing. */
  conclude(): void;
  /**
   * Resolves with what the device answered, in its session. Rejects with a DriverError; OUTCOME_UNKNOWN: it was sent, and
   * whether it was done no one knows. It is not sent any more then.
   */
  ask(command: Command, asking: Asking): Promise<Reply>;
  /** Starts a new session under this security. */
  begin(security: Security): void;
  /** The session goes on, and a later one is as this says. */
  keepTo(security: Security): void;
  /** It was silent for long: it may be another one. */
  forget(): void;
  /** While it is, everything is refused (BUSY) but what has to do with a file. */
  reserve(isReserved: boolean): void;
  /** Another device is there now: nothing that waits was meant for it. */
  dismiss(): void;
  /** The device is not polled any more: commands that wait, and new ones, are refused. */
  close(): void;
}

export interface TalkOptions {
  address: number;
  check: Check;
  security: Security;
  bus: Pick<Bus, 'exchange'>;
  clock: Clock;
  /** Of all devices of the bus. */
  lateness: Lateness;
  /** Only ever asks who it is, in clear text. */
  isLooking(): boolean;
  /** `askedAt`: monotonic, when the request was sent first of whose reply it comes. */
  effect(effect: Effect, askedAt: number): void;
  /** After each turn. `answered`: by whatever is an answer; `garbled`: something was heard, and no frame in it. */
  turned(answered: boolean, garbled: boolean): void;
  /** It was silent for so long that nothing is worth waiting for. */
  isGone(): boolean;
}

const POLL: Command = { kind: 'POLL' };
const OF_FILES: readonly Command['kind'][] = ['FILETRANSFER', 'ABORT'];
/** Most answers to a POLL are shorter: what is waited for in vain costs the time of so many characters. */
const USUAL_REPLY = 64;
/** After a reply that was longer, and so cut off. */
const LONG_REPLY = 512;
/** The bus leaves a device alone after three misses, which a bad wire makes of a good device now and then. */
const LEFT_ALONE_MS = 50;
/** Says something of the device, and not that asking is in vain. */
const MISSES: readonly DriverErrorCode[] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED'];

export function openTalk(options: TalkOptions): Talk {
  const { address, check } = options;
  const errands = openErrands();
  const dialogue = openDialogue(options, errands);
  const { session, exchange, conclude, replace, keepTo } = dialogue;
  let isReserved = false;
  let isClosed = false;
  const isCoolingDown = () => session().stage.kind === 'cooldown';
  const takeTurns = openTurns(options, { exchange, conclude, isCoolingDown });
  return {
    session,
    exchange,
    conclude,
    keepTo,
    async ask(command, asking) {
      if (isClosed) throw gone('is not polled any more');
      if (isReserved && !OF_FILES.includes(command.kind))
        throw new DriverError('BUSY', 'the device takes a file and wants nothing else; nothing was sent');
      const errand = errands.add(command, asking);
      try {
        await takeTurns(errand, asking);
        return await errand.result;
      } finally {
        errands.remove(errand);
      }
    },
    begin: (security) => replace(openSession({ address, check, security })),
    forget: () => replace(forgetDevice(session())),
    reserve(next) {
      isReserved = next;
    },
    dismiss: () => errands.dismiss(gone('is not there any more, but another one')),
    close() {
      isClosed = true;
      errands.dismiss(gone('is not polled any more'));
    },
  };
}

function gone(how: string): DriverError {
  return new DriverError('DEVICE_OFFLINE', `the device ${how}; nothing was sent`);
}

interface Dialogue extends Pick<Talk, 'session' | 'exchange' | 'conclude' | 'keepTo'> {
  /** What was sent in the session before is over. */
  replace(session: Session): void;
}

/** The session turn by turn: what each sends, and what came of it. */
function openDialogue(options: TalkOptions, errands: Errands): Dialogue {
  const { address, check, security, lateness, clock } = options;
  let session = openSession({ address, check, security });
  /** Sent again, a request may have the reply that the device made at first. */
  let askedAt = 0;
  /** A request is out, and this was read since. */
  let heard: { examined: Examined | null; length: number } | undefined;
  let replyLength = USUAL_REPLY;
  /** Drawn once for each challenge, not for each poll. */
  let nonce = randomBytes(NONCE_LENGTH);
  const onTheWire = () => errands.of(session.outstanding?.command);

  function request(): Uint8Array {
    conclude();
    if (options.isLooking()) session = forgetDevice(session);
    const now = clock.monotonic();
    const current = onTheWire();
    // Past its deadline it is not repeated either: the device may not have received it before.
    const wanted = (current && now < current.deadline ? current : errands.first(now))?.command ?? POLL;
    const next = turn(session, wanted, nonce);
    session = next.session;
    if (session.outstanding?.command.kind === 'CHLNG') nonce = randomBytes(NONCE_LENGTH);
    if (session.outstanding?.sent === 1) askedAt = now;
    heard = { examined: null, length: 0 };
    const errand = onTheWire();
    if (errand) errand.sent = true;
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
    const errand = onTheWire();
    const credible = examined && lateness.credible(address, examined);
    if (!credible || !hasSpoken(credible)) lateness.missed(address, isAnsweredInClear(session.outstanding));
    // No key is sent where two devices may answer, even if a late reply would explain what was heard.
    const isPairing = session.options.security.secure === 'pairing';
    const settled = settle(session, isPairing ? examined : credible);
    session = settled.session;
    if (errand && !isOwn) errands.finish(errand, settled.outcome);
    for (const effect of settled.effects) options.effect(effect, askedAt);
    const answered = (examined?.answer ?? null) !== null;
    options.turned(answered, !answered && length > 0);
  }

  /** The bus has one at a time, and asks for what differs when the request is made. */
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
    session: () => session,
    exchange: () => exchange,
    conclude,
    replace(next) {
      conclude();
      errands.abandonSent();
      session = next;
    },
    keepTo(next) {
      session = { ...session, options: { ...session.options, security: next } };
    },
  };
}

interface Turning extends Pick<Talk, 'exchange' | 'conclude'> {
  /** There is no session, and will be none for some time. */
  isCoolingDown(): boolean;
}

/** Until the errand is settled, by turns of its own or of polls in between. */
function openTurns(
  { bus, clock, isGone }: Pick<TalkOptions, 'bus' | 'clock' | 'isGone'>,
  { exchange, conclude, isCoolingDown }: Turning,
) {
  return async (errand: Errand, { class: orderClass, deadline, signal }: Asking): Promise<void> => {
    let isBusy = false;
    const observe = ({ outcome }: Attempt) => {
      isBusy = outcome === 'busy';
      conclude();
    };
    const order = { class: orderClass, deadline, attempts: 1, observe };
    const either = AbortSignal.any([signal, errand.over]);
    while (!errand.isSettled) {
      isBusy = false;
      try {
        await bus.exchange(exchange(), order, either);
      } catch (error) {
        if (errand.isSettled) return;
        const code = error instanceof DriverError && !signal.aborted ? error.code : undefined;
        const isLeftAlone = code === 'DEVICE_OFFLINE' && !isGone();
        // A poll that asks whether it is there carries what waits. One that is busy did nothing yet, and wants it again.
        const left = deadline - clock.monotonic();
        if ((isBusy || isLeftAlone) && left > 0)
          await clock.sleep(Math.min(LEFT_ALONE_MS, Math.ceil(left)), either).catch(() => undefined);
        else if (code === undefined || !MISSES.includes(code)) throw endedBy(errand, error, signal);
      }
      if (!errand.isSettled && isCoolingDown())
        throw endedBy(errand, new DriverError('DEVICE_OFFLINE', 'it has no secure channel'), signal);
    }
  };
}

/** A device gets its key only when it is alone at the address: twice the whole reply time is listened for others. */
function isOpenToOthers({ options, stage, claim }: Session): boolean {
  if (options.security.secure !== 'pairing' || stage.kind !== 'idRequest') return false;
  return claim === null || claim === 'contested' || claim.times < 2;
}

/** In the handshake replies have a security block. */
function isAnsweredInClear(outstanding: Session['outstanding']): boolean {
  return outstanding?.seal === null && !['CHLNG', 'SCRYPT'].includes(outstanding.command.kind);
}

/** Something came that is, or may have been, the reply: of the device, in its name, or damaged. Else it may still come. */
function hasSpoken({ answer, fault, incidents }: Examined): boolean {
  if (answer || fault === 'crc' || fault === 'framing') return true;
  return incidents.some((incident) => incident !== 'stranger');
}

function readingOf({ answer, fault }: Examined): Reading<null> {
  if (!answer) return fault ? { kind: 'more', fault } : { kind: 'more' };
  if (answer.kind === 'busy') return { kind: 'busy' };
  return answer.kind === 'nak'
    ? { kind: 'refused', reason: nakText(answer.code) }
    : { kind: 'reply', reply: null };
}
