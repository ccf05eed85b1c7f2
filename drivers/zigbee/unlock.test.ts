import { describe, expect, it } from 'vitest';
import {
  type ActuationInput,
  actuationBegun,
  actuationStep,
  type Earlier,
  isReadDue,
  type Target,
} from './unlock.ts';

const afterLeft =
  (target: Target, earlier: Earlier = 'none', namesRadio = false) =>
  (...inputs: ActuationInput[]) =>
    [{ kind: 'left' } as const, ...inputs].reduce(actuationStep, actuationBegun(target, earlier, namesRadio));
const [unlocking, locking] = [afterLeft('unlocked'), afterLeft('locked')];
const success: ActuationInput = { kind: 'answered', payload: { status: 0 } };
/** ZCL rev. 8, table 7-10. */
const lockState = (value: unknown): ActuationInput => ({ kind: 'lockState', value });
const [between, locked, unlocked] = [lockState(0), lockState(1), lockState(2)];
const read = (value: unknown): ActuationInput => ({ kind: 'read', value });
const [readBetween, readLocked, readUnlocked] = [read(0), read(1), read(2)];
const operated: ActuationInput = { kind: 'operated', to: 'unlocked' };
const lockedByRadio: ActuationInput = { kind: 'operated', to: 'locked' };
const [byHand, jam, unnamed, waited] = (['operatedByOther', 'jam', 'unnamed', 'waited'] as const).map(
  (kind): ActuationInput => ({ kind }),
) as [ActuationInput, ActuationInput, ActuationInput, ActuationInput];
const unconfirmed: ActuationInput = { kind: 'unconfirmed', reason: 'there is no route to the lock' };
const unanswered: ActuationInput = { kind: 'unanswered', reason: 'no answer' };
const confirmed = { phase: 'done', outcome: 'confirmed' };
const jammed = { phase: 'done', outcome: 'jammed' };
const accepted = { phase: 'done', outcome: 'accepted' };

