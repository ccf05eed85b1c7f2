/**
 * The exchanges of a session (session.ts): what is sent in each and what is sent again, which of what came is the answer, and which
 * replies are still due. Pure.
 *
 * A bus has one exchange at a time; each is `nextRequest` (what to send), `examine` (what came), `settle`. What is
 * unanswered is sent again, the same bytes under the same number, before anything else is: a device that has done it
 * repeats its reply, so nothing is done twice and the chain of MACs holds (SIA OSDP 2.2, 5.9). Where that must not be,
 * for a door is not to open late, the count starts again at 0, and with it the session.
 */
import type { Fault } from '../../bus/exchange.ts';
import { afterCleanAnswer, afterIncidents, type Incident } from './alarms.ts';
import { type Check, carriesMac, encodeFrame, type Frame, SCS, scan } from './frame.ts';
import {
  type Command,
  type CommandKind,
  decodeReply,
  encodeCommand,
  NAK,
  type ReplyKind,
} from './messages.ts';
import { openReply, sealCommand } from './secure-channel.ts';
import { contest, refused, replied } from './session.ts';
import {
  type Answer,
  advance,
  channelOf,
  type Effect,
  isQuestion,
  isSentOnce,
  keyOf,
  lose,
  type Outstanding,
  restart,
  type Session,
  type Settled,
  type Stage,
  setAside,
} from './state.ts';

export interface NextRequest {
  session: Session;
  bytes: Uint8Array;
}

/** How often a question is sent, over all exchanges, before the session is started again. */
const SENT_MAX = 4;
/** More than a device, or a device server between, keeps back and sends all the same. */
const OWED_MAX = 8;

/**
 * What to send in this exchange. `wanted` is sent when nothing comes before it (`outstanding.isOwn`);
 * the same object again is the same command again. `nonce`: eight random bytes, for the case that they are needed.
 */
export function nextRequest(session: Session, wanted: Command, nonce: Uint8Array): NextRequest {
  const { outstanding } = session;
  if (outstanding) {
    const { command, sent } = outstanding;
    if (isQuestion(command) ? sent < SENT_MAX : command === wanted) {
      // The caller has gone.
      const isOwn = outstanding.isOwn || command !== wanted;
      const again = { ...outstanding, isOwn, sent: sent + 1, earlier: session.owed };
      return {
        session: { ...session, outstanding: again, owed: owedMore(session) },
        bytes: outstanding.bytes,
      };
    }
    return nextRequest(restart(session), wanted, nonce);
  }
  const own = ownCommand(session, wanted, nonce);
  return send(session, own ?? wanted, own !== undefined);
}

function send(session: Session, command: Command, isOwn: boolean): NextRequest {
  const { options, stage, sequence } = session;
  const { address, check } = options;
  const frame = { address, sequence, check, ...encodeCommand(command) };
  const channel = channelOf(session);
  const sealed = channel && sealCommand(channel, frame);
  const bytes = sealed?.bytes ?? encodeFrame({ ...frame, security: handshakeBlock(stage) });
  const seal = channel && sealed ? { keys: channel.keys, commandMac: sealed.commandMac } : null;
  const outstanding: Outstanding = {
    command,
    isOwn,
    sequence,
    bytes,
    sent: 1,
    earlier: session.owed,
    seal,
  };
  const gaveKey = session.gaveKey || command.kind === 'KEYSET';
  const challenges = challengesWith(session, command);
  return { session: { ...session, outstanding, gaveKey, challenges, owed: owedMore(session) }, bytes };
}

function challengesWith({ stage, options, challenges }: Session, command: Command) {
  if (stage.kind !== 'challenge' || command.kind !== 'CHLNG') return challenges;
  const sent = { key: keyOf(options.security, stage.base), nonce: command.nonce };
  // The one that is being sent, and as many before it as replies can be owed.
  return [...challenges, sent].slice(-(OWED_MAX + 1));
}

const owedMore = ({ owed }: Session) => Math.min(owed + 1, OWED_MAX);

function handshakeBlock(stage: Stage) {
  if (stage.kind !== 'challenge' && stage.kind !== 'serverCryptogram') return null;
  const type = stage.kind === 'challenge' ? SCS.challenge : SCS.serverCryptogram;
  return { type, value: stage.base === 'default' ? 0 : 1 };
}

/** undefined: the command that is wanted may be sent. */
function ownCommand({ stage, options }: Session, wanted: Command, nonce: Uint8Array): Command | undefined {
  switch (stage.kind) {
    case 'idRequest':
    case 'idCheck':
    case 'idConfirm':
    case 'cooldown':
      return { kind: 'ID' };
    case 'capabilities':
      return { kind: 'CAP' };
    case 'challenge':
      return { kind: 'CHLNG', nonce };
    case 'serverCryptogram':
      return { kind: 'SCRYPT', cryptogram: stage.cryptogram };
    case 'keySet':
      return options.security.secure === 'off' ? undefined : { kind: 'KEYSET', key: options.security.key };
    case 'online':
      return wanted.kind === 'POLL' ? stage.agenda[0] : undefined;
  }
}

