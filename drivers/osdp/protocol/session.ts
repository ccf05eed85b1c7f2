/**
 * The session with one device as the panel (ACU) sees it, from the first osdp_ID to polling inside a secure channel: every
 * state and every transition. Pure: each function takes a session and gives the next one. transmission.ts says what is on the
 * wire meanwhile, and what is sent again.
 *
 * Numbers of osdp_NAK are those of SIA OSDP 2.2, 7.3. The handshake is annex D: osdp_CHLNG and osdp_CCRYPT, then osdp_SCRYPT
 * and osdp_RMAC_I. In brackets the name that libosdp has for a state; idCheck and idConfirm are ours. With `required`, what a
 * device says in clear text is hearsay: its identity counts once it is said inside the session.
 *
 * | state (libosdp)              | sends       | reply: next state                       | NAK: next state                     |
 * |------------------------------|-------------|-----------------------------------------|-------------------------------------|
 * | idRequest (IDREQ)            | osdp_ID     | PDID: capabilities (pairing: after 8)   | 4: again from 0 · 5, 6: challenge   |
 * |                              |             |                                         |   (off: cooldown) · else: again     |
 * | capabilities (CAPDET)        | osdp_CAP    | PDCAP: challenge (off: online)          | 4: restart · else: as PDCAP         |
 * | challenge (SC_CHLNG)         | osdp_CHLNG  | CCRYPT, good: serverCryptogram          | 4, at most twice: restart           |
 * |                              |             |   else: failed                          |   else: failed                      |
 * | serverCryptogram (SC_SCRYPT) | osdp_SCRYPT | RMAC_I, good: idConfirm, or online when | 4, 5, 6, at most twice: restart     |
 * |                              |             |   known · SCBK-D: idCheck · else: failed|   else: failed                      |
 * | idCheck, under SCBK-D        | osdp_ID     | the same PDID: keySet · another:        | signed: failed · else: restart      |
 * |                              |             |   cooldown (two devices)                |                                     |
 * | keySet (SET_SCBK)            | osdp_KEYSET | ACK: idRequest, from number 0           | signed: failed · else: restart      |
 * | idConfirm, under the SCBK    | osdp_ID     | PDID: online                            | restart                             |
 * | online (ONLINE)              | commands,   | online                                  | signed, a refusal: online           |
 * |                              | osdp_POLL   |                                         |   off, 5, 6: failed · else: restart |
 * | cooldown (OFFLINE)           | osdp_ID     | after so many exchanges: challenge (off:| as a reply                          |
 * |                              |             |   idRequest); two devices: never        |                                     |
 *
 * restart: challenge where the device has proved who it is, else idRequest; a cooldown goes on. failed: the handshake once
 * more, with the other key where there is one; while pairing with SCBK-D; then cooldown. No answer changes nothing but for a
 * command that closes a relay in clear text, and after four transmissions: restart. A device that was silent for long:
 * idRequest.
 *
 * Steps of state.ts: `again`, another exchange, before which nothing is known of the command that is wanted · `advance`, the next
 * number · `fromZero`, a state from number 0 · `lose`, restart, and a command may have been carried out · `setAside`, the command
 * has its outcome. `outstanding.earlier`: requests before this one that were not answered; the answer may be to one of those, which
 * excuses a refusal (`excused`). Alarms are raised and lowered in alarms.ts.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Alarm, afterFailure, afterHandshake, afterIncidents } from './alarms.ts';
import { type Command, type Identity, NAK, type Reply } from './messages.ts';
import {
  type Channel,
  clientCryptogram,
  initialReplyMac,
  same,
  serverCryptogram,
  sessionKeys,
} from './secure-channel.ts';
import {
  type Answer,
  advance,
  again,
  challengeOf,
  channelOf,
  type Effect,
  fromZero,
  isQuestion,
  isSentOnce,
  keyOf,
  lose,
  mayRepeatUnchecked,
  type Outstanding,
  pendingOf,
  restart,
  type Session,
  type Settled,
  type Stage,
  setAside,
  settledOn,
} from './state.ts';

type Nak = Answer & { kind: 'nak' };

/** So often the same device must have answered, before any is given a key. Two that take turns are found out by then. */
const CLAIMS = 8;
/** A device with a wrong key costs three exchanges each time it is tried. */
const COOLDOWN_EXCHANGES_MAX = 32;
/** So many handshakes in a row may end with a refusal that a power cut explains; the last of them raises the alarm. */
const EXPLAINED_REFUSALS = 3;
/** Refusals in handshakes that lateness excuses before a session stands; twice as many as replies can be owed. */
const EXCUSED_MAX = 16;
const STATES: readonly Command[] = [{ kind: 'LSTAT' }, { kind: 'ISTAT' }, { kind: 'OSTAT' }];
const PROVEN_STATES: readonly Command[] = [{ kind: 'ID' }, { kind: 'CAP' }, ...STATES];
/** What a device says that knows nothing of the session, or of the count. */
const LOST: readonly number[] = [NAK.sequence, NAK.securityBlock, NAK.securityRequired];