describe('an unlock', () => {
  it('is confirmed by what the lock says it is now, not by its answer', () => {
    expect(unlocking(success)).toMatchObject({ phase: 'accepted' });
    expect(unlocking(success, operated)).toEqual(confirmed);
    expect(unlocking(success, readUnlocked)).toEqual(confirmed);
    expect(unlocking(success, waited)).toEqual(accepted);
  });

  it('has the bolt read when a report says that it is drawn, which may be older than the command', () => {
    expect(isReadDue(unlocking(success))).toBe(false);
    for (const state of [unlocking(success, unlocked), unlocking(unlocked, success)]) {
      expect(state).toMatchObject({ phase: 'accepted' });
      expect(isReadDue(state)).toBe(true);
      expect(actuationStep(state, readUnlocked)).toEqual(confirmed);
      const denied = actuationStep(state, readLocked);
      expect(isReadDue(denied)).toBe(false);
      expect(actuationStep(denied, waited)).toEqual(accepted);
      // Another movement.
      expect(isReadDue(actuationStep(denied, unlocked))).toBe(true);
      expect(actuationStep(state, waited)).toEqual(accepted);
    }
  });

  it('that was not answered has it read once there was the time for an answer', () => {
    for (const inputs of [[unlocked], [unconfirmed, unlocked], [unlocked, unanswered]]) {
      const state = unlocking(...inputs);
      expect([state.phase, isReadDue(state)]).toEqual(['sent', false]);
      expect(isReadDue(actuationStep(state, unnamed))).toBe(true);
      expect(unlocking(...inputs, unnamed, readUnlocked)).toEqual(confirmed);
      expect(unlocking(...inputs, unnamed, readLocked, waited)).toMatchObject({ phase: 'sent' });
    }
  });

  it('is not confirmed by what a frame of an earlier one may have done, before the lock has answered this one', () => {
    const second = afterLeft('unlocked', 'frame');
    expect(second(operated, unlocked, readUnlocked, unanswered)).toMatchObject({ phase: 'sent' });
    expect(isReadDue(second(operated, unlocked, unnamed))).toBe(false);
    expect(second(jam, unanswered, waited)).toMatchObject({ phase: 'sent' });
    expect(second(operated, success)).toMatchObject({ phase: 'accepted' });
    expect(second(operated, success, readUnlocked)).toEqual(confirmed);
    // The event of the first one, which the lock repeats: this one has jammed.
    expect(second(jam, success, between, operated, readBetween, waited)).toEqual(jammed);
    expect(second(success, operated)).toMatchObject({ phase: 'accepted' });
    expect(second(success, operated, readUnlocked)).toEqual(confirmed);
    // The lock does not report the bolt once more: its state must be read.
    expect(second(unlocked, success)).toMatchObject({ phase: 'accepted', unattributed: true });
    expect(second(success)).toMatchObject({ phase: 'accepted', unattributed: false });
  });

  it('is not confirmed by an event that an earlier one may owe: it has the bolt read', () => {
    const second = afterLeft('unlocked', 'event', true);
    expect(second(operated, unanswered)).toMatchObject({ phase: 'sent' });
    expect(second(operated, unnamed, readLocked)).toMatchObject({ phase: 'sent' });
    expect(second(operated, unnamed, readUnlocked)).toEqual(confirmed);
    expect(isReadDue(second(success, operated, unnamed))).toBe(true);
    expect(second(success, operated, readLocked, waited)).toEqual(accepted);
    expect(second(byHand, success, operated, readUnlocked, waited)).toEqual(accepted);
  });

  it('waits for the event that may name a hand also while an earlier one may owe its own', () => {
    const second = afterLeft('unlocked', 'event', true);
    expect(isReadDue(second(success, unlocked))).toBe(false);
    expect(isReadDue(second(success, operated))).toBe(false);
    expect(second(success, unlocked, readUnlocked)).toMatchObject({ phase: 'accepted' });
    expect(second(success, unlocked, readUnlocked, byHand, unnamed, waited)).toEqual(accepted);
    expect(second(success, unlocked, unnamed, readUnlocked)).toEqual(confirmed);
  });

  it('of the bolt to locked is confirmed by a read of it, whatever may arrive', () => {
    const lock = afterLeft('locked', 'frame');
    expect(lock(locked, unanswered)).toMatchObject({ phase: 'sent' });
    expect(lock(unanswered, readLocked)).toEqual(confirmed);
    expect(lock(locked, success, locked)).toMatchObject({ phase: 'accepted' });
    expect(lock(locked, success, readLocked)).toEqual(confirmed);
  });

  it('is jammed when the lock says so and shows no other bolt, or answers that its bolt stays between', () => {
    for (const inputs of [
      [success, jam],
      [jam, success],
    ]) {
      expect(isReadDue(unlocking(...inputs))).toBe(false);
      expect(isReadDue(unlocking(...inputs, unnamed))).toBe(true);
      for (const value of [0, 1, undefined])
        expect(unlocking(...inputs, unnamed, read(value))).toEqual(jammed);
      expect(unlocking(...inputs, waited)).toEqual(jammed);
      // The alarm is of an earlier one.
      expect(unlocking(...inputs, unnamed, readUnlocked)).toEqual(confirmed);
    }
    expect(unlocking(success, readBetween, waited)).toEqual(jammed);
    // A report may be older than the command, as any.
    expect(unlocking(success, between, waited)).toEqual(accepted);
    // It need not have the command.
    expect(unlocking(readBetween, waited)).toMatchObject({ phase: 'sent' });
    expect(unlocking(success, between, unlocked, readUnlocked)).toEqual(confirmed);
    expect(unlocking(success, between, unlocked, waited)).toEqual(accepted);
  });

  it.each<[string, unknown, number]>([
    // ZCL rev. 8, table 2-12: FAILURE, NOT_AUTHORIZED, UNSUP_COMMAND.
    ['in a successful response', { status: 1 }, 0x01],
    ['in a successful response, not authorised', { status: 0x7e }, 0x7e],
    ['in a failure default response', { cmdId: 3, statusCode: 0x81 }, 0x81],
  ])('is refused by a status %s', (_, payload, status) => {
    expect(unlocking({ kind: 'answered', payload })).toEqual({ phase: 'refused', status });
  });

  it('is accepted by a default response of success, and ends by the bolt', () => {
    const answered: ActuationInput = { kind: 'answered', payload: { cmdId: 3, statusCode: 0 } };
    expect(unlocking(answered)).toMatchObject({ phase: 'accepted' });
    expect(unlocking(answered, unlocked, readUnlocked)).toEqual(confirmed);
    expect(unlocking(answered, jam, waited)).toEqual(jammed);
  });

  it.each<[string, ActuationInput]>([
    ['nothing', unanswered],
    ['a negative confirmation', unconfirmed],
    ['a response without a status', { kind: 'answered', payload: {} }],
    ['no payload', { kind: 'answered', payload: undefined }],
    ['a missing status', { kind: 'answered', payload: { status: Number.NaN } }],
  ])('is open after %s, and ends by what the lock says later', (_, input) => {
    expect(unlocking(input)).toMatchObject({ phase: 'sent', doubt: expect.any(String) });
    expect(unlocking(input, unnamed)).toMatchObject({ phase: 'sent' });
    expect(unlocking(input, success, unlocked, readUnlocked)).toEqual(confirmed);
    expect(unlocking(input, operated)).toEqual(confirmed);
    expect(unlocking(input, unlocked, unnamed, readUnlocked)).toEqual(confirmed);
    expect(unlocking(input, jam, waited)).toEqual(jammed);
  });

  it('keeps the first reason why no answer came', () => {
    expect(unlocking(unconfirmed, unanswered)).toMatchObject({ doubt: 'there is no route to the lock' });
  });

  it('is not ended by a bolt that an event ascribes to a hand or a key', () => {
    for (const inputs of [
      [unconfirmed, byHand, unlocked, unnamed],
      [unconfirmed, unlocked, byHand, unnamed],
      [unconfirmed, unlocked, unnamed, byHand],
      [byHand, unlocked, unanswered],
    ]) {
      expect(isReadDue(unlocking(...inputs))).toBe(false);
      expect(unlocking(...inputs, readUnlocked)).toMatchObject({ phase: 'sent' });
    }
    expect(unlocking(byHand, unlocked, operated)).toEqual(confirmed);
  });

  it('that was accepted is not confirmed by a movement that an event ascribes to a hand or a key', () => {
    expect(unlocking(success, byHand, unlocked, readUnlocked, waited)).toEqual(accepted);
    expect(unlocking(byHand, unlocked, success, readUnlocked, waited)).toEqual(accepted);
    expect(unlocking(success, byHand, unlocked, operated)).toEqual(confirmed);
    expect(afterLeft('unlocked', 'frame')(byHand, success, unlocked, readUnlocked, waited)).toEqual(accepted);
  });

  it('waits for the event that names who moved the bolt, where the lock sends such events', () => {
    const named = afterLeft('unlocked', 'none', true);
    for (const inputs of [
      [success, unlocked],
      [unlocked, success],
      [success, readUnlocked],
    ]) {
      expect(isReadDue(named(...inputs))).toBe(false);
      expect(named(...inputs, operated)).toEqual(confirmed);
      expect(named(...inputs, byHand, unnamed, readUnlocked)).toMatchObject({ phase: 'accepted' });
      expect(named(...inputs, byHand, waited)).toEqual(accepted);
      // The event is lost.
      expect(isReadDue(named(...inputs, unnamed))).toBe(true);
      expect(named(...inputs, unnamed, readUnlocked)).toEqual(confirmed);
    }
    expect(named(operated)).toEqual(confirmed);
    expect(named(success, unlocked, jam, unnamed, readLocked)).toEqual(jammed);
  });

  it('waits for the answer when the lock contradicts itself', () => {
    expect(unlocking(jam, operated)).toMatchObject({ phase: 'sent' });
  });

  it('takes nothing that is said before it leaves for an answer to it', () => {
    const begun = actuationBegun('unlocked');
    for (const input of [operated, jam, unlocked]) expect(actuationStep(begun, input)).toBe(begun);
  });

  it('is not believed by a state that says nothing', () => {
    for (const value of [1, 3, 0xff, Number.NaN, undefined, '2']) {
      expect(isReadDue(unlocking(success, lockState(value)))).toBe(false);
      expect(unlocking(success, read(value))).toMatchObject({ phase: 'accepted' });
    }
  });

  it('stays as it ended', () => {
    const end = unlocking(success, operated);
    for (const input of [jam, unanswered, success]) expect(actuationStep(end, input)).toBe(end);
  });
});

