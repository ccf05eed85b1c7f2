/** What an answer does to the session, by the stage it is in. Pure. */
import { isDeepStrictEqual } from 'node:util';
import type { Sequence } from './frame.ts';
import { type Identity, NAK, type Reply } from './messages.ts';
import type { Answer, Outstanding } from './reading.ts';
import { clientCryptogram, initialReplyMac, same, serverCryptogram, sessionKeys } from './secure-channel.ts';
import {
  challenge,
  channelOf,
  contest,
  type Effect,
  failed,
  goOnline,
  insisted,
  isQuestion,
  isSentOnce,
  keyOf,
  lose,
  restart,
  type Session,
  type Settled,
  type Stage,
  setAside,
  settledOn,
} from './state.ts';
import { afterIncidents } from './suspicion.ts';

/** The command is answered: the next number, the next link of the chain. */
export function advance(session: Session, replyMac: Uint8Array | null): Session {
  const { sequence, stage } = session;
  const next = { ...session, outstanding: null, sequence: ((sequence % 3) + 1) as Sequence };
  if (!replyMac || !('channel' in stage) || !stage.channel) return next;
  return { ...next, stage: { ...stage, channel: { ...stage.channel, replyMac } } as Stage };
}

export function replied(
  session: Session,
  outstanding: Outstanding,
  reply: Reply,
  value: number | null,
): Settled {
  const { stage, options } = session;
  const isSecure = options.security.secure !== 'off';
  const to = (next: Stage, effects: Effect[] = []): Settled => ({
    session: { ...session, stage: next },
    effects,
    outcome: { kind: 'answered', reply },
  });
  switch (stage.kind) {
    case 'identify':
      if (reply.kind !== 'PDID') break;
      if (options.security.secure === 'pairing') return claimed(session, reply);
      return isSecure
        ? to({ kind: 'capabilities' }, [{ kind: 'identity', identity: reply.identity, isProven: false }])
        : identified(session, { kind: 'capabilities' }, reply);
    case 'capabilities': {
      if (reply.kind !== 'PDCAP') break;
      const { capabilities } = reply;
      const effects: Effect[] = [{ kind: 'capabilities', capabilities, isProven: !isSecure }];
      const next = afterCapabilities(session);
      return { ...next, effects: [...effects, ...next.effects] };
    }
    case 'challenge':
      return challenged(session, outstanding, reply, value);
    case 'prove':
      return proved(session, stage, outstanding, reply);
    case 'vouch':
      if (reply.kind !== 'PDID') break;
      return isClaimant(session, reply.identity)
        ? to({ kind: 'keyset', channel: stage.channel })
        : contest(session);
    case 'keyset':
      return { ...to({ kind: 'challenge', base: 'own' }), session: restart({ ...session, identity: null }) };
    case 'confirm': {
      if (reply.kind !== 'PDID') break;
      const known = identified(session, stage, reply);
      const online = goOnline(known.session, stage.channel);
      return { ...online, effects: [...known.effects, ...online.effects] };
    }
    case 'barred':
      return waited(session, stage);
    case 'online':
      return told(session, outstanding, reply);
  }
  return setAside(session, outstanding, { kind: 'nonsense' });
}

/** So often the same device must have answered, before any is given a key. Two that take turns are found out by then. */
const CLAIMS = 8;

function isClaimant({ claim }: Session, identity: Identity): boolean {
  return claim !== null && claim !== 'contested' && isDeepStrictEqual(claim.identity, identity);
}

function claimed(session: Session, reply: Reply & { kind: 'PDID' }): Settled {
  const { identity } = reply;
  const { claim } = session;
  if (claim !== null && !isClaimant(session, identity)) return contest(session);
  const times = (claim === null || claim === 'contested' ? 0 : claim.times) + 1;
  const stage: Stage = { kind: times < CLAIMS ? 'identify' : 'capabilities' };
  return {
    session: { ...session, stage, claim: { identity, times } },
    effects: [{ kind: 'identity', identity, isProven: false }],
    outcome: { kind: 'answered', reply },
  };
}

function waited(session: Session, { turnsLeft }: Stage & { kind: 'barred' }): Settled {
  const isOver = turnsLeft <= 1 && session.claim !== 'contested';
  const after: Stage = session.options.security.secure === 'off' ? { kind: 'identify' } : challenge(session);
  const stage: Stage = isOver ? after : { kind: 'barred', turnsLeft: turnsLeft - 1 };
  return { session: { ...session, stage }, effects: [], outcome: { kind: 'again' } };
}