/** A reply, of a session that was advanced. `value` of its security block. */
export function replied(
  session: Session,
  outstanding: Outstanding,
  reply: Reply,
  value: number | null,
): Settled {
  const { stage, options } = session;
  const isSecure = options.security.secure !== 'off';
  switch (stage.kind) {
    case 'idRequest':
      if (reply.kind !== 'PDID') break;
      if (options.security.secure === 'pairing') return claimed(session, reply.identity);
      return again(
        {
          ...session,
          stage: { kind: 'capabilities' },
          identity: isSecure ? session.identity : reply.identity,
        },
        [{ kind: 'identity', identity: reply.identity, isProven: !isSecure }],
      );
    case 'capabilities': {
      if (reply.kind !== 'PDCAP') break;
      const { capabilities } = reply;
      const next = afterCapabilities(session);
      return {
        ...next,
        effects: [{ kind: 'capabilities', capabilities, isProven: !isSecure }, ...next.effects],
      };
    }
    case 'challenge':
      return challenged(session, outstanding, reply, value);
    case 'serverCryptogram':
      return proved(session, stage, outstanding, reply);
    case 'idCheck':
      if (reply.kind !== 'PDID') break;
      return isClaimant(session, reply.identity)
        ? again({ ...session, stage: { kind: 'keySet', channel: stage.channel } })
        : contest(session);
    case 'keySet':
      return again(restart({ ...session, identity: null }));
    case 'idConfirm': {
      if (reply.kind !== 'PDID') break;
      const { identity } = reply;
      const online = goOnline({ ...session, identity }, stage.channel);
      return { ...online, effects: [{ kind: 'identity', identity, isProven: true }, ...online.effects] };
    }
    case 'cooldown':
      return cooledDown(session, stage);
    case 'online':
      return repliedOnline(session, outstanding, reply);
  }
  return setAside(session, outstanding, { kind: 'nonsense' });
}

/** A NAK. */
export function refused(
  session: Session,
  outstanding: Outstanding,
  nak: Nak,
  replyMac: Uint8Array | null,
): Settled {
  const { stage, options } = session;
  // It did not understand what came: the same bytes again.
  if (nak.code === NAK.check && !replyMac && mayRepeatUnchecked(outstanding)) return again(session);
  switch (stage.kind) {
    case 'idRequest':
      if (nak.code === NAK.sequence) return again(restart(session));
      if (nak.code !== NAK.securityRequired && nak.code !== NAK.securityBlock)
        return again(advance(session, null));
      if (options.security.secure === 'off') return failed(session, 'securityRequired');
      return again({ ...advance(session, null), stage: challengeOf(session) });
    case 'capabilities':
      return nak.code === NAK.sequence
        ? lose(session, outstanding, 'lost count')
        : afterCapabilities(advance(session, null));
    case 'challenge':
    case 'serverCryptogram':
      return refusedHandshake(session, stage, outstanding, nak);
    case 'idCheck':
    case 'keySet':
      return nak.isProven
        ? failed({ ...session, gaveKey: false }, 'keyRefused')
        : lose(session, outstanding, 'the session was lost');
    case 'idConfirm':
      return lose(session, outstanding, 'the device does not say who it is');
    case 'cooldown':
      return cooledDown(advance(session, null), stage);
    case 'online':
      return refusedOnline(session, outstanding, nak, replyMac);
  }
}

function isClaimant({ claim }: Session, identity: Identity): boolean {
  return claim !== null && claim !== 'contested' && isDeepStrictEqual(claim.identity, identity);
}

