/** The example consumers of docs/examples, in Node and in Python, over the events that the gateway makes. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { gapEvent, withReplayed, writeProgressEvent } from '../src/services/events/cloud-event.ts';
import { temporaryFolder } from './temporary.ts';

const SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';
const RECORDED = { systemId: SYSTEM_ID, at: 0, clockSynchronised: true };
const EXAMPLES = join(import.meta.dirname, '../docs/examples');
const CONSUMERS: [string, string[]][] = [
  ['Node', [process.execPath, join(EXAMPLES, 'consumer.js')]],
  ['Python', ['python3', join(EXAMPLES, 'consumer.py')]],
];

function event(n: number, encoderId = 'desk-1', replayed = false, from = 1): string {
  const progress = {
    encoderId,
    requestId: 'r',
    jobId: 'j',
    keyId: `k-${n}`,
    entryIndex: 0,
    entryCount: 1,
    status: 'written',
    totals: {},
    correlationId: 'c',
  };
  return withReplayed(writeProgressEvent(progress, { sequence: n, from }, RECORDED).body, replayed);
}

const gap = (first: number, last: number) =>
  withReplayed(
    gapEvent({ encoderId: 'desk-1', first, last, reason: 'SIZE' }, 'upstream', RECORDED).body,
    false,
  );

it.each(CONSUMERS)('%s leaves out repeats and knows what is missing, also after a restart', (_name, argv) => {
  const file = join(temporaryFolder(), 'state');
  const [program = '', ...args] = argv;
  function consume(...lines: string[]) {
    const { status, stdout, stderr } = spawnSync(program, [...args, file], {
      input: lines.map((line) => `${line}\n`).join(''),
      encoding: 'utf8',
    });
    return { status, written: stdout.trim().split('\n').filter(Boolean), report: JSON.parse(stderr) };
  }
  const first = consume(event(4), event(5), event(5, 'desk-1', true), event(1, 'desk-2'), event(8));
  expect(first.written).toEqual([event(4), event(5), event(1, 'desk-2'), event(8)]);
  const missing = [{ source: `/systems/${SYSTEM_ID}/encoders/desk-1`, sequences: [6, 7] }];
  expect(first).toMatchObject({ status: 1, report: { events: 4, duplicates: 1, missing } });

  // As a crash leaves it.
  writeFileSync(file, '{"source": "/sys', { flag: 'a' });
  const second = consume(event(8), event(7), event(6), event(9));
  expect(second.report).toEqual({ events: 7, duplicates: 1, missing: [] });
  expect(consume(event(9)).report).toMatchObject({ events: 7, duplicates: 1 });
});

it.each(CONSUMERS)('%s misses nothing where a restore or a takeover let the numbers go on', (_name, argv) => {
  const file = join(temporaryFolder(), 'state');
  const [program = '', ...args] = argv;
  // Two takeovers ten seconds apart, and one event that is lost after them.
  const restored = (n: number, from: number) => event(n, 'desk-1', false, from);
  const lines = [event(1), event(2), restored(170_000_000_000, 170_000_000_000)];
  const later = [restored(170_000_001_000, 170_000_001_000), restored(170_000_001_002, 170_000_001_000)];
  const input = [...lines, ...later].map((line) => `${line}\n`).join('');
  const { stderr } = spawnSync(program, [...args, file], { input, encoding: 'utf8' });
  const missing = [{ source: `/systems/${SYSTEM_ID}/encoders/desk-1`, sequences: [170_000_001_001] }];
  expect(JSON.parse(stderr)).toEqual({ events: 5, duplicates: 0, missing });
});

it.each(CONSUMERS)('%s takes a gap record for what it says', (_name, argv) => {
  const file = join(temporaryFolder(), 'state');
  const [program = '', ...args] = argv;
  const input = [event(1), event(5), gap(2, 4), gap(6, 9), event(10)].map((line) => `${line}\n`).join('');
  const { status, stderr } = spawnSync(program, [...args, file], { input, encoding: 'utf8' });
  expect(JSON.parse(stderr)).toEqual({ events: 5, duplicates: 0, missing: [] });
  expect(status).toBe(0);
});
