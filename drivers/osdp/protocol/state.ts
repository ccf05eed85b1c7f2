/** The state of a session, and the few steps that several answers lead to. Pure. */
import type { Check, Sequence } from './frame.ts';
import {
  type Capability,
  type Command,
  type Identity,
  OUTPUT,
  type OutputCode,
  type Reply,
} from './messages.ts';
import type { Outstanding } from './reading.ts';
import { type Channel, DEFAULT_KEY, type SessionKeys } from './secure-channel.ts';
import { type Alarm, type AlarmEffect, afterFailure, afterHandshake, type Suspicions } from './suspicion.ts';

/**
 * `required`: a session under `key`, or nothing. `pairing`: gives the device `key`, under the key that everybody knows
 * where it must be; only while somebody watches. `off`: clear text.
 */
export type Security =
  | { secure: 'off' }
  | {
      secure: 'required';
      key: Uint8Array;
      /** A KEYSET with this one may have reached the device: both are tried in turn until it proves one. */
      pending?: Uint8Array;
      /** Whether the device has `key` is not known: a failed handshake is no alarm, and its effect is `unproven`. */
      isTentative?: boolean;
    }
  | { secure: 'pairing'; key: Uint8Array };

export interface SessionOptions {
  address: number;
  check: Check;
  security: Security;
}

type BaseKey = 'own' | 'pending' | 'default';

/**
 * While pairing: who says to be there, and how often in a row; `contested`: more than one does, and no one is given a key
 * before the window is opened again.
 */
export type Claim = { identity: Identity; times: number } | 'contested' | null;

export interface Challenge {
  key: Uint8Array;
  nonce: Uint8Array;
}

export type Stage =
  | { kind: 'identify' }
  | { kind: 'capabilities' }
  /** `isKeyed`: the device has just used a key of its own. */
  | { kind: 'challenge'; base: BaseKey; isKeyed?: boolean }
  | { kind: 'prove'; base: BaseKey; keys: SessionKeys; cryptogram: Uint8Array }
  /** Under the key that everybody knows: is it the one that was there before? */
  | { kind: 'vouch'; channel: Channel }
  | { kind: 'keyset'; channel: Channel }
  | { kind: 'confirm'; channel: Channel }
  /** `agenda`: what is to be asked before the next POLL. */
  | { kind: 'online'; channel: Channel | null; agenda: readonly Command[] }
  /** The handshake failed: for so many turns nothing but ID, in clear text. */
  | { kind: 'barred'; turnsLeft: number };

export interface Session {
  readonly options: SessionOptions;
  readonly stage: Stage;
  /** Of the next command. */
  readonly sequence: Sequence;
  readonly outstanding: Outstanding | null;
  /** Requests that were sent, and whose replies may still come. A device answers in the order in which it was asked. */
  readonly owed: number;
  /** Answers in a row that came to the first transmission, and nothing late with them. */
  readonly inTime: number;
  /** As believed: proven, where a secure channel is required. */
  readonly identity: Identity | null;
  readonly claim: Claim;
  /** While pairing: a KEYSET was sent, and no answer says that the device has not taken it. */
  readonly gaveKey: boolean;
  /** Handshakes that failed in a row. */
  readonly failures: number;
  /** Refusals in handshakes since the last session, of which each may have been late. */
  readonly excused: number;
  /** The last challenges that were sent, as long as their replies may come late. */
  readonly challenges: readonly Challenge[];
  readonly suspicions: Suspicions;
}

export type Effect =
  | AlarmEffect
  /** `isProven` false: said in clear text where a secure channel is required, so only worth showing. */
  | { kind: 'identity'; identity: Identity; isProven: boolean }
  | { kind: 'capabilities'; capabilities: Capability[]; isProven: boolean }
  | { kind: 'online' }
  /** The device has taken its key, and has proved it. */
  | { kind: 'paired' }
  /** Two devices answer to this address: neither is given the key. */
  | { kind: 'contested' }
  /** While pairing: the device insists on a key that it has already. */
  | { kind: 'keyed' }
  /** The device does not have the tentative key. */
  | { kind: 'unproven' }
  /** Why the session begins again. */
  | { kind: 'restarted'; reason: string }
  /** States and events, whether asked for or brought by a POLL. */
  | { kind: 'told'; reply: Reply }
  | { kind: 'odd' };

