/** The rules of docs/encoder-protocol.md that an encoder keeps by itself, without a network. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { manualClock } from '../../manual-clock.ts';
import { type Card, openCards, readPhysicalLog } from './cards.ts';
import { INSTANT, type Moment } from './commands.ts';
import { openJournal } from './journal.ts';
import { openWriter } from './writer.ts';

let directory: string;
let open: DisposableStack;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'writer-'));
  open = new DisposableStack();
});
afterEach(() => {
  open.dispose();
  rmSync(directory, { recursive: true });
});

/** One life of an encoder without a link. */
function power({
  cards: stack = [] as Partial<Card>[],
  endless = false,
  crashAt = undefined as Moment | undefined,
} = {}) {
  const journal = open.use(openJournal(join(directory, 'journal.jsonl')));
  const cards = open.use(openCards(join(directory, 'cards.jsonl'), { endless }));
  for (const card of stack) cards.add(card);
  const clock = manualClock();
  const stop = new AbortController();
  const obstacles: { code: string }[] = [];
  const writer = openWriter({
    journal,
    cards,
    clock,
    timings: { ...INSTANT, writeMs: 1_000, cardTimeoutMs: 20_000 },
    obstacle: () => obstacles[0],
    reported: () => undefined,
    moment({ status, when }) {
      if (crashAt?.status === status && crashAt.when === when) throw new Error('power cut');
    },
  });
  const running = writer.run(stop.signal).catch((error: Error) => error.message);
  open.defer(() => stop.abort());
  const write = (keyIds: string[], ttlMs = 60_000, jobId = 'job') =>
    writer.write({
      epoch: 1,
      jobId,
      requestId: 'request',
      ttlMs,
      data: keyIds.map((keyId) => ({ keyId, blocks: [`data of ${keyId}`] })),
    });
  const progress = () =>
    journal
      .unacknowledged()
      .map(({ content }) => [content.keyId, content.status, (content.error as { code: string })?.code]);
  const outcomes = (jobId = 'job') =>
    journal.job(jobId)?.entries.map(({ status, error }) => (error ? `${status} ${error.code}` : status));
  return { journal, cards, clock, writer, write, progress, outcomes, obstacles, running };
}

const onCards = () =>
  readPhysicalLog(join(directory, 'cards.jsonl')).filter(({ what }) => what === 'complete');

it('writes the entries in order, each to a card of its own, and says every step', async () => {
  const { write, clock, progress } = power({ endless: true });
  write(['a', 'b']);
  await clock.advance(10_000);
  const steps = ['started', 'cardRequested', 'cardDetected', 'writing', 'written'];
  expect(progress()).toEqual(['a', 'b'].flatMap((key) => steps.map((step) => [key, step, undefined])));
  expect(onCards()).toMatchObject([{ blocks: ['data of a'] }, { blocks: ['data of b'] }]);
  expect(new Set(onCards().map(({ cardId }) => cardId)).size).toBe(2);
});

it('says what is wrong with a card', async () => {
  const { write, clock, outcomes } = power({
    cards: [
      { kind: 'incompatible' },
      { kind: 'damaged' },
      { kind: 'locked' },
      { kind: 'unverifiable' },
      { removedDuring: 'cardDetected' },
      { removedDuring: 'writing' },
    ],
  });
  write(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  await clock.advance(50_000);
  expect(outcomes()).toEqual([
    'failed CARD_INCOMPATIBLE',
    'failed CARD_DAMAGED',
    'failed CARD_LOCKED',
    'failed VERIFY_FAILED',
    'failed CARD_REMOVED',
    'failed CARD_REMOVED',
    'failed NO_CARD',
  ]);
  expect(onCards()).toEqual([]);
});

it('refuses while it may not write', async () => {
  const { write, clock, outcomes, obstacles } = power({ endless: true });
  obstacles.push({ code: 'ENCODER_ALARM' });
  write(['a']);
  await clock.advance(10);
  expect(outcomes()).toEqual(['failed ENCODER_ALARM']);
});

it('finishes only the card in hand when the time is over', async () => {
  const { write, clock, outcomes } = power({ endless: true });
  write(['a', 'b'], 500);
  await clock.advance(2_000);
  expect(outcomes()).toEqual(['written', 'failed EXPIRED']);
});

it('does not wait for a card beyond the time', async () => {
  const { write, clock, outcomes } = power();
  write(['a', 'b'], 5_000);
  await clock.advance(5_000);
  expect(outcomes()).toEqual(['failed EXPIRED', 'failed EXPIRED']);
});

it('counts the time from the last repetition of a write', async () => {
  const { write, clock, outcomes, cards } = power();
  write(['a', 'b'], 25_000);
  await clock.advance(15_000);
  write(['a', 'b'], 25_000);
  await clock.advance(10_000);
  cards.add({});
  await clock.advance(2_000);
  expect(outcomes()).toEqual(['failed NO_CARD', 'written']);
});

it('cancels what has no card yet, at once', async () => {
  const { write, clock, outcomes, cards, writer } = power();
  cards.add({});
  write(['a', 'b', 'c']);
  await clock.advance(500);
  expect(writer.cancel('job')).toBe(true);
  await clock.advance(600);
  expect(outcomes()).toEqual(['written', 'failed CANCELLED', 'failed CANCELLED']);
  expect(writer.cancel('another')).toBe(false);
});

it('ends unknown what it was writing when the power went, and throws that card away', async () => {
  const first = power({ endless: true, crashAt: { status: 'writing', when: 'after' } });
  first.write(['a', 'b']);
  await first.clock.advance(10_000);
  expect(await first.running).toBe('power cut');

  const second = power({ endless: true });
  await second.clock.advance(0);
  expect(second.outcomes()).toEqual(['unknown INTERNAL', undefined]);
  expect(second.write(['a', 'b'])).toBe(true);
  await second.clock.advance(10_000);
  expect(second.outcomes()).toEqual(['unknown INTERNAL', 'written']);
  expect(onCards()).toMatchObject([{ keyId: 'b' }]);
  const placed = readPhysicalLog(join(directory, 'cards.jsonl')).filter(({ what }) => what === 'placed');
  expect(placed).toHaveLength(2);
});

it('goes on with a fresh card when the power went before the first byte', async () => {
  const first = power({ endless: true, crashAt: { status: 'cardDetected', when: 'after' } });
  first.write(['a']);
  await first.clock.advance(10_000);

  const second = power({ endless: true });
  second.write(['a']);
  await second.clock.advance(10_000);
  expect(second.outcomes()).toEqual(['written']);
  // The steps it had reported before are not reported again.
  expect(second.progress().map(([, status]) => status)).toEqual([
    'started',
    'cardRequested',
    'cardDetected',
    'writing',
    'written',
  ]);
});

it('gives a card that was written before the power went to no other key', async () => {
  const first = power({ endless: true, crashAt: { status: 'written', when: 'after' } });
  first.write(['a', 'b']);
  await first.clock.advance(10_000);
  const second = power({ endless: true });
  second.write(['a', 'b']);
  await second.clock.advance(10_000);
  expect(new Set(onCards().map(({ cardId }) => cardId)).size).toBe(2);
  expect(second.outcomes()).toEqual(['written', 'written']);
});

it('writes nothing again when the power went after the outcome', async () => {
  const first = power({ endless: true, crashAt: { status: 'written', when: 'after' } });
  first.write(['a']);
  await first.clock.advance(10_000);
  const second = power({ endless: true });
  second.write(['a']);
  await second.clock.advance(10_000);
  expect(onCards()).toHaveLength(1);
  expect(second.outcomes()).toEqual(['written']);
});