describe('a lock command', () => {
  it('is confirmed by a read of the bolt alone, with or without an answer', () => {
    expect(locking(success, operated)).toMatchObject({ phase: 'accepted' });
    expect(isReadDue(locking(success, locked))).toBe(true);
    expect(locking(success, locked)).toMatchObject({ phase: 'accepted' });
    expect(locking(success, locked, readLocked)).toEqual(confirmed);
    expect(locking(unconfirmed, locked, unnamed, readLocked)).toEqual(confirmed);
    expect(locking(success, byHand, locked, readLocked)).toEqual(confirmed);
  });

  it('is confirmed by the event that names the radio where that can be of no other, else has the bolt read', () => {
    const named = (...inputs: ActuationInput[]) =>
      [{ kind: 'left' } as const, ...inputs].reduce(
        actuationStep,
        actuationBegun('locked', 'frame', false, true),
      );
    expect(named(success, lockedByRadio)).toEqual(confirmed);
    expect(named(unconfirmed, lockedByRadio)).toEqual(confirmed);
    expect(named(success, operated)).toMatchObject({ phase: 'accepted' });
    // The lock contradicts itself.
    expect(named(jam, success, jam, lockedByRadio)).toEqual(confirmed);
    expect(locking(success, lockedByRadio)).toMatchObject({ phase: 'accepted' });
    expect(isReadDue(locking(success, lockedByRadio))).toBe(true);
    expect(locking(success, lockedByRadio, readUnlocked, waited)).toEqual(accepted);
    expect(locking(lockedByRadio, unnamed, readLocked)).toEqual(confirmed);
    expect(unlocking(success, lockedByRadio, waited)).toEqual(accepted);
    const begun = actuationBegun('locked', 'none', false, true);
    expect(actuationStep(begun, lockedByRadio)).toBe(begun);
  });

  it('is not confirmed by a report that the lock sent before it, and that the lock denies', () => {
    expect(locking(locked, unnamed, readUnlocked)).toMatchObject({ phase: 'sent' });
    expect(locking(success, locked, readUnlocked, waited)).toEqual(accepted);
    expect(locking(unlocked, success)).toMatchObject({ phase: 'accepted' });
    expect(locking(unlocked, unnamed)).toMatchObject({ phase: 'sent' });
  });
});