/** What became of the command that was asked for. */
export type Outcome =
  | { kind: 'answered'; reply: Reply }
  | { kind: 'refused'; code: number }
  | { kind: 'nonsense' }
  /** Take another turn: what was sent was a step of the session, or is to be sent again. */
  | { kind: 'again' }
  /** Sent, and the session is lost: it may have been done, and must not be sent again. */
  | { kind: 'unknown' }
  | { kind: 'silent' };

export interface Turn {
  session: Session;
  bytes: Uint8Array;
}

export interface Settled {
  session: Session;
  effects: Effect[];
  outcome: Outcome;
}

/** A device with a wrong key costs three exchanges each time it is tried. */
const BARRED_TURNS_MAX = 32;
const STATES: readonly Command[] = [{ kind: 'LSTAT' }, { kind: 'ISTAT' }, { kind: 'OSTAT' }];
const PROVEN_STATES: readonly Command[] = [{ kind: 'ID' }, { kind: 'CAP' }, ...STATES];
const OPENING: readonly OutputCode[] = [OUTPUT.offNow, OUTPUT.offAfterTimer, OUTPUT.offForTime];
/** To ask twice is harmless, and late is as good as soon. */
const QUESTIONS: readonly Command['kind'][] = [
  ...(['POLL', 'ID', 'CAP', 'LSTAT', 'ISTAT', 'OSTAT', 'RSTAT'] as const),
  ...(['CHLNG', 'SCRYPT', 'KEYSET'] as const),
];

/**
 * Closes a relay. In clear text it is sent once: a power dip opens the relay, and a device that then takes any number would close
 * it a second time. In a secure session the restart ends the session.
 */
export const isSentOnce = (command: Command, isSecure: boolean) =>
  !isSecure && command.kind === 'OUT' && command.outputs.some(({ code }) => !OPENING.includes(code));

export const isQuestion = ({ kind }: Command) => QUESTIONS.includes(kind);

export function channelOf({ stage }: Session): Channel | null {
  return 'channel' in stage ? stage.channel : null;
}

/** From number 0, which ends the session at the device too. A device that proved itself need not be asked who it is. */
export function restart(session: Session): Session {
  if (session.stage.kind === 'barred') return { ...session, sequence: 0, outstanding: null };
  const isKnown = session.identity !== null && session.options.security.secure !== 'off';
  const stage: Stage = isKnown ? challenge(session) : { kind: 'identify' };
  return { ...session, stage, sequence: 0, outstanding: null };
}

function pendingOf({ options: { security } }: Pick<Session, 'options'>): Uint8Array | undefined {
  return security.secure === 'required' ? security.pending : undefined;
}

/** The next handshake: each key that the device may have in turn. */
export function challenge(session: Pick<Session, 'options' | 'failures'>): Stage {
  const isPendingNext = pendingOf(session) !== undefined && session.failures % 2 === 1;
  return { kind: 'challenge', base: isPendingNext ? 'pending' : 'own' };
}

export function keyOf(security: Security, base: BaseKey): Uint8Array {
  if (base === 'default' || security.secure === 'off') return DEFAULT_KEY;
  return base === 'pending' && security.secure === 'required' && security.pending
    ? security.pending
    : security.key;
}

/** The device has proved this key, so it has no other one. */
export function settledOn({ options, ...session }: Session, base: BaseKey): Session {
  const { security } = options;
  const settled: Security =
    security.secure === 'required' ? { secure: 'required', key: keyOf(security, base) } : security;
  return { ...session, options: { ...options, security: settled } };
}

