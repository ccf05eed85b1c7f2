/**
 * One command to the bolt of a lock, from the frame to its outcome, as a state machine. Pure; unlocking.ts waits and sends.
 *
 *   state      input                                   next
 *   begun      left                                    sent
 *   sent       answered SUCCESS                        accepted
 *   sent       answered another status                 refused
 *   sent       unconfirmed                             sent, with the doubt kept for the outcome
 *   sent       the lock reports the wanted state       sent with evidence (unlock) · done (lock)
 *   sent       operated (an event names the radio)     done: confirmed (unlock)
 *   sent       unnamed, unanswered                     done: as the evidence says; without any it stays sent
 *   accepted   the lock reports the wanted state       done: confirmed; accepted with evidence where an event is to name who moved it
 *   accepted   operated                                done: confirmed (unlock)
 *   accepted   the lock reports a jam                  done: jammed
 *   accepted   unnamed                                 done: confirmed, if the evidence is the wanted state
 *   accepted   waited                                  done: accepted, or jammed when the bolt stayed between
 *
 * A movement that an event ascribes to a hand, a key or a keypad is no evidence of an unlock: a lock that accepts a command
 * need not carry it out. A lock that names the radio in its events has the time to name who moved the bolt.
 *
 * While an earlier command that opens the lock may still arrive, nothing that the lock shows counts in `sent`. It makes
 * the command `unattributed`: the state of the bolt is to be read as soon as the lock accepted the command. Nor does an
 * event that names the radio count in `accepted` then.
 *
 * No radio failure ends it: after a negative confirmation the lock may have the frame, for what was lost may be the
 * acknowledgement alone. Only the deadline ends `sent` without evidence, and then the outcome is unknown.
 */
import type { Unlocked } from '../contract/zgate.ts';
import { field, integer } from './values.ts';
import { STATUS_SUCCESS } from './zcl-status.ts';

/** ZCL rev. 8, table 7-10: lockState. */
export const LOCK_STATE = { notFullyLocked: 0, locked: 1, unlocked: 2 } as const;

/** The state that the command is to bring the bolt to. */
export type Target = 'locked' | 'unlocked';

interface Begun {
  target: Target;
  /** An earlier command may still arrive: until the lock answers this one, what it shows may come of that one. */
  earlier: boolean;
  /** The lock names the radio in its events: a report of the bolt is soon followed by one that says who moved it. */
  namesRadio: boolean;
}
interface Sent extends Begun {
  phase: 'sent';
  evidence: Evidence | undefined;
  /** Why no answer came, or may come. */
  doubt: string | undefined;
  /** An event names another source than the radio: a report of the bolt is no evidence any more. */
  movedByOther: boolean;
  /** The lock showed something meanwhile, which it does not repeat for this command. */
  unattributed: boolean;
}
interface Accepted extends Begun {
  phase: 'accepted';
  evidence: Evidence | undefined;
  movedByOther: boolean;
  unattributed: boolean;
}

export type ActuationState =
  /** The frame waits for its turn: nothing that the lock says now comes of it. */
  | ({ phase: 'begun' } & Begun)
  | Sent
  /** The lock answered success, which means only that it understood. */
  | Accepted
  | { phase: 'done'; outcome: Unlocked['outcome'] }
  /** The lock answered with this status of ZCL: it does nothing. */
  | { phase: 'refused'; status: number };

/** What the lock said by itself after the command was sent; it can overtake the answer. */
type Evidence = 'reached' | 'jammed' | 'between';

export type ActuationInput =
  /** The frame leaves. */
  | { kind: 'left' }
  /** The reply to the command: its response, or a default response. */
  | { kind: 'answered'; payload: unknown }
  /** The coordinator did not see the frame delivered. */
  | { kind: 'unconfirmed'; reason: string }
  /** No reply in time. */
  | { kind: 'unanswered'; reason: string }
  | { kind: 'lockState'; value: unknown }
  | { kind: 'jam' }
  /** An operation event says that the lock was unlocked by radio. */
  | { kind: 'operated' }
  /** An operation event says that the lock was unlocked, and not by radio. */
  | { kind: 'operatedByOther' }
  /** Long enough since a report of the bolt that neither an answer nor an event followed. */
  | { kind: 'unnamed' }
  /** Long enough since it was accepted. */
  | { kind: 'waited' };

/** `earlier`: a command of unknown outcome was sent to this lock, and its parent may still hold it. */
export function actuationBegun(target: Target, earlier = false, namesRadio = false): ActuationState {
  return { phase: 'begun', target, earlier, namesRadio };
}

export function hasEnded({ phase }: ActuationState): boolean {
  return phase === 'done' || phase === 'refused';
}

export function actuationStep(state: ActuationState, input: ActuationInput): ActuationState {
  switch (state.phase) {
    case 'begun':
      if (input.kind !== 'left') return state;
      return {
        ...state,
        phase: 'sent',
        evidence: undefined,
        doubt: undefined,
        movedByOther: false,
        unattributed: false,
      };
    case 'sent':
      return sentStep(state, input);
    case 'accepted':
      return acceptedStep(state, input);
    default:
      return state;
  }
}