// What came, held against the command that is unanswered.

export interface Examined {
  answer: Answer | null;
  /** R-MAC of the answer, when it is proven. */
  replyMac: Uint8Array | null;
  fault: Fault | undefined;
  incidents: Incident[];
  /** Other addresses that spoke. */
  foreignAddresses: readonly number[];
  /** Something that cannot be read came behind the answer: another device spoke, perhaps. */
  isFollowed: boolean;
  /** Proven, though under a type of security block that is not for it. */
  isOdd: boolean;
}

const POLL_REPLIES: readonly ReplyKind[] = [
  ...(['ACK', 'LSTATR', 'ISTATR', 'OSTATR', 'RSTATR', 'RAW', 'KEYPAD'] as const),
  ...(['FTSTAT', 'MFGREP', 'MFGERRR', 'OTHER'] as const),
];
const ANSWERS: Record<CommandKind, readonly ReplyKind[]> = {
  POLL: POLL_REPLIES,
  ID: ['PDID'],
  CAP: ['PDCAP'],
  LSTAT: ['LSTATR'],
  ISTAT: ['ISTATR'],
  OSTAT: ['OSTATR'],
  RSTAT: ['RSTATR'],
  OUT: ['OSTATR', 'ACK'],
  LED: ['ACK'],
  BUZ: ['ACK'],
  TEXT: ['ACK'],
  COMSET: ['COM'],
  KEYSET: ['ACK'],
  CHLNG: ['CCRYPT'],
  SCRYPT: ['RMAC_I'],
  ACURXSIZE: ['ACK'],
  KEEPACTIVE: ['ACK'],
  FILETRANSFER: ['FTSTAT'],
  MFG: ['MFGREP', 'MFGERRR', 'ACK'],
  ABORT: ['ACK'],
};

/** What a wire makes of the moment when a device lets it go, bytes. */
const GLITCH_MAX = 2;

type Judged =
  | { kind: 'answer'; answer: Answer; replyMac: Uint8Array | null; isOdd: boolean }
  | { kind: 'passed'; incident?: Incident };

const answered = (answer: Answer, replyMac: Uint8Array | null = null, isOdd = false): Judged => ({
  kind: 'answer',
  answer,
  replyMac,
  isOdd,
});
const STALE: Judged = { kind: 'passed', incident: 'stale' };

export function examine(
  { address, check }: { address: number; check: Check },
  outstanding: Outstanding,
  received: Uint8Array,
): Examined {
  const scanned = scan(received);
  const foreignAddresses: number[] = [];
  const examined: Examined = {
    answer: null,
    replyMac: null,
    incidents: [],
    foreignAddresses,
    isOdd: false,
    isFollowed: scanned.frames.length > 0 && scanned.behind > GLITCH_MAX,
    fault: scanned.fault,
  };
  let taken: Frame | undefined;
  for (const frame of scanned.frames) {
    if (!frame.isReply || frame.address !== address) {
      examined.fault = 'foreign';
      if (!frame.isReply) continue;
      examined.incidents.push('foreignAddress');
      foreignAddresses.push(frame.address);
      continue;
    }
    // A checksum lets one of 256 errors pass: it is no answer to a CRC.
    if (check === 'crc' && frame.check !== 'crc') continue;
    if (taken) {
      // Under another number it is no second answer to this question, but one to a question of before.
      if (frame.sequence !== taken.sequence) examined.incidents.push('stale');
      else if (Buffer.compare(taken.authenticated, frame.authenticated) !== 0)
        examined.incidents.push('second');
      continue;
    }
    const judged = judge(outstanding, frame);
    if (judged.kind === 'answer') {
      taken = frame;
      Object.assign(examined, { answer: judged.answer, replyMac: judged.replyMac, isOdd: judged.isOdd });
    } else {
      examined.fault = 'foreign';
      if (judged.incident) examined.incidents.push(judged.incident);
    }
  }
  return examined;
}

function judge(outstanding: Outstanding, frame: Frame): Judged {
  const { command, seal, sequence } = outstanding;
  const { security } = frame;
  if (!security) return judgeClear(outstanding, frame);
  if (!carriesMac(security.type)) {
    const expected = command.kind === 'CHLNG' ? SCS.clientCryptogram : SCS.initialRMac;
    const isHandshake = command.kind === 'CHLNG' || command.kind === 'SCRYPT';
    if (!isHandshake || security.type !== expected || frame.sequence !== sequence) return STALE;
    return answered(decoded(command, frame.code, frame.data, security.value ?? null));
  }
  if (!seal || frame.sequence !== sequence) return STALE;
  const opened = openReply(seal.keys, seal.commandMac, frame);
  if (opened.kind === 'false') return { kind: 'passed', incident: 'forged' };
  if (opened.kind === 'garbled') return answered({ kind: 'nonsense' }, opened.replyMac);
  return answered(decoded(command, frame.code, opened.data, null), opened.replyMac, opened.isOdd);
}