/** The same, and what that means for the command that was on the wire. */
export function lose(session: Session, { command }: Outstanding, reason: string): Settled {
  return {
    session: restart(session),
    effects: [{ kind: 'restarted', reason }],
    outcome: { kind: isQuestion(command) ? 'again' : 'unknown' },
  };
}

export function goOnline(session: Session, channel: Channel | null): Settled {
  const { suspicions, effects: lowered } = afterHandshake(session.suspicions);
  const agenda = channel ? PROVEN_STATES : STATES;
  const effects: Effect[] = [...lowered, { kind: 'online' }];
  if (session.options.security.secure === 'pairing') effects.push({ kind: 'paired' });
  const stage: Stage = { kind: 'online', channel, agenda };
  return {
    session: { ...session, stage, suspicions, failures: 0, excused: 0 },
    effects,
    outcome: { kind: 'again' },
  };
}

/**
 * No session, for this reason. While pairing, a device that has not got its key yet is asked under the common one. Once
 * may be an accident, or somebody between: each key is tried again, and the alarm is raised when it is so again.
 */
export function failed(session: Session, alarm: Alarm): Settled {
  const { stage, options, failures } = session;
  const again = { kind: 'again' } as const;
  const restarted = { ...session, sequence: 0, outstanding: null } as const;
  if (options.security.secure === 'pairing' && 'base' in stage && stage.base === 'own')
    return {
      session: { ...restarted, stage: { kind: 'challenge', base: 'default', isKeyed: alarm === 'wrongKey' } },
      effects: [],
      outcome: again,
    };
  const keys = pendingOf(session) ? 2 : 1;
  if (failures < 2 * keys - 1 && 'base' in stage) {
    const next = { ...restarted, failures: failures + 1 };
    return { session: { ...next, stage: challenge(next) }, effects: [], outcome: again };
  }
  const turnsLeft = Math.min(2 ** (Math.floor(failures / keys) + 1), BARRED_TURNS_MAX);
  if (options.security.secure === 'required' && options.security.isTentative) {
    const stage: Stage = { kind: 'barred', turnsLeft: BARRED_TURNS_MAX };
    return { session: { ...restarted, stage }, effects: [{ kind: 'unproven' }], outcome: again };
  }
  const { suspicions, effects } = afterFailure(session.suspicions, alarm);
  const barred: Session = {
    ...restarted,
    stage: { kind: 'barred', turnsLeft },
    suspicions,
    failures: failures + 1,
  };
  return { session: barred, effects, outcome: again };
}

/** While pairing: the device refuses the default key for one of its own. That is more security, and no alarm. */
export function insisted(session: Session): Settled {
  const stage: Stage = { kind: 'barred', turnsLeft: BARRED_TURNS_MAX };
  return {
    session: { ...session, stage, sequence: 0, outstanding: null },
    effects: [{ kind: 'keyed' }],
    outcome: { kind: 'again' },
  };
}

/** Two devices answer here, and it is not known which one would take the key. */
export function contest(session: Session): Settled {
  const { suspicions, effects } = afterFailure(session.suspicions, 'duplicateAddress');
  const stage: Stage = { kind: 'barred', turnsLeft: BARRED_TURNS_MAX };
  return {
    session: { ...session, stage, sequence: 0, outstanding: null, suspicions, claim: 'contested' },
    effects: [...effects, { kind: 'contested' }],
    outcome: { kind: 'again' },
  };
}

/** Done with this command, whatever came of it: it is not on the agenda any more. */
export function setAside(session: Session, outstanding: Outstanding | null, outcome: Outcome): Settled {
  const { stage } = session;
  if (stage.kind !== 'online' || !outstanding?.isOwn) return { session, effects: [], outcome };
  const agenda = stage.agenda.filter((command) => command !== outstanding.command);
  return { session: { ...session, stage: { ...stage, agenda } }, effects: [], outcome };
}
