/**
 * One command to the bolt of a lock, from the frame to its outcome, as a state machine. Pure; unlocking.ts waits and sends.
 *
 *   state      input                                   next
 *   begun      left                                    sent
 *   sent       answered SUCCESS                        accepted
 *   sent       answered another status                 refused
 *   sent       unconfirmed, unanswered                 sent, with the doubt kept for the outcome
 *   either     the lock reports the wanted state       the same, and the bolt is to be read
 *   either     read, and it is in the wanted state     done: confirmed
 *   either     operated (an event names the radio)     done: confirmed; of a lock command only where it can be of no other
 *   either     the lock reports a jam                  the same; later the bolt is to be read
 *   either     read, after a jam, and in another       done: jammed
 *   accepted   waited                                  done: accepted, or jammed when the last read said that the bolt is between
 *
 * A report of the bolt proves nothing by itself: it may have been held up on its way, and be older than the command. An
 * answer to a question that was sent after the command is of now.
 *
 * A movement that an event ascribes to a hand, a key or a keypad is no evidence of an unlock: a lock that accepts a command
 * need not carry it out. A lock that names the radio in its events has the time to name who moved the bolt.
 *
 * While the event of an earlier command may still come, one that names the radio shows no more than a report of the bolt.
 * While a frame of one may still arrive, nothing that the lock shows counts in `sent`. It makes the command `unattributed`:
 * the state of the bolt is to be read as soon as the lock accepted the command.
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

/** What an earlier command that opens the lock may still do: nothing, report itself by its event, or arrive. */
export type Earlier = 'none' | 'event' | 'frame';

