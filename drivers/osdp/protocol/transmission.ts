/**
 * The exchanges of a session (session.ts): what is sent in each, what is sent again, and which replies are still due. Pure.
 *
 * A bus has one exchange at a time; each is `nextRequest` (what to send), `examine` (reading.ts: what came), `settle`. What is
 * unanswered is sent again, the same bytes under the same number, before anything else is: a device that has done it
 * repeats its reply, so nothing is done twice and the chain of MACs holds (SIA OSDP 2.2, 5.9). Where that must not be,
 * for a door is not to open late, the count starts again at 0, and with it the session.
 */
import { encodeFrame, SCS } from './frame.ts';
import { type Command, encodeCommand } from './messages.ts';
import { afterCleanAnswer, afterIncidents, type Examined, type Outstanding } from './reading.ts';
import { sealCommand } from './secure-channel.ts';
import { contest, refused, replied } from './session.ts';
import {
  advance,
  channelOf,
  type Effect,
  isQuestion,
  isSentOnce,
  keyOf,
  lose,
  ownCommand,
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
