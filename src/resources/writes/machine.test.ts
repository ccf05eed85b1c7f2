import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENCODER_ERROR_CODES, ENTRY_STATUSES } from '../../../drivers/encoder/messages.ts';
import {
  type Entry,
  type EntryReport,
  entryStatus,
  type Input,
  type Job,
  jobStatus,
  type KeyOutcome,
  OPEN_STATUSES,
  type TerminalStatus,
  transition,
} from './machine.ts';

const open = (status: (typeof OPEN_STATUSES)[number], keyId = 'k0'): Entry => ({
  keyId,
  ended: false,
  status,
});
const ended = (status: TerminalStatus, keyId = 'k0', late: KeyOutcome | null = null): Entry => ({
  keyId,
  ended: true,
  outcome: { status },
  late,
});
const waiting: Job = { phase: 'waiting', entries: [open('queued')] };
const sent = (entry: Entry, cancelling = false): Job => ({
  phase: 'sent',
  journal: 'J1',
  cancelling,
  entries: [entry, open('queued', 'k1')],
});
const progress = (status: EntryReport['status'], error?: EntryReport['error']): Input => ({
  type: 'progress',
  report: { keyId: 'k0', status, error },
});
const held = (known: boolean, entries: EntryReport[] = []): Input => ({ type: 'held', known, entries });

describe('one entry', () => {
  it.each<[string, Job, Input, string[]]>([
    ['moves on as reported', sent(open('queued')), progress('started'), ['started', 'queued']],
    ['skips steps', sent(open('queued')), progress('writing'), ['writing', 'queued']],
    ['ends without any step', sent(open('queued')), progress('written'), ['written', 'queued']],
    ['never goes back', sent(open('writing')), progress('cardRequested'), ['writing', 'queued']],
    ['is not moved by a doubled report', sent(open('writing')), progress('writing'), ['writing', 'queued']],
    [
      'failed/CANCELLED is cancelled',
      sent(open('started')),
      progress('failed', { code: 'CANCELLED' }),
      ['cancelled', 'queued'],
    ],
    [
      'failed/EXPIRED is expired',
      sent(open('started')),
      progress('failed', { code: 'EXPIRED' }),
      ['expired', 'queued'],
    ],
    [
      'failed is failed',
      sent(open('started')),
      progress('failed', { code: 'NO_CARD' }),
      ['failed', 'queued'],
    ],
    ['unknown is unknown', sent(open('writing')), progress('unknown'), ['unknown', 'queued']],
    ['stays ended', sent(ended('written')), progress('failed', { code: 'NO_CARD' }), ['written', 'queued']],
    ['does not move before the job is sent', waiting, progress('started'), ['queued']],
    [
      'of another job is not touched',
      sent(open('queued')),
      { type: 'progress', report: { keyId: 'kx', status: 'written' } },
      ['queued', 'queued'],
    ],
    [
      'follows up/job',
      sent(open('queued')),
      held(true, [{ keyId: 'k1', status: 'written' }]),
      ['queued', 'written'],
    ],
    ['that up/job does not list stays as it is', sent(open('writing')), held(true), ['writing', 'queued']],
    [
      'is queued again when the encoder never had the job',
      sent(open('queued')),
      held(false),
      ['queued', 'queued'],
    ],
    [
      'is cancelled when the encoder never had the job',
      sent(open('queued'), true),
      held(false),
      ['cancelled', 'cancelled'],
    ],
    [
      'is unknown when the encoder forgot the job it had begun',
      sent(open('started')),
      held(false),
      ['unknown', 'unknown'],
    ],
    [
      'is unknown when the encoder forgot a job it had partly written',
      sent(ended('written'), true),
      held(false),
      ['written', 'unknown'],
    ],
    [
      'is unknown when the journal changed since',
      sent(open('queued')),
      { type: 'born', journal: 'J2' },
      ['unknown', 'unknown'],
    ],
    [
      'lives on under the same journal',
      sent(open('writing')),
      { type: 'born', journal: 'J1' },
      ['writing', 'queued'],
    ],
    [
      'that was never sent survives a change of journal',
      waiting,
      { type: 'born', journal: 'J2' },
      ['queued'],
    ],
    ['that was never sent is cancelled at once', waiting, { type: 'cancel' }, ['cancelled']],
    [
      'that was sent is left to the encoder to cancel',
      sent(open('queued')),
      { type: 'cancel' },
      ['queued', 'queued'],
    ],
    ['that was never sent expires', waiting, { type: 'deadline' }, ['expired']],
    ['that was sent outlives the deadline', sent(open('queued')), { type: 'deadline' }, ['queued', 'queued']],
    [
      'that was sent ends unknown after the grace',
      sent(open('writing')),
      { type: 'graceOver' },
      ['unknown', 'unknown'],
    ],
    ['that no one can read any more fails before it is sent', waiting, { type: 'unreadable' }, ['failed']],
    [
      'that was sent is not failed for being unreadable',
      sent(open('queued')),
      { type: 'unreadable' },
      ['queued', 'queued'],
    ],
  ])('%s', (_name, job, input, expected) => {
    expect(transition(job, input).job.entries.map(entryStatus)).toEqual(expected);
  });

  it.each<[string, Job, Input, KeyOutcome | null]>([
    ['keeps a later, different outcome', sent(ended('unknown')), progress('written'), { status: 'written' }],
    [
      'keeps the first of them',
      sent(ended('unknown', 'k0', { status: 'written' })),
      progress('failed'),
      { status: 'written' },
    ],
    ['takes the same outcome as said twice', sent(ended('written')), progress('written'), null],
    ['does not mind a step that was overtaken', sent(ended('written')), progress('writing'), null],
    [
      'takes failed/CANCELLED as the cancelled it is',
      sent(ended('cancelled')),
      progress('failed', { code: 'CANCELLED' }),
      null,
    ],
  ])('that has ended %s', (_name, job, input, late) => {
    const after = transition(job, input).job.entries[0];
    expect(after).toMatchObject({ ended: true, late });
  });

  it.each<[Input, KeyOutcome]>([
    [
      progress('failed', { code: 'VERIFY_FAILED', message: 'block 3' }),
      { status: 'failed', error: { code: 'VERIFY_FAILED', message: 'block 3' } },
    ],
    [progress('unknown', { code: 'CARD_REMOVED' }), { status: 'unknown', error: { code: 'CARD_REMOVED' } }],
    [progress('written', { code: 'INTERNAL' }), { status: 'written' }],
  ])('ends with the error the encoder gave, where one belongs', (input, outcome) => {
    expect(transition(sent(open('writing')), input).job.entries[0]).toEqual({
      keyId: 'k0',
      ended: true,
      outcome,
      late: null,
    });
  });

  it.each<[Input, string]>([
    [{ type: 'born', journal: 'J2' }, 'CONNECTION_LOST'],
    [{ type: 'graceOver' }, 'ENCODER_TIMEOUT'],
  ])('that ends unknown says why: %j', (input, code) => {
    const [entry] = transition(sent(open('writing')), input).job.entries;
    expect(entry).toMatchObject({ outcome: { error: { code, message: expect.stringContaining('card') } } });
  });
});