function sentStep(state: Sent, input: ActuationInput): ActuationState {
  if (state.earlier && isShown(input)) {
    const movedByOther = state.movedByOther || input.kind === 'operatedByOther';
    return { ...state, movedByOther, unattributed: true };
  }
  switch (input.kind) {
    case 'left':
      return state;
    case 'answered':
      return answered(state, input.payload);
    case 'unconfirmed':
      return { ...state, doubt: input.reason };
    case 'unanswered':
      return byEvidence({ ...state, doubt: state.doubt ?? input.reason });
    case 'unnamed':
      return byEvidence(state);
    case 'waited':
      return state;
    case 'jam':
      return { ...state, evidence: 'jammed' };
    case 'operated':
      // No hand and no keypad does it by radio: its answer need not be waited for.
      if (state.target === 'locked' || state.evidence === 'jammed') return state;
      return { phase: 'done', outcome: 'confirmed' };
    case 'operatedByOther':
      return { ...state, movedByOther: true, ...(state.evidence === 'reached' && { evidence: undefined }) };
    case 'lockState': {
      const evidence = evidenceOf(input.value, state.target);
      // No matter who threw the bolt: the door is locked, which is all that was asked.
      if (evidence === 'reached' && state.target === 'locked') return { phase: 'done', outcome: 'confirmed' };
      if (!evidence || (evidence === 'reached' && state.movedByOther)) return state;
      // The alarm says why the bolt is between: the report of that takes nothing back.
      return evidence === 'between' && state.evidence === 'jammed' ? state : { ...state, evidence };
    }
  }
}

/** What the lock shows by itself, and not in answer to a command. */
function isShown({ kind }: ActuationInput): boolean {
  return kind === 'lockState' || kind === 'jam' || kind === 'operated' || kind === 'operatedByOther';
}

function acceptedStep(state: Accepted, input: ActuationInput): ActuationState {
  switch (input.kind) {
    case 'unnamed':
      return state.evidence === 'reached' ? concluded(state) : state;
    case 'waited':
      if (state.evidence === 'reached') return state;
      return { phase: 'done', outcome: state.evidence === 'between' ? 'jammed' : 'accepted' };
    case 'operated':
      // A lock repeats the event of an earlier command until it is acknowledged, also after it has answered this one.
      if (state.target === 'locked' || state.earlier) return state;
      return concluded({ ...state, evidence: 'reached' });
    case 'operatedByOther':
      return { ...state, movedByOther: true, ...(state.evidence === 'reached' && { evidence: undefined }) };
    case 'jam':
      return concluded({ ...state, evidence: 'jammed' });
    case 'lockState': {
      const evidence = evidenceOf(input.value, state.target);
      const isUnlocked = evidence === 'reached' && state.target === 'unlocked';
      if (!evidence || (isUnlocked && state.movedByOther)) return state;
      return unlessNamedSoon({ ...state, evidence });
    }
    default:
      return state;
  }
}

function evidenceOf(lockState: unknown, target: Target): Evidence | undefined {
  if (lockState === LOCK_STATE[target]) return 'reached';
  // The bolt moves, or does not move: the next report decides.
  return lockState === LOCK_STATE.notFullyLocked ? 'between' : undefined;
}

function answered(state: Sent, payload: unknown): ActuationState {
  // A response has `status`, a default response `statusCode` (ZCL rev. 8, 2.5.12). A lock must answer these commands with
  // their own responses; one that answers SUCCESS by a default response has accepted the command all the same.
  const status = integer(field(payload, 'status') ?? field(payload, 'statusCode'), 0, 0xff);
  if (status === undefined) return byEvidence({ ...state, doubt: 'the lock answered without a status' });
  if (status !== STATUS_SUCCESS) return { phase: 'refused', status };
  return unlessNamedSoon(acceptedFrom(state));
}

/** While an event of an earlier command may be repeated, no event says who moved the bolt. */
function unlessNamedSoon(state: Accepted): ActuationState {
  const isUnlocked = state.evidence === 'reached' && state.target === 'unlocked';
  return isUnlocked && state.namesRadio && !state.earlier ? state : concluded(state);
}

/** Without an answer. */
function byEvidence(state: Sent): ActuationState {
  const end = concluded(acceptedFrom(state));
  return end.phase === 'done' ? end : state;
}

function acceptedFrom({ doubt: _, ...state }: Sent): Accepted {
  return { ...state, phase: 'accepted' };
}

function concluded(state: Accepted): ActuationState {
  switch (state.evidence) {
    case 'reached':
      return { phase: 'done', outcome: 'confirmed' };
    case 'jammed':
      return { phase: 'done', outcome: 'jammed' };
    default:
      return state;
  }
}