/** Inside a session only what a device says that has lost it, and that it is busy, may come unproven (D.1.4). */
function judgeClear({ command, sequence, seal }: Outstanding, frame: Frame): Judged {
  const reply = decodeReply(frame.code, frame.data);
  const isRestart = frame.sequence === 0;
  if (reply?.kind === 'BUSY')
    return isRestart || frame.sequence === sequence ? answered({ kind: 'busy' }) : STALE;
  if (reply?.kind === 'NAK') {
    // A device that lost count says so under its own.
    const isOurs = isRestart || frame.sequence === sequence || reply.code === NAK.sequence;
    return isOurs ? answered({ kind: 'nak', code: reply.code, isProven: !seal }) : STALE;
  }
  // Some devices drop the session with the key (D.2.2). Whether they took it, the next handshake shows.
  const isKeyTaken = command.kind === 'KEYSET' && reply?.kind === 'ACK';
  const isHandshake = command.kind === 'CHLNG' || command.kind === 'SCRYPT';
  // Such as the identity that was asked for, twice, before the handshake.
  if (frame.sequence !== sequence) return STALE;
  if ((seal && !isKeyTaken) || isHandshake) return { kind: 'passed', incident: 'clearText' };
  return answered(decoded(command, frame.code, frame.data, null));
}

function decoded(command: Command, code: number, data: Uint8Array, value: number | null): Answer {
  const reply = decodeReply(code, data);
  if (reply?.kind === 'NAK') return { kind: 'nak', code: reply.code, isProven: true };
  if (!reply || !ANSWERS[command.kind].includes(reply.kind)) return { kind: 'nonsense' };
  return { kind: 'reply', reply, value };
}

/** What came, as examined; null: nothing did. */
export function settle(before: Session, examined: Examined | null): Settled {
  const { outstanding } = before;
  if (!outstanding) return { session: before, effects: [], outcome: { kind: 'silent' } };
  const incidents = examined?.incidents ?? [];
  const suspected = afterIncidents(before.alarmLevels, incidents);
  const session = {
    ...before,
    ...debtAfter(before, outstanding, examined),
    alarmLevels: suspected.levels,
  };
  const effects: Effect[] = suspected.effects;
  const isPairing = session.options.security.secure === 'pairing' && session.stage.kind !== 'online';
  if (isPairing && incidents.includes('second')) {
    const contested = contest(session);
    return { ...contested, effects: [...effects, ...contested.effects] };
  }
  if (!examined?.answer && isSentOnce(outstanding.command, outstanding.seal !== null)) {
    const lost = lose(session, outstanding, 'an order to close a relay was not answered');
    return { ...lost, effects: [...effects, ...lost.effects] };
  }
  if (!examined?.answer || (isPairing && examined.isFollowed))
    return { session, effects, outcome: { kind: 'silent' } };
  if (examined.isOdd) effects.push({ kind: 'odd' });
  const settled = settleAnswer(session, outstanding, examined);
  const isClean = incidents.length === 0 && examined.answer.kind === 'reply';
  const cleaned = isClean ? afterCleanAnswer(settled.session.alarmLevels) : undefined;
  return {
    session: cleaned ? { ...settled.session, alarmLevels: cleaned.levels } : settled.session,
    effects: [...effects, ...settled.effects, ...(cleaned?.effects ?? [])],
    outcome: outstanding.isOwn && settled.outcome.kind !== 'unknown' ? { kind: 'again' } : settled.outcome,
  };
}

/**
 * Behind an answer that can only be to this request, those before it are not answered any more. One in clear text may be to
 * one of those: that there are none is shown by a row of answers that came in time. The answer may be to the first of
 * several transmissions.
 */
function debtAfter(
  { owed, inTime }: Session,
  { sent }: Outstanding,
  examined: Examined | null,
): Pick<Session, 'owed' | 'inTime'> {
  if (!examined?.answer) return { owed, inTime: 0 };
  const row = sent > 1 ? 0 : inTime + 1;
  const isOnlyTo = examined.replyMac !== null || row >= OWED_MAX;
  const others = Math.max(0, owed - 1);
  return { owed: isOnlyTo ? Math.min(others, sent - 1) : others, inTime: row };
}

function settleAnswer(session: Session, outstanding: Outstanding, examined: Examined): Settled {
  const { answer, replyMac } = examined;
  switch (answer?.kind) {
    case 'reply':
      return replied(advance(session, replyMac), outstanding, answer.reply, answer.value);
    case 'nak':
      return refused(session, outstanding, answer, replyMac);
    case 'nonsense':
      return setAside(advance(session, replyMac), outstanding, { kind: 'nonsense' });
    default:
      return { session, effects: [], outcome: { kind: 'again' } };
  }
}