describe('one job', () => {
  it('ends with its last entry', () => {
    const first = transition(sent(open('queued')), progress('written'));
    expect(first.job.phase).toBe('sent');
    const second = transition(first.job, held(true, [{ keyId: 'k1', status: 'written' }]));
    expect(second.job.phase).toBe('ended');
  });

  it('says what it ignored', () => {
    expect(transition(waiting, progress('written')).steps).toEqual([
      { type: 'ignored', keyId: 'k0', reason: 'never sent' },
    ]);
    const stranger: Input = { type: 'progress', report: { keyId: 'kx', status: 'written' } };
    expect(transition(sent(open('queued')), stranger).steps).toEqual([
      { type: 'ignored', keyId: 'kx', reason: 'unknown key' },
    ]);
  });

  it.each<[Entry[], string]>([
    [[open('queued'), open('queued')], 'queued'],
    [[open('started'), open('queued')], 'inProgress'],
    [[ended('written'), open('queued')], 'inProgress'],
    [[ended('written'), ended('written')], 'written'],
    [[ended('written'), ended('cancelled')], 'cancelled'],
    [[ended('cancelled'), ended('expired')], 'expired'],
    [[ended('expired'), ended('failed')], 'failed'],
    [[ended('failed'), ended('unknown')], 'unknown'],
  ])('of %j is %s', (entries, status) => expect(jobStatus(entries)).toBe(status));
});

const keyId = fc.constantFrom('k0', 'k1', 'k2', 'stranger');
const report: fc.Arbitrary<EntryReport> = fc.record({
  keyId,
  status: fc.constantFrom(...ENTRY_STATUSES),
  error: fc.option(fc.record({ code: fc.constantFrom(...ENCODER_ERROR_CODES) }), { nil: undefined }),
});
const journal = fc.constantFrom('J1', 'J2');
const input: fc.Arbitrary<Input> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('progress' as const), report }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('held' as const),
      known: fc.boolean(),
      entries: fc.array(report, { maxLength: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('sent' as const), journal }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('born' as const), journal }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Input>(
      { type: 'cancel' },
      { type: 'deadline' },
      { type: 'graceOver' },
      { type: 'unreadable' },
    ),
  },
);

it('whatever happens, in whatever order, an entry only moves forward and ends once', () => {
  fc.assert(
    fc.property(fc.array(input, { maxLength: 40 }), (inputs) => {
      let job: Job = { phase: 'waiting', entries: ['k0', 'k1', 'k2'].map((id) => open('queued', id)) };
      const ends = [0, 0, 0];
      const lates = [0, 0, 0];
      const rank = [0, 0, 0];
      for (const next of inputs) {
        const before = job;
        const { job: after, steps } = transition(before, next);
        for (const step of steps) {
          if (step.type === 'ignored') continue;
          if (step.type === 'late') {
            lates[step.index] = (lates[step.index] ?? 0) + 1;
            expect(ends[step.index]).toBe(1);
            continue;
          }
          const reached = step.entry.ended ? OPEN_STATUSES.length : OPEN_STATUSES.indexOf(step.entry.status);
          expect(reached).toBeGreaterThan(rank[step.index] ?? 0);
          rank[step.index] = reached;
          if (step.entry.ended) ends[step.index] = (ends[step.index] ?? 0) + 1;
        }
        expect(after.phase === 'ended').toBe(after.entries.every((entry) => entry.ended));
        if (after.phase === 'waiting')
          expect(after.entries.map(entryStatus)).toEqual(Array(3).fill('queued'));
        job = after;
      }
      for (const [index, entry] of job.entries.entries()) {
        expect(ends[index]).toBe(entry.ended ? 1 : 0);
        expect(lates[index]).toBe(entry.ended && entry.late ? 1 : 0);
      }
      const settled = transition(transition(job, { type: 'deadline' }).job, { type: 'graceOver' }).job;
      expect(settled.phase).toBe('ended');
    }),
    { numRuns: 2_000 },
  );
});
