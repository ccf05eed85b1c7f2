import { describe, expect, it } from 'vitest';
import { type ActuationInput, actuationBegun, actuationStep, type Target } from './unlock.ts';

const having = (target: Target, ...inputs: ActuationInput[]) =>
  [{ kind: 'left' } as const, ...inputs].reduce(actuationStep, actuationBegun(target));
const unlocking = (...inputs: ActuationInput[]) => having('unlocked', ...inputs);
const success: ActuationInput = { kind: 'answered', payload: { status: 0 } };
/** ZCL rev. 8, table 7-10. */
const lockState = (value: unknown): ActuationInput => ({ kind: 'lockState', value });
const [between, locked, unlocked] = [lockState(0), lockState(1), lockState(2)];
const unconfirmed: ActuationInput = { kind: 'unconfirmed', reason: 'there is no route to the lock' };
const unanswered: ActuationInput = { kind: 'unanswered', reason: 'no answer' };
const confirmed = { phase: 'done', outcome: 'confirmed' };
const jammed = { phase: 'done', outcome: 'jammed' };

describe('an unlock', () => {
  it('is confirmed by what the lock reports, not by its answer', () => {
    expect(unlocking(success)).toMatchObject({ phase: 'accepted' });
    expect(unlocking(success, unlocked)).toEqual(confirmed);
    expect(unlocking(success, { kind: 'operated' })).toEqual(confirmed);
    expect(unlocking(success, { kind: 'waited' })).toEqual({ phase: 'done', outcome: 'accepted' });
  });

  it('is confirmed when the report overtakes the answer', () => {
    expect(unlocking(unlocked, success)).toEqual(confirmed);
  });

  it('is not confirmed by what an earlier one may have done, before the lock has answered this one', () => {
    const second = (...inputs: ActuationInput[]) =>
      [{ kind: 'left' } as const, ...inputs].reduce(actuationStep, actuationBegun('unlocked', true));
    expect(second({ kind: 'operated' }, unlocked, unanswered)).toMatchObject({ phase: 'sent' });
    expect(second({ kind: 'jam' }, unanswered)).toMatchObject({ phase: 'sent' });
    expect(second({ kind: 'operated' }, success)).toMatchObject({ phase: 'accepted' });
    expect(second({ kind: 'operated' }, success, unlocked)).toEqual(confirmed);
    // The event of the first one, which the lock repeats: this one has jammed.
    expect(second({ kind: 'jam' }, success, between, { kind: 'operated' }, { kind: 'waited' })).toEqual(
      jammed,
    );
    expect(second(success, { kind: 'operated' }, unlocked)).toEqual(confirmed);
    // The lock does not report the bolt once more: its state must be read.
    expect(second(unlocked, success)).toMatchObject({ phase: 'accepted', unattributed: true });
    expect(second(success)).toMatchObject({ phase: 'accepted', unattributed: false });
  });

  it('of the bolt to locked is not confirmed either, before the lock has answered it', () => {
    const lock = (...inputs: ActuationInput[]) =>
      [{ kind: 'left' } as const, ...inputs].reduce(actuationStep, actuationBegun('locked', true));
    expect(lock(locked, unanswered)).toMatchObject({ phase: 'sent' });
    expect(lock(locked, success, locked)).toEqual(confirmed);
  });

  it('is jammed when the lock says so, or its bolt stays between', () => {
    expect(unlocking(success, { kind: 'jam' })).toEqual(jammed);
    expect(unlocking({ kind: 'jam' }, success)).toEqual(jammed);
    expect(unlocking(success, between, { kind: 'waited' })).toEqual(jammed);
    expect(unlocking(success, between, unlocked)).toEqual(confirmed);
  });

  it.each<[string, unknown, number]>([
    // ZCL rev. 8, table 2-12: FAILURE, NOT_AUTHORIZED, UNSUP_COMMAND.
    ['in a successful response', { status: 1 }, 0x01],
    ['in a successful response, not authorised', { status: 0x7e }, 0x7e],
    ['in a failure default response', { cmdId: 3, statusCode: 0x81 }, 0x81],
  ])('is refused by a status %s', (_, payload, status) => {
    expect(unlocking({ kind: 'answered', payload })).toEqual({ phase: 'refused', status });
  });

  it('is accepted by a default response of success, and ends by the report', () => {
    const answered: ActuationInput = { kind: 'answered', payload: { cmdId: 3, statusCode: 0 } };
    expect(unlocking(answered)).toMatchObject({ phase: 'accepted' });
    expect(unlocking(answered, unlocked)).toEqual(confirmed);
    expect(unlocking(answered, { kind: 'jam' })).toEqual(jammed);
  });

  it.each<[string, ActuationInput]>([
    ['nothing', unanswered],
    ['a negative confirmation', unconfirmed],
    ['a response without a status', { kind: 'answered', payload: {} }],
    ['no payload', { kind: 'answered', payload: undefined }],
    ['a missing status', { kind: 'answered', payload: { status: Number.NaN } }],
  ])('is open after %s, and ends by what the lock says later', (_, input) => {
    expect(unlocking(input)).toMatchObject({ phase: 'sent', doubt: expect.any(String) });
    expect(unlocking(input, { kind: 'unnamed' })).toMatchObject({ phase: 'sent' });
    expect(unlocking(input, success, unlocked)).toEqual(confirmed);
    expect(unlocking(input, { kind: 'operated' })).toEqual(confirmed);
    expect(unlocking(input, unlocked, { kind: 'unnamed' })).toEqual(confirmed);
    expect(unlocking(input, { kind: 'jam' }, { kind: 'unnamed' })).toEqual(jammed);
  });

  it('keeps the first reason why no answer came', () => {
    expect(unlocking(unconfirmed, unanswered)).toMatchObject({ doubt: 'there is no route to the lock' });
  });

  it('is not ended by a report of the bolt that an event ascribes to a hand or a key', () => {
    const byHand: ActuationInput = { kind: 'operatedByOther' };
    expect(unlocking(unconfirmed, byHand, unlocked, { kind: 'unnamed' })).toMatchObject({ phase: 'sent' });
    expect(unlocking(unconfirmed, unlocked, byHand, { kind: 'unnamed' })).toMatchObject({ phase: 'sent' });
    expect(unlocking(byHand, unlocked, unanswered)).toMatchObject({ phase: 'sent' });
    expect(unlocking(byHand, unlocked, { kind: 'operated' })).toEqual(confirmed);
  });

  it('that was accepted is not confirmed by a movement that an event ascribes to a hand or a key', () => {
    const byHand: ActuationInput = { kind: 'operatedByOther' };
    const accepted = { phase: 'done', outcome: 'accepted' };
    expect(unlocking(success, byHand, unlocked, { kind: 'waited' })).toEqual(accepted);
    expect(unlocking(byHand, unlocked, success, { kind: 'waited' })).toEqual(accepted);
    expect(unlocking(success, byHand, unlocked, { kind: 'operated' })).toEqual(confirmed);
    const second = [{ kind: 'left' } as const, byHand, success, unlocked, { kind: 'waited' } as const];
    expect(second.reduce(actuationStep, actuationBegun('unlocked', true))).toEqual(accepted);
  });

  it('waits for the event that names who moved the bolt, where the lock sends such events', () => {
    const byHand: ActuationInput = { kind: 'operatedByOther' };
    const named = (...inputs: ActuationInput[]) =>
      [{ kind: 'left' } as const, ...inputs].reduce(actuationStep, actuationBegun('unlocked', false, true));
    for (const inputs of [
      [success, unlocked],
      [unlocked, success],
    ]) {
      expect(named(...inputs)).toMatchObject({ phase: 'accepted', evidence: 'reached' });
      expect(named(...inputs, { kind: 'operated' })).toEqual(confirmed);
      expect(named(...inputs, byHand, { kind: 'unnamed' })).toMatchObject({ phase: 'accepted' });
      expect(named(...inputs, byHand, { kind: 'waited' })).toEqual({ phase: 'done', outcome: 'accepted' });
      // The event is lost.
      expect(named(...inputs, { kind: 'unnamed' })).toEqual(confirmed);
    }
    expect(named({ kind: 'operated' })).toEqual(confirmed);
    expect(named(success, unlocked, { kind: 'jam' })).toEqual(jammed);
  });

  it('waits for the answer when the lock contradicts itself', () => {
    expect(unlocking({ kind: 'jam' }, { kind: 'operated' })).toMatchObject({ phase: 'sent' });
  });

  it('takes nothing that is said before it leaves for an answer to it', () => {
    const begun = actuationBegun('unlocked');
    for (const input of [{ kind: 'operated' }, { kind: 'jam' }, unlocked] as const)
      expect(actuationStep(begun, input)).toBe(begun);
  });

  it('is not believed by a state that says nothing', () => {
    for (const value of [1, 3, 0xff, Number.NaN, undefined, '2'])
      expect(unlocking(success, lockState(value))).toMatchObject({ phase: 'accepted' });
  });

  it('stays as it ended', () => {
    const end = unlocking(success, unlocked);
    for (const input of [{ kind: 'jam' }, unanswered, success] as const)
      expect(actuationStep(end, input)).toBe(end);
  });
});

describe('a lock command', () => {
  it('is confirmed by the state of the bolt alone, with or without an answer', () => {
    expect(having('locked', success, { kind: 'operated' })).toMatchObject({ phase: 'accepted' });
    expect(having('locked', success, locked)).toEqual(confirmed);
    expect(having('locked', unconfirmed, locked)).toEqual(confirmed);
    expect(having('locked', unlocked, success)).toMatchObject({ phase: 'accepted' });
    expect(having('locked', unlocked, { kind: 'unnamed' })).toMatchObject({ phase: 'sent' });
  });
});