interface Begun {
  target: Target;
  earlier: Earlier;
  /** The lock names the radio in its events: a report of the bolt is soon followed by one that says who moved it. */
  namesRadio: boolean;
  /** Of a lock command: an event that says that the lock was locked by radio can be of no other. */
  eventConfirms: boolean;
}
interface Shown extends Begun {
  evidence: Evidence | undefined;
  /** It says that it is in the wanted state, and has to be asked. */
  isToBeRead: boolean;
  /** Since it said so, or that it jams, there was the time for an answer and for an event that names who moved the bolt. */
  isUnnamed: boolean;
  /** An event names another source than the radio: that the bolt is drawn is no evidence any more. */
  movedByOther: boolean;
  /** The lock showed something that an earlier command may have done, and which it does not repeat for this one. */
  unattributed: boolean;
}
interface Sent extends Shown {
  phase: 'sent';
  /** Why no answer came, or may come. */
  doubt: string | undefined;
}
interface Accepted extends Shown {
  phase: 'accepted';
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

/** That the bolt did not get there. */
type Evidence = 'jammed' | 'between';

export type ActuationInput =
  /** The frame leaves. */
  | { kind: 'left' }
  /** The reply to the command: its response, or a default response. */
  | { kind: 'answered'; payload: unknown }
  /** The coordinator did not see the frame delivered. */
  | { kind: 'unconfirmed'; reason: string }
  /** No reply in time. */
  | { kind: 'unanswered'; reason: string }
  /** A report of the bolt. */
  | { kind: 'lockState'; value: unknown }
  /** The answer to a question for the bolt that was sent after the command; undefined: none came. */
  | { kind: 'read'; value: unknown }
  | { kind: 'jam' }
  /** An operation event says that the lock was unlocked, or locked, by radio. */
  | { kind: 'operated'; to: Target }
  /** An operation event says that the lock was unlocked, and not by radio. */
  | { kind: 'operatedByOther' }
  /** Long enough since the lock first showed something of the bolt. */
  | { kind: 'unnamed' }
  /** Long enough since it was accepted. */
  | { kind: 'waited' };

export function actuationBegun(
  target: Target,
  earlier: Earlier = 'none',
  namesRadio = false,
  eventConfirms = false,
): ActuationState {
  return { phase: 'begun', target, earlier, namesRadio, eventConfirms };
}

export function hasEnded({ phase }: ActuationState): boolean {
  return phase === 'done' || phase === 'refused';
}

/** The lock has shown something of the bolt, which an answer or an event may follow. */
export function isShowing(state: ActuationState): boolean {
  if (state.phase !== 'sent' && state.phase !== 'accepted') return false;
  return !state.isUnnamed && (state.isToBeRead || state.evidence === 'jammed');
}

/** The bolt is to be read now. In `sent` its answer is waited for no longer. */
export function isReadDue(state: ActuationState): boolean {
  if (state.phase !== 'sent' && state.phase !== 'accepted') return false;
  if (state.isUnnamed) return state.isToBeRead || state.evidence === 'jammed';
  return state.phase === 'accepted' && state.isToBeRead && !waitsForName(state);
}

export function actuationStep(state: ActuationState, input: ActuationInput): ActuationState {
  switch (state.phase) {
    case 'begun': {
      if (input.kind !== 'left') return state;
      const shown = { isToBeRead: false, isUnnamed: false, movedByOther: false, unattributed: false };
      return { ...state, ...shown, phase: 'sent', evidence: undefined, doubt: undefined };
    }
    case 'sent':
      return sentStep(state, input);
    case 'accepted':
      return input.kind === 'waited' ? ended(state.evidence) : shownStep(state, input);
    default:
      return state;
  }
}

function sentStep(state: Sent, input: ActuationInput): ActuationState {
  if (state.earlier === 'frame' && isShown(input)) {
    const movedByOther = state.movedByOther || input.kind === 'operatedByOther';
    return { ...state, movedByOther, unattributed: true };
  }
  switch (input.kind) {
    case 'answered':
      return answered(state, input.payload);
    case 'unconfirmed':
      return { ...state, doubt: input.reason };
    case 'unanswered':
      return { ...state, doubt: state.doubt ?? input.reason };
    case 'operated':
      // The lock contradicts itself: its answer decides.
      return state.evidence === 'jammed' ? state : shownStep(state, input);
    case 'waited':
      return state.evidence === 'jammed' ? ended(state.evidence) : state;
    default:
      return shownStep(state, input);
  }
}

/** What the lock shows by itself, and not in answer to a command, and what one that opens it may have done. */
function isShown(input: ActuationInput): boolean {
  const { kind } = input;
  if (kind === 'operated') return input.to === 'unlocked';
  return kind === 'lockState' || kind === 'jam' || kind === 'operatedByOther';
}

function shownStep<State extends Sent | Accepted>(state: State, input: ActuationInput): ActuationState {
  switch (input.kind) {
    case 'lockState':
      return reported(state, input.value);
    case 'read':
      return read(state, input.value);
    case 'jam':
      return { ...state, evidence: 'jammed' };
    case 'operated':
      if (input.to !== state.target) return state;
      if (state.target === 'locked' && !state.eventConfirms) return { ...state, isToBeRead: true };
      // A lock repeats the event of an earlier command until it is acknowledged, also after it has answered this one.
      if (state.target === 'unlocked' && state.earlier !== 'none')
        return { ...state, isToBeRead: !state.movedByOther };
      // No hand and no keypad does it by radio: its answer need not be waited for.
      return { phase: 'done', outcome: 'confirmed' };
    case 'operatedByOther':
      return { ...state, movedByOther: true, ...(state.target === 'unlocked' && { isToBeRead: false }) };
    case 'unnamed':
      return isShowing(state) ? { ...state, isUnnamed: true } : state;
    default:
      return state;
  }
}

function reported<State extends Sent | Accepted>(state: State, lockState: unknown): State {
  if (!isReached(state, lockState)) return state;
  return { ...state, isToBeRead: true, evidence: state.evidence === 'jammed' ? 'jammed' : undefined };
}

function read(state: Sent | Accepted, lockState: unknown): ActuationState {
  // The lock need not have this command to show the bolt as an earlier one left it.
  const isOfEarlier = state.phase === 'sent' && state.earlier === 'frame' && state.target === 'unlocked';
  if (isReached(state, lockState) && !isOfEarlier) {
    if (waitsForName(state) && !state.isUnnamed) return { ...state, isToBeRead: true };
    return { phase: 'done', outcome: 'confirmed' };
  }
  if (state.evidence === 'jammed' && state.isUnnamed) return ended(state.evidence);
  // Whatever it reports from now on is another movement.
  return { ...state, isToBeRead: false, isUnnamed: false, evidence: withBetween(state, lockState) };
}

/** No matter who threw the bolt: the door is locked, which is all that was asked. Who drew it matters. */
function isReached({ target, movedByOther }: Shown, lockState: unknown): boolean {
  return lockState === LOCK_STATE[target] && (target === 'locked' || !movedByOther);
}

/** The bolt moves, or does not move: the next report decides. An alarm says why: the report of that takes nothing back. */
function withBetween({ evidence }: Shown, lockState: unknown): Evidence | undefined {
  return lockState === LOCK_STATE.notFullyLocked ? (evidence ?? 'between') : evidence;
}

/** Also while the event of an earlier command may come: one that names a hand says even then that it was no command. */
function waitsForName({ target, namesRadio }: Shown): boolean {
  return target === 'unlocked' && namesRadio;
}

function answered(state: Sent, payload: unknown): ActuationState {
  // A response has `status`, a default response `statusCode` (ZCL rev. 8, 2.5.12). A lock must answer these commands with
  // their own responses; one that answers SUCCESS by a default response has accepted the command all the same.
  const status = integer(field(payload, 'status') ?? field(payload, 'statusCode'), 0, 0xff);
  if (status === undefined) return { ...state, doubt: 'the lock answered without a status' };
  if (status !== STATUS_SUCCESS) return { phase: 'refused', status };
  const { doubt: _, ...shown } = state;
  return { ...shown, phase: 'accepted' };
}

function ended(evidence: Evidence | undefined): ActuationState {
  return { phase: 'done', outcome: evidence ? 'jammed' : 'accepted' };
}