function afterCapabilities(session: Session): Settled {
  if (session.options.security.secure === 'off') return goOnline(session, null);
  return { session: { ...session, stage: challenge(session) }, effects: [], outcome: { kind: 'again' } };
}

function identified(session: Session, stage: Stage, reply: Reply & { kind: 'PDID' }): Settled {
  const { identity } = reply;
  return {
    session: { ...session, stage, identity },
    effects: [{ kind: 'identity', identity, isProven: true }],
    outcome: { kind: 'answered', reply },
  };
}

function challenged(session: Session, outstanding: Outstanding, reply: Reply, value: number | null): Settled {
  const { command } = outstanding;
  const { stage, options } = session;
  if (stage.kind !== 'challenge' || command.kind !== 'CHLNG' || options.security.secure === 'off')
    return setAside(restart(session), null, { kind: 'again' });
  if (reply.kind !== 'CCRYPT') return failed(session, 'downgrade');
  if (isToEarlierChallenge(session, outstanding, command.nonce, reply))
    return stillOutstanding(session, outstanding);
  const { base } = stage;
  // It names the key it used: the one that everybody knows, where another was asked for, is an attempt to get less.
  if (base !== 'default' && value !== 1) return failed(session, 'downgrade');
  if (base === 'default' && value !== 0)
    return outstanding.earlier > 0
      ? lose(session, outstanding, 'an answer may be to an earlier challenge')
      : insisted(session);
  const keys = sessionKeys(keyOf(options.security, base), command.nonce);
  if (!same(clientCryptogram(keys, command.nonce, reply.nonce), reply.cryptogram))
    return failed(session, 'wrongKey');
  const cryptogram = serverCryptogram(keys, command.nonce, reply.nonce);
  return {
    session: { ...session, stage: { kind: 'prove', base, keys, cryptogram } },
    effects: [],
    outcome: { kind: 'again' },
  };
}

/** The reply is still to come: the same bytes again, as the replies to a new handshake would be late in the same way. */
function stillOutstanding(session: Session, outstanding: Outstanding): Settled {
  return {
    session: { ...session, outstanding, sequence: outstanding.sequence },
    effects: [],
    outcome: { kind: 'again' },
  };
}

/** The cryptogram proves it, and the key: a late reply is no sign of a wrong one. */
function isToEarlierChallenge(
  { challenges }: Session,
  { earlier }: Outstanding,
  nonce: Uint8Array,
  reply: Reply & { kind: 'CCRYPT' },
): boolean {
  if (earlier === 0) return false;
  return challenges.some(
    (sent) =>
      !same(sent.nonce, nonce) &&
      same(clientCryptogram(sessionKeys(sent.key, sent.nonce), sent.nonce, reply.nonce), reply.cryptogram),
  );
}

/** What the security block says of the outcome is not asked: makers differ in it. R-MAC-I proves it. */
function proved(
  session: Session,
  stage: Stage & { kind: 'prove' },
  outstanding: Outstanding,
  reply: Reply,
): Settled {
  const { keys, cryptogram, base } = stage;
  const replyMac = initialReplyMac(keys, cryptogram);
  if (reply.kind !== 'RMAC_I' || !same(replyMac, reply.replyMac)) {
    // The device has proved the key to this challenge; what it says now may be to an earlier handshake.
    if (!mayBeLate(session, outstanding)) return failed(session, 'wrongKey');
    return stillOutstanding({ ...session, excused: session.excused + 1 }, outstanding);
  }
  const channel = { keys, replyMac };
  if (base === 'default')
    return {
      session: { ...session, stage: { kind: 'vouch', channel } },
      effects: [],
      outcome: { kind: 'again' },
    };
  const settled = settledOn(session, base);
  if (settled.identity) return goOnline(settled, channel);
  return {
    session: { ...settled, stage: { kind: 'confirm', channel } },
    effects: [],
    outcome: { kind: 'again' },
  };
}

function told(session: Session, outstanding: Outstanding, reply: Reply): Settled {
  const settled = setAside(session, outstanding, { kind: 'answered', reply });
  if (reply.kind === 'ACK') return settled;
  if (reply.kind === 'PDID') {
    const effect: Effect = { kind: 'identity', identity: reply.identity, isProven: true };
    const identity = reply.identity;
    return { ...settled, session: { ...settled.session, identity }, effects: [effect] };
  }
  if (reply.kind === 'PDCAP')
    return {
      ...settled,
      effects: [{ kind: 'capabilities', capabilities: reply.capabilities, isProven: true }],
    };
  return { ...settled, effects: [{ kind: 'told', reply }] };
}

