/**
 * One unlock, from the frame to what became of it, as a state machine: it says `confirmed` only when the lock said that
 * it is unlocked. Pure; the waiting and sending are unlocking.ts.
 */
import type { DriverErrorCode } from '../driver.ts';
import type { Unlocked } from '../zgate.ts';
import { field, hex, integer } from './values.ts';
import { STATUS_SUCCESS } from './zcl-status.ts';

/** ZCL rev. 8, table 7-10: lockState. */
const LOCK_STATE = { notFullyLocked: 0, locked: 1, unlocked: 2 } as const;

export type UnlockState =
  /** The frame waits its turn: what the lock says now is not of it. */
  | { phase: 'begun' }
  | { phase: 'sent'; evidence: Evidence | undefined }
  /** The lock answered success, which says only that it understood. */
  | { phase: 'accepted'; evidence: Evidence | undefined }
  | { phase: 'done'; outcome: Unlocked['outcome'] }
  | { phase: 'failed'; code: DriverErrorCode; reason: string };

/** What the lock said by itself after the command was sent: it can overtake the answer. */
type Evidence = 'unlocked' | 'jammed' | 'between';

export type UnlockInput =
  /** The frame leaves. */
  | { kind: 'left' }
  /** The reply to the command: the status of its response, or of a default response. */
  | { kind: 'answered'; payload: unknown }
  /** No reply in time, after the frame went out. */
  | { kind: 'unanswered'; reason: string }
  /** The radio says that the frame did not reach the lock. */
  | { kind: 'undelivered'; reason: string }
  | { kind: 'lockState'; value: unknown }
  | { kind: 'jam' }
  /** An operation event says that it was unlocked by radio. */
  | { kind: 'operated' }
  /** Long enough since it was accepted. */
  | { kind: 'waited' };

export const UNLOCK_BEGUN: UnlockState = { phase: 'begun' };

export function unlockStep(state: UnlockState, input: UnlockInput): UnlockState {
  if (state.phase === 'done' || state.phase === 'failed') return state;
  if (state.phase === 'begun') return input.kind === 'left' ? { phase: 'sent', evidence: undefined } : state;
  switch (input.kind) {
    case 'left':
      return state;
    case 'answered':
      return state.phase === 'sent' ? answered(state, input.payload) : state;
    case 'unanswered':
      return state.phase === 'sent' ? unanswered(state, input.reason) : state;
    case 'undelivered':
      return state.phase === 'sent'
        ? { phase: 'failed', code: 'DEVICE_OFFLINE', reason: input.reason }
        : state;
    case 'waited':
      if (state.phase === 'sent') return state;
      return { phase: 'done', outcome: state.evidence === 'between' ? 'jammed' : 'accepted' };
    case 'operated':
      return operated(state);
    case 'jam':
      return witnessed(state, 'jammed');
    case 'lockState':
      if (input.value === LOCK_STATE.unlocked) return witnessed(state, 'unlocked');
      // A bolt on its way, or one that does not move: what comes next tells.
      return input.value === LOCK_STATE.notFullyLocked ? witnessed(state, 'between') : state;
  }
}

function answered(state: Extract<UnlockState, { phase: 'sent' }>, payload: unknown): UnlockState {
  // A response has `status`, a default response `statusCode` (ZCL rev. 8, 2.5.12): a failure comes as the latter.
  const status = integer(field(payload, 'status') ?? field(payload, 'statusCode'), 0, 0xff);
  const isDefault = field(payload, 'statusCode') !== undefined;
  if (status === undefined)
    return { phase: 'failed', code: 'OUTCOME_UNKNOWN', reason: 'the lock answered without a status' };
  if (status !== STATUS_SUCCESS) {
    const reason = `the lock refused (status ${hex(status, 2)})`;
    return { phase: 'failed', code: 'REFUSED', reason };
  }
  // A default response of success is for commands without a response of their own, which this is not.
  if (isDefault) return unanswered(state, 'the lock answered as to another command');
  return concluded({ phase: 'accepted', evidence: state.evidence });
}

function unanswered(state: Extract<UnlockState, { phase: 'sent' }>, reason: string): UnlockState {
  const end = concluded({ phase: 'accepted', evidence: state.evidence });
  return end.phase === 'done' ? end : { phase: 'failed', code: 'OUTCOME_UNKNOWN', reason };
}

/** It names the radio as what unlocked it, which no hand and no keypad does: whoever waits need not wait for its answer. */
function operated(state: Extract<UnlockState, { phase: 'sent' | 'accepted' }>): UnlockState {
  if (state.phase === 'sent' && state.evidence !== 'jammed') return { phase: 'done', outcome: 'confirmed' };
  return witnessed(state, 'unlocked');
}

function witnessed(
  state: Extract<UnlockState, { phase: 'sent' | 'accepted' }>,
  evidence: Evidence,
): UnlockState {
  return state.phase === 'sent' ? { ...state, evidence } : concluded({ ...state, evidence });
}

function concluded(state: Extract<UnlockState, { phase: 'accepted' }>): UnlockState {
  switch (state.evidence) {
    case 'unlocked':
      return { phase: 'done', outcome: 'confirmed' };
    case 'jammed':
      return { phase: 'done', outcome: 'jammed' };
    default:
      return state;
  }
}
