/**
 * One device as the panel sees it, from the first ID to polling inside a secure channel. Pure: each function takes a
 * session and gives the next one, with what is to be sent or told.
 *
 *     identify → capabilities → [challenge → prove → [vouch → keyset → challenge → prove] → confirm] → online
 *
 * A bus has one exchange at a time; each is `turn` (what to send), `examine` (reading.ts: what came), `settle`. What is
 * unanswered is sent again, the same bytes under the same number, before anything else is: a device that has done it
 * repeats its reply, so nothing is done twice and the chain of MACs holds (SIA OSDP 2.2, 5.9). Where that must not be,
 * for a door is not to open late, the count starts again at 0, and with it the session.
 *
 * With `required`, what a device says in clear text is hearsay: its identity counts once it is said inside the session.
 */

import { advance, refused, replied } from './answers.ts';
import { encodeFrame, SCS } from './frame.ts';
import { type Command, encodeCommand } from './messages.ts';
import type { Examined, Outstanding } from './reading.ts';
import { sealCommand } from './secure-channel.ts';
import {
  channelOf,
  contest,
  type Effect,
  isQuestion,
  isSentOnce,
  keyOf,
  lose,
  restart,
  type Session,
  type SessionOptions,
  type Settled,
  type Stage,
  setAside,
} from './state.ts';
import { afterCleanAnswer, afterIncidents } from './suspicion.ts';

export interface Turn {
  session: Session;
  bytes: Uint8Array;
}

/** How often a question is sent, over all turns, before the session is started again. */
const SENT_MAX = 4;
/** More than a device, or a device server between, keeps back and sends all the same. */
const OWED_MAX = 8;

export function openSession(options: SessionOptions): Session {
  return {
    options,
    stage: { kind: 'identify' },
    sequence: 0,
    outstanding: null,
    owed: 0,
    inTime: 0,
    identity: null,
    claim: null,
    gaveKey: false,
    failures: 0,
    excused: 0,
    challenges: [],
    suspicions: {},
  };
}

/** The device was silent for long, so it may be another one. */
export function forgetDevice(session: Session): Session {
  return { ...session, stage: { kind: 'identify' }, sequence: 0, outstanding: null, identity: null };
}

/**
 * What to send now that it is this device's turn. `wanted` is sent when nothing comes before it (`outstanding.isOwn`);
 * the same object again is the same command again. `nonce`: eight random bytes, for the case that they are needed.
 */
export function turn(session: Session, wanted: Command, nonce: Uint8Array): Turn {
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
    return turn(restart(session), wanted, nonce);
  }
  const own = ownStep(session, wanted, nonce);
  return send(session, own ?? wanted, own !== undefined);
}

/** undefined: the command that is wanted may be sent. */
function ownStep({ stage, options }: Session, wanted: Command, nonce: Uint8Array): Command | undefined {
  switch (stage.kind) {
    case 'identify':
    case 'vouch':
    case 'confirm':
    case 'barred':
      return { kind: 'ID' };
    case 'capabilities':
      return { kind: 'CAP' };
    case 'challenge':
      return { kind: 'CHLNG', nonce };
    case 'prove':
      return { kind: 'SCRYPT', cryptogram: stage.cryptogram };
    case 'keyset':
      return options.security.secure === 'off' ? undefined : { kind: 'KEYSET', key: options.security.key };
    case 'online':
      return wanted.kind === 'POLL' ? stage.agenda[0] : undefined;
  }
}

function send(session: Session, command: Command, isOwn: boolean): Turn {
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
  if (stage.kind !== 'challenge' && stage.kind !== 'prove') return null;
  const type = stage.kind === 'challenge' ? SCS.challenge : SCS.serverCryptogram;
  return { type, value: stage.base === 'default' ? 0 : 1 };
}

/** What came, as examined; null: nothing did. */
export function settle(before: Session, examined: Examined | null): Settled {
  const { outstanding } = before;
  if (!outstanding) return { session: before, effects: [], outcome: { kind: 'silent' } };
  const incidents = examined?.incidents ?? [];
  const suspected = afterIncidents(before.suspicions, incidents);
  const session = {
    ...before,
    ...debtAfter(before, outstanding, examined),
    suspicions: suspected.suspicions,
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
  const cleaned = isClean ? afterCleanAnswer(settled.session.suspicions) : undefined;
  return {
    session: cleaned ? { ...settled.session, suspicions: cleaned.suspicions } : settled.session,
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