type Nak = Answer & { kind: 'nak' };
/** Handshakes that end with a refusal that a power cut explains, before it is told. */
const UNEXPLAINED = 3;
/** Refusals in handshakes that lateness excuses before a session stands; twice as many as replies can be owed. */
const EXCUSED_MAX = 16;
/**
 * A device that was asked twice may answer to the first request. A peer that swallows replies could excuse each failure
 * so: what lateness excuses is bounded.
 */
function mayBeLate({ excused }: Session, { earlier }: Outstanding): boolean {
  return earlier > 0 && excused < EXCUSED_MAX;
}

/** What a device says that knows nothing of the session, or of the count. */
const LOST: readonly number[] = [NAK.sequence, NAK.securityBlock, NAK.securityRequired];

export function refused(
  session: Session,
  outstanding: Outstanding,
  nak: Nak,
  replyMac: Uint8Array | null,
): Settled {
  const { stage, options } = session;
  const again: Omit<Settled, 'session'> = { effects: [], outcome: { kind: 'again' } };
  // It did not understand what came: the same bytes again.
  if (nak.code === NAK.check && !replyMac) return { session, ...again };
  const isSecure = options.security.secure !== 'off';
  switch (stage.kind) {
    case 'identify':
      if (nak.code !== NAK.securityRequired && nak.code !== NAK.securityBlock)
        return { session: nak.code === NAK.sequence ? restart(session) : advance(session, null), ...again };
      if (!isSecure) return failed(session, 'securityRequired');
      return { session: { ...advance(session, null), stage: challenge(session) }, ...again };
    case 'capabilities':
      return nak.code === NAK.sequence
        ? lose(session, outstanding, 'lost count')
        : afterCapabilities(advance(session, null));
    case 'challenge':
    case 'prove': {
      const isExplained = stage.kind === 'prove' ? LOST.includes(nak.code) : nak.code === NAK.sequence;
      const isExcused = mayBeLate(session, outstanding);
      const excused = session.excused + (isExcused ? 1 : 0);
      const failures = session.failures + (isExcused ? 0 : 1);
      if (isExcused || (isExplained && failures < UNEXPLAINED))
        return {
          ...lose(session, outstanding, 'the handshake was refused'),
          session: restart({ ...session, failures, excused }),
        };
      if (stage.kind === 'challenge' && stage.isKeyed && nak.code === NAK.securityBlock)
        return insisted(session);
      return failed(session, stage.kind === 'prove' ? 'wrongKey' : 'downgrade');
    }
    case 'vouch':
    case 'keyset':
      return nak.isProven
        ? failed({ ...session, gaveKey: false }, 'keyRefused')
        : lose(session, outstanding, 'the session was lost');
    case 'confirm':
      return lose(session, outstanding, 'the device does not say who it is');
    case 'barred':
      return waited(advance(session, null), stage);
    case 'online':
      return refusedOnline(session, outstanding, nak, replyMac);
  }
}

function refusedOnline(
  session: Session,
  outstanding: Outstanding,
  { code, isProven }: Nak,
  replyMac: Uint8Array | null,
): Settled {
  const { command, earlier } = outstanding;
  const isCertain = channelOf(session) !== null || earlier === 0 || isQuestion(command);
  if (isProven && !LOST.includes(code))
    return isCertain
      ? setAside(advance(session, replyMac), outstanding, { kind: 'refused', code })
      : lose(session, outstanding, `NAK ${code} to a command or to a request before it`);
  if (!channelOf(session)) {
    if (code !== NAK.sequence) return failed(session, 'securityRequired');
    const lost = lose(session, outstanding, 'lost count');
    // Sent once and refused is not done. After a request that was not answered the refusal may be of that one.
    const mayRepeat = isCertain && !isQuestion(command) && !isSentOnce(command, false);
    return mayRepeat ? { ...lost, outcome: { kind: 'again' } } : lost;
  }
  const { suspicions, effects } = isProven
    ? { suspicions: session.suspicions, effects: [] }
    : afterIncidents(session.suspicions, [earlier > 0 ? 'lostLate' : 'lost']);
  const lost = lose({ ...session, suspicions }, outstanding, `the session was lost (NAK ${code})`);
  return { ...lost, effects: [...effects, ...lost.effects] };
}