/** While pairing: the device says who it is, in clear text. */
function claimed(session: Session, identity: Identity): Settled {
  const { claim } = session;
  if (claim !== null && !isClaimant(session, identity)) return contest(session);
  const times = (claim === null || claim === 'contested' ? 0 : claim.times) + 1;
  const stage: Stage = { kind: times < CLAIMS ? 'idRequest' : 'capabilities' };
  return again({ ...session, stage, claim: { identity, times } }, [
    { kind: 'identity', identity, isProven: false },
  ]);
}

function cooledDown(session: Session, { exchangesLeft }: Stage & { kind: 'cooldown' }): Settled {
  if (exchangesLeft > 1 || session.claim === 'contested')
    return again({ ...session, stage: { kind: 'cooldown', exchangesLeft: exchangesLeft - 1 } });
  const isClearText = session.options.security.secure === 'off';
  return again({ ...session, stage: isClearText ? { kind: 'idRequest' } : challengeOf(session) });
}

function afterCapabilities(session: Session): Settled {
  if (session.options.security.secure === 'off') return goOnline(session, null);
  return again({ ...session, stage: challengeOf(session) });
}

/** osdp_CCRYPT: the device proves the key (annex D.3). */
function challenged(session: Session, outstanding: Outstanding, reply: Reply, value: number | null): Settled {
  const { command } = outstanding;
  const { stage, options } = session;
  if (stage.kind !== 'challenge' || command.kind !== 'CHLNG' || options.security.secure === 'off')
    return again(restart(session));
  if (reply.kind !== 'CCRYPT') return failed(session, 'downgrade');
  if (isToEarlierChallenge(session, outstanding, command.nonce, reply))
    return stillOutstanding(session, outstanding);
  const { base } = stage;
  // It names the key it used: SCBK-D, where another was asked for, is an attempt to get less.
  if (base !== 'default' && value !== 1) return failed(session, 'downgrade');
  if (base === 'default' && value !== 0)
    return outstanding.earlier > 0
      ? lose(session, outstanding, 'an answer may be to an earlier challenge')
      : insisted(session);
  const keys = sessionKeys(keyOf(options.security, base), command.nonce);
  if (!same(clientCryptogram(keys, command.nonce, reply.nonce), reply.cryptogram))
    return failed(session, 'wrongKey');
  const cryptogram = serverCryptogram(keys, command.nonce, reply.nonce);
  return again({ ...session, stage: { kind: 'serverCryptogram', base, keys, cryptogram } });
}

