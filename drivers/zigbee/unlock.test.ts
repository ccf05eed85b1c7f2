import { describe, expect, it } from 'vitest';
import { UNLOCK_BEGUN, type UnlockInput, unlockStep } from './unlock.ts';

const having = (...inputs: UnlockInput[]) =>
  [{ kind: 'left' } as const, ...inputs].reduce(unlockStep, UNLOCK_BEGUN);
const success: UnlockInput = { kind: 'answered', payload: { status: 0 } };

describe('an unlock', () => {
  it('is confirmed by what the lock reports, not by its answer', () => {
    expect(having(success)).toMatchObject({ phase: 'accepted' });
    expect(having(success, { kind: 'lockState', value: 2 })).toEqual({ phase: 'done', outcome: 'confirmed' });
    expect(having(success, { kind: 'operated' })).toEqual({ phase: 'done', outcome: 'confirmed' });
    expect(having(success, { kind: 'waited' })).toEqual({ phase: 'done', outcome: 'accepted' });
  });

  it('is confirmed when the report overtakes the answer', () => {
    expect(having({ kind: 'lockState', value: 2 }, success)).toEqual({ phase: 'done', outcome: 'confirmed' });
  });

  it('is jammed when the lock says so, or its bolt stays between', () => {
    const jammed = { phase: 'done', outcome: 'jammed' };
    const between: UnlockInput = { kind: 'lockState', value: 0 };
    expect(having(success, { kind: 'jam' })).toEqual(jammed);
    expect(having({ kind: 'jam' }, success)).toEqual(jammed);
    expect(having(success, between, { kind: 'waited' })).toEqual(jammed);
    expect(having(success, between, { kind: 'lockState', value: 2 })).toMatchObject({ outcome: 'confirmed' });
  });

  it.each<[string, unknown]>([
    // ZCL rev. 8, table 2-12: FAILURE, NOT_AUTHORIZED, UNSUP_COMMAND.
    ['in a successful response', { status: 1 }],
    ['in a successful response, not authorised', { status: 0x7e }],
    ['in a failure default response', { cmdId: 3, statusCode: 0x81 }],
  ])('is refused by a status %s', (_, payload) => {
    expect(having({ kind: 'answered', payload })).toMatchObject({ phase: 'failed', code: 'REFUSED' });
  });

  it.each<[string, UnlockInput]>([
    ['nothing', { kind: 'unanswered', reason: 'no answer' }],
    ['a response without a status', { kind: 'answered', payload: {} }],
    ['no payload', { kind: 'answered', payload: undefined }],
    ['a missing status', { kind: 'answered', payload: { status: Number.NaN } }],
    ['success to another kind of command', { kind: 'answered', payload: { cmdId: 1, statusCode: 0 } }],
  ])('is unknown after %s', (_, input) => {
    expect(having(input)).toMatchObject({ phase: 'failed', code: 'OUTCOME_UNKNOWN' });
  });

  it('is confirmed at once by an event that names the radio, and waits for no answer', () => {
    expect(having({ kind: 'operated' })).toEqual({ phase: 'done', outcome: 'confirmed' });
  });

  it('waits for the answer after a report of the bolt, which may be of a hand; the report stands without it', () => {
    const lost: UnlockInput = { kind: 'unanswered', reason: 'no answer' };
    expect(having({ kind: 'lockState', value: 2 })).toMatchObject({ phase: 'sent' });
    expect(having({ kind: 'lockState', value: 2 }, lost)).toEqual({ phase: 'done', outcome: 'confirmed' });
  });

  it('waits for the answer when the lock contradicts itself', () => {
    expect(having({ kind: 'jam' }, { kind: 'operated' })).toMatchObject({ phase: 'sent' });
  });

  it('takes nothing that is said before it leaves for an answer to it', () => {
    for (const input of [{ kind: 'operated' }, { kind: 'jam' }, { kind: 'lockState', value: 2 }] as const)
      expect(unlockStep(UNLOCK_BEGUN, input)).toBe(UNLOCK_BEGUN);
  });

  it('is not believed by a state that says nothing', () => {
    for (const value of [1, 3, 0xff, Number.NaN, undefined, '2'])
      expect(having(success, { kind: 'lockState', value })).toMatchObject({ phase: 'accepted' });
  });

  it('did not reach a lock that the radio could not reach', () => {
    expect(having({ kind: 'undelivered', reason: 'expired' })).toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(having(success, { kind: 'undelivered', reason: 'expired' })).toMatchObject({ phase: 'accepted' });
  });

  it('stays as it ended', () => {
    const end = having(success, { kind: 'lockState', value: 2 });
    for (const input of [{ kind: 'jam' }, { kind: 'unanswered', reason: '' }, success] as const)
      expect(unlockStep(end, input)).toBe(end);
  });
});
