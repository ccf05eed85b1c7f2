/**
 * What a session consists of, what it causes, what becomes of a command; and the steps that lead to another state whatever
 * the reply was: the next number, again from 0, the next handshake. The machine is session.ts. Pure.
 */
import type { AlarmEffect, AlarmLevels } from './alarms.ts';
import type { Check, Sequence } from './frame.ts';
import {
  type Capability,
  type Command,
  type Identity,
  OUTPUT,
  type OutputCode,
  type Reply,
} from './messages.ts';
import { type Channel, DEFAULT_KEY, type SessionKeys } from './secure-channel.ts';

/**
 * `required`: a secure channel under `key`, the SCBK, or nothing. `pairing`: gives the device `key`, under SCBK-D where it
 * must be; only while a person watches. `off`: clear text.
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

/** Under which SCBK a handshake is tried; `default`: SCBK-D. */
export type BaseKey = 'own' | 'pending' | 'default';

/**
 * While pairing: which identity has answered, and how often in a row; `contested`: more than one has, and no device gets a
 * key before the window is opened again.
 */
export type Claim = { identity: Identity; times: number } | 'contested' | null;

export interface Challenge {
  key: Uint8Array;
  nonce: Uint8Array;
}

/** The table in session.ts says what is sent in each, and which follows. */
export type Stage =
  | { kind: 'idRequest' }
  | { kind: 'capabilities' }
  /** `isKeyed`: the device has just used a key of its own. */
  | { kind: 'challenge'; base: BaseKey; isKeyed?: boolean }
  | { kind: 'serverCryptogram'; base: BaseKey; keys: SessionKeys; cryptogram: Uint8Array }
  | { kind: 'idCheck'; channel: Channel }
  | { kind: 'keySet'; channel: Channel }
  | { kind: 'idConfirm'; channel: Channel }
  /** `agenda`: what is asked before the next POLL. */
  | { kind: 'online'; channel: Channel | null; agenda: readonly Command[] }
  | { kind: 'cooldown'; exchangesLeft: number };

/** The one command that is on the wire. */
export interface Outstanding {
  command: Command;
  /** A step of the session itself, which no one asked for. */
  isOwn: boolean;
  sequence: Sequence;
  bytes: Uint8Array;
  sent: number;
  /** Requests before this transmission whose replies may still come: a refusal may be of one of them. */
  earlier: number;
  /** null: sent without a session, so its answer comes without. */
  seal: { keys: SessionKeys; commandMac: Uint8Array } | null;
}

export type Answer =
  | { kind: 'busy' }
  /** `isProven` false: within a session, and no one signed it. */
  | { kind: 'nak'; code: number; isProven: boolean }
  /** `value` of the security block, in the handshake. */
  | { kind: 'reply'; reply: Reply; value: number | null }
  /** Of this device and to this command, but malformed, or no answer that the command can have. */
  | { kind: 'nonsense' };

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
  readonly alarmLevels: AlarmLevels;
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
  | { kind: 'reported'; reply: Reply }
  /** ACK to a POLL: the device has nothing to report (6.1). */
  | { kind: 'quiet' }
  | { kind: 'odd' };

/** What became of the command that was asked for. */
export type Outcome =
  | { kind: 'answered'; reply: Reply }
  | { kind: 'refused'; code: number }
  | { kind: 'nonsense' }
  /** Another exchange: what was sent was a step of the session, or is to be sent again. */
  | { kind: 'again' }
  /** Sent, and the session is lost: it may have been done, and must not be sent again. */
  | { kind: 'unknown' }
  | { kind: 'silent' };

export interface Settled {
  session: Session;
  effects: Effect[];
  outcome: Outcome;
}

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

/** So often an order to close a relay is sent in clear text whose check the device finds wrong. */
const UNCHECKED_MAX = 3;

/** After NAK 1, whose sender took nothing (7.3). A device in clear text that closes its relay all the same might do so each time. */
export function mayRepeatUnchecked({ command, seal, sent }: Outstanding): boolean {
  return !isSentOnce(command, seal !== null) || sent < UNCHECKED_MAX;
}

export const isQuestion = ({ kind }: Command) => QUESTIONS.includes(kind);

export function channelOf({ stage }: Session): Channel | null {
  return 'channel' in stage ? stage.channel : null;
}

export function keyOf(security: Security, base: BaseKey): Uint8Array {
  if (base === 'default' || security.secure === 'off') return DEFAULT_KEY;
  return base === 'pending' && security.secure === 'required' && security.pending
    ? security.pending
    : security.key;
}

export function openSession(options: SessionOptions): Session {
  return {
    options,
    stage: { kind: 'idRequest' },
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
    alarmLevels: {},
  };
}

/** The device was silent for long, so it may be another one. */
export function forgetDevice(session: Session): Session {
  return { ...fromZero(session, { kind: 'idRequest' }), identity: null };
}

/** The command is answered: the next number, the next link of the chain. */
export function advance(session: Session, replyMac: Uint8Array | null): Session {
  const { sequence, stage } = session;
  const next = { ...session, outstanding: null, sequence: ((sequence % 3) + 1) as Sequence };
  if (!replyMac || !('channel' in stage) || !stage.channel) return next;
  return { ...next, stage: { ...stage, channel: { ...stage.channel, replyMac } } as Stage };
}

/** Another exchange. */
export const again = (session: Session, effects: Effect[] = []): Settled => ({
  session,
  effects,
  outcome: { kind: 'again' },
});

/** The count starts again at 0, which ends the session at the device too. */
export const fromZero = (session: Session, stage: Stage): Session => ({
  ...session,
  stage,
  sequence: 0,
  outstanding: null,
});

/** A device that proved itself need not be asked who it is. */
export function restart(session: Session): Session {
  const { stage, identity, options } = session;
  if (stage.kind === 'cooldown') return fromZero(session, stage);
  const isKnown = identity !== null && options.security.secure !== 'off';
  return fromZero(session, isKnown ? challengeOf(session) : { kind: 'idRequest' });
}

/** The same, and what that means for the command that was on the wire. */
export function lose(session: Session, { command }: Outstanding, reason: string): Settled {
  return {
    session: restart(session),
    effects: [{ kind: 'restarted', reason }],
    outcome: { kind: isQuestion(command) ? 'again' : 'unknown' },
  };
}

/** Done with this command, whatever came of it: it is not on the agenda any more. */
export function setAside(session: Session, outstanding: Outstanding | null, outcome: Outcome): Settled {
  const { stage } = session;
  if (stage.kind !== 'online' || !outstanding?.isOwn) return { session, effects: [], outcome };
  const agenda = stage.agenda.filter((command) => command !== outstanding.command);
  return { session: { ...session, stage: { ...stage, agenda } }, effects: [], outcome };
}

export function pendingOf({ options: { security } }: Pick<Session, 'options'>): Uint8Array | undefined {
  return security.secure === 'required' ? security.pending : undefined;
}

/** The next handshake: each key that the device may have in turn. */
export function challengeOf(session: Pick<Session, 'options' | 'failures'>): Stage {
  const isPendingNext = pendingOf(session) !== undefined && session.failures % 2 === 1;
  return { kind: 'challenge', base: isPendingNext ? 'pending' : 'own' };
}

/** The device has proved this key, so it has no other one. */
export function settledOn({ options, ...session }: Session, base: BaseKey): Session {
  const { security } = options;
  if (security.secure !== 'required') return { ...session, options };
  return {
    ...session,
    options: { ...options, security: { secure: 'required', key: keyOf(security, base) } },
  };
}