/** The reply is still to come: the same bytes again, as the replies to a new handshake would be late in the same way. */
function stillOutstanding(session: Session, outstanding: Outstanding): Settled {
  return again({ ...session, outstanding, sequence: outstanding.sequence });
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

/** osdp_RMAC_I. What its security block says of the outcome is not asked: makers differ in it. R-MAC-I proves it. */
function proved(
  session: Session,
  { keys, cryptogram, base }: Stage & { kind: 'serverCryptogram' },
  outstanding: Outstanding,
  reply: Reply,
): Settled {
  const replyMac = initialReplyMac(keys, cryptogram);
  if (reply.kind !== 'RMAC_I' || !same(replyMac, reply.replyMac)) {
    // The device has proved the key to this challenge; what it says now may be to an earlier handshake.
    if (!mayBeLate(session, outstanding)) return failed(session, 'wrongKey');
    return stillOutstanding({ ...session, excused: session.excused + 1 }, outstanding);
  }
  const channel = { keys, replyMac };
  if (base === 'default') return again({ ...session, stage: { kind: 'idCheck', channel } });
  const settled = settledOn(session, base);
  if (settled.identity) return goOnline(settled, channel);
  return again({ ...settled, stage: { kind: 'idConfirm', channel } });
}

/**
 * A device that was asked twice may answer to the first request. A peer that swallows replies could excuse each failure
 * so: what lateness excuses is bounded.
 */
function mayBeLate({ excused }: Session, { earlier }: Outstanding): boolean {
  return earlier > 0 && excused < EXCUSED_MAX;
}

function refusedHandshake(
  session: Session,
  stage: Stage & { kind: 'challenge' | 'serverCryptogram' },
  outstanding: Outstanding,
  { code }: Nak,
): Settled {
  const isExplained = stage.kind === 'challenge' ? code === NAK.sequence : LOST.includes(code);
  const isExcused = mayBeLate(session, outstanding);
  const excused = session.excused + (isExcused ? 1 : 0);
  const failures = session.failures + (isExcused ? 0 : 1);
  if (isExcused || (isExplained && failures < EXPLAINED_REFUSALS)) {
    const lost = lose(session, outstanding, 'the handshake was refused');
    return { ...lost, session: restart({ ...session, failures, excused }) };
  }
  if (stage.kind === 'challenge' && stage.isKeyed && code === NAK.securityBlock) return insisted(session);
  return failed(session, stage.kind === 'challenge' ? 'downgrade' : 'wrongKey');
}

function goOnline(session: Session, channel: Channel | null): Settled {
  const { levels: alarmLevels, effects: lowered } = afterHandshake(session.alarmLevels);
  const stage: Stage = { kind: 'online', channel, agenda: channel ? PROVEN_STATES : STATES };
  const effects: Effect[] = [...lowered, { kind: 'online' }];
  if (session.options.security.secure === 'pairing') effects.push({ kind: 'paired' });
  return again({ ...session, stage, alarmLevels, failures: 0, excused: 0 }, effects);
}

function repliedOnline(session: Session, outstanding: Outstanding, reply: Reply): Settled {
  const settled = setAside(session, outstanding, { kind: 'answered', reply });
  if (reply.kind === 'ACK')
    return outstanding.command.kind === 'POLL' ? { ...settled, effects: [{ kind: 'quiet' }] } : settled;
  if (reply.kind === 'PDID') {
    const { identity } = reply;
    const effects: Effect[] = [{ kind: 'identity', identity, isProven: true }];
    return { ...settled, session: { ...settled.session, identity }, effects };
  }
  if (reply.kind === 'PDCAP') {
    const { capabilities } = reply;
    return { ...settled, effects: [{ kind: 'capabilities', capabilities, isProven: true }] };
  }
  return { ...settled, effects: [{ kind: 'reported', reply }] };
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
  const { levels: alarmLevels, effects } = isProven
    ? { levels: session.alarmLevels, effects: [] }
    : afterIncidents(session.alarmLevels, [earlier > 0 ? 'lostLate' : 'lost']);
  const lost = lose({ ...session, alarmLevels }, outstanding, `the session was lost (NAK ${code})`);
  return { ...lost, effects: [...effects, ...lost.effects] };
}

/**
 * No session, for this reason. While pairing, a device that has not got its key yet is asked under SCBK-D. Once may be an
 * accident, or somebody between: each key is tried again, and the alarm is raised when it is so again.
 */
function failed(session: Session, alarm: Alarm): Settled {
  const { stage, options, failures } = session;
  const { security } = options;
  if (security.secure === 'pairing' && 'base' in stage && stage.base === 'own')
    return again(fromZero(session, { kind: 'challenge', base: 'default', isKeyed: alarm === 'wrongKey' }));
  const keys = pendingOf(session) ? 2 : 1;
  const next = { ...session, failures: failures + 1 };
  if (failures < 2 * keys - 1 && 'base' in stage) return again(fromZero(next, challengeOf(next)));
  if (security.secure === 'required' && security.isTentative)
    return again(coolingDown(session), [{ kind: 'unproven' }]);
  const exchangesLeft = Math.min(2 ** (Math.floor(failures / keys) + 1), COOLDOWN_EXCHANGES_MAX);
  const { levels: alarmLevels, effects } = afterFailure(session.alarmLevels, alarm);
  return again(coolingDown({ ...next, alarmLevels }, exchangesLeft), effects);
}

const coolingDown = (session: Session, exchangesLeft = COOLDOWN_EXCHANGES_MAX): Session =>
  fromZero(session, { kind: 'cooldown', exchangesLeft });

/** While pairing: the device refuses SCBK-D for a key of its own. That is more security, and no alarm. */
const insisted = (session: Session): Settled => again(coolingDown(session), [{ kind: 'keyed' }]);

/** Two devices answer here, and it is not known which one would take the key. */
export function contest(session: Session): Settled {
  const { levels: alarmLevels, effects } = afterFailure(session.alarmLevels, 'duplicateAddress');
  const cooling = coolingDown({ ...session, alarmLevels, claim: 'contested' });
  return again(cooling, [...effects, { kind: 'contested' }]);
}
