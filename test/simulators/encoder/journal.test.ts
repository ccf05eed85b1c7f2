import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openJournal } from './journal.ts';

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'journal-'));
  file = join(directory, 'journal.jsonl');
});
afterEach(() => rmSync(directory, { recursive: true }));

it('keeps its identity, epoch, jobs and unacknowledged messages over a restart, and draws a new boot', () => {
  using before = openJournal(file);
  before.sawEpoch(7);
  before.addJob('job', ['a', 'b']);
  before.report('progress', { jobId: 'job', keyId: 'a', status: 'written' });
  before.report('progress', { jobId: 'job', keyId: 'b', status: 'failed', error: { code: 'NO_CARD' } });
  before.acknowledge(before.boot, 1);

  using after = openJournal(file);
  expect(after.id).toBe(before.id);
  expect(after.boot).not.toBe(before.boot);
  expect(after.epoch).toBe(7);
  expect(after.job('job')?.entries).toEqual([
    { keyId: 'a', status: 'written' },
    { keyId: 'b', status: 'failed', error: { code: 'NO_CARD' } },
  ]);
  const next = after.report('job', { jobId: 'job' });
  expect(next.content).toEqual({ boot: after.boot, seq: 1, jobId: 'job' });
  expect(after.unacknowledged().map(({ content }) => [content.boot, content.seq])).toEqual([
    [before.boot, 2],
    [after.boot, 1],
  ]);
});

it('has either the whole of a message or nothing, at whatever byte the power went', () => {
  {
    using journal = openJournal(file);
    journal.addJob('job', ['a']);
    journal.report('progress', { jobId: 'job', keyId: 'a', status: 'started' });
    journal.report('progress', { jobId: 'job', keyId: 'a', status: 'writing' });
  }
  const whole = readFileSync(file);
  const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
  for (let length = lastLine; length <= whole.length; length += 1) {
    writeFileSync(file, whole.subarray(0, length));
    using journal = openJournal(file);
    const isWhole = length === whole.length;
    expect(journal.job('job')?.entries[0]?.status).toBe(isWhole ? 'writing' : 'started');
    expect(journal.unacknowledged()).toHaveLength(isWhole ? 2 : 1);
  }
});

it('takes a journal that is damaged in its middle for lost', () => {
  const first = openJournal(file);
  first.addJob('job', ['a']);
  first[Symbol.dispose]();
  appendFileSync(file, '{"kind":\n{"kind":"epoch","epoch":3}\n');
  using journal = openJournal(file);
  expect(journal.id).not.toBe(first.id);
  expect(journal.job('job')).toBeUndefined();
});

it('never takes an entry back', () => {
  using journal = openJournal(file);
  journal.addJob('job', ['a']);
  for (const status of ['cardDetected', 'started', 'unknown', 'written']) {
    journal.report('progress', { jobId: 'job', keyId: 'a', status });
  }
  expect(journal.job('job')?.entries[0]?.status).toBe('unknown');
});

it('forgets what is over when it grows long, and nothing else', () => {
  using journal = openJournal(file, { durable: false });
  journal.addJob('job', ['a']);
  for (let count = 0; count < 3_000; count += 1) {
    const { content } = journal.report('status', { online: true });
    journal.acknowledge(content.boot, content.seq);
  }
  journal.report('progress', { jobId: 'job', keyId: 'a', status: 'started' });
  expect(readFileSync(file, 'utf8').split('\n').length).toBeLessThan(1_200);
  using after = openJournal(file);
  expect(after.job('job')?.entries[0]?.status).toBe('started');
  expect(after.unacknowledged()).toHaveLength(1);
});
