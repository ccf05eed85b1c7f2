/**
 * Frames with something wrong in them: nothing throws, and what is believed was said. FUZZ_SEED repeats a run, FUZZ_RUNS
 * makes it longer (a million takes some minutes).
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sealed } from '../../test/drivers/dcon/modules.ts';
import * as ask from './messages.ts';
import { moduleTypeOf } from './module-types.ts';
import { readAnswer } from './wire.ts';

/** The same in every run, so that a red one says something about the change at hand. */
const DEFAULT_SEED = 20_261_121;
const runs = {
  seed: Number(process.env.FUZZ_SEED ?? DEFAULT_SEED),
  numRuns: Number(process.env.FUZZ_RUNS ?? 20_000),
};
const checked = { checksum: true };

const type = moduleTypeOf('7060');
if (!type) throw new Error('the I-7060 is not in the table');
const ADDRESS = 0x1f;
const QUESTIONS: readonly ask.Question<unknown>[] = [
  ask.moduleName(ADDRESS),
  ask.firmwareVersion(ADDRESS),
  ask.resetStatus(ADDRESS),
  ask.readPins(ADDRESS, type),
  ask.readLatched(ADDRESS, type),
  ask.switchOne(ADDRESS, 1, true),
  ask.hostWatchdogFlag(ADDRESS),
  ask.clearHostWatchdogFlag(ADDRESS),
  ask.readPreset(ADDRESS, 'S'),
  ask.writeSafety(ADDRESS, { tenths: 100, outputs: 0, digits: 4 }),
  ask.readSafety(ADDRESS),
];
const ANSWERS = [
  '!1F7060',
  '!1FB1.2',
  '!1F1',
  '!0F0300',
  '!000300',
  '>',
  '!',
  '?',
  '?1F',
  '!1F04',
  '!1F',
  '!1F0000',
  '!006400',
];

type Mutation = (bytes: Uint8Array) => Uint8Array;
const at = fc.nat({ max: 15 });
/** Each changes a frame in a way that the checksum of one byte cannot miss. */
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ index: at, bit: fc.nat({ max: 7 }) }).map(
    ({ index, bit }) =>
      (bytes: Uint8Array) =>
        bytes.map((byte, here) => (here === index % bytes.length ? byte ^ (1 << bit) : byte)),
  ),
  fc.record({ index: at }).map(({ index }) => (bytes: Uint8Array) => {
    const cut = index % bytes.length;
    return Uint8Array.from([...bytes.subarray(0, cut), ...bytes.subarray(cut + 1)]);
  }),
  fc.record({ keep: at }).map(
    ({ keep }) =>
      (bytes: Uint8Array) =>
        bytes.subarray(0, keep % bytes.length),
  ),
);

it('believes no frame in which one bit, or one byte, is wrong', () => {
  const property = fc.property(
    fc.constantFrom(...QUESTIONS),
    fc.constantFrom(...ANSWERS),
    mutation,
    (question, answer, mutate) => {
      const broken = mutate(sealed(answer));
      if (Buffer.from(broken).equals(sealed(answer))) return;
      expect(readAnswer(question, broken, checked).kind).toBe('more');
    },
  );
  fc.assert(property, runs);
});

it('believes, of a jumble of frames and noise, only what a whole frame of it says', () => {
  const piece = fc.oneof(
    fc.constantFrom(...ANSWERS).map((answer) => ({ said: answer, bytes: sealed(answer) })),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => ({ said: null, bytes })),
  );
  const property = fc.property(
    fc.constantFrom(...QUESTIONS),
    fc.array(piece, { maxLength: 6 }),
    (question, pieces) => {
      const jumble = Buffer.concat(pieces.map(({ bytes }) => bytes));
      for (let end = 0; end <= jumble.length; end += 1) {
        const reading = readAnswer(question, jumble.subarray(0, end), checked);
        if (reading.kind === 'more') continue;
        const answers = pieces.flatMap(({ said }) => (said === null ? [] : [question.hear(said)]));
        expect(answers).toContainEqual(reading);
        return;
      }
    },
  );
  fc.assert(property, { ...runs, numRuns: Math.ceil(runs.numRuns / 10) });
});

it('reads any bytes without throwing, and keeps to its bounds', () => {
  const property = fc.property(
    fc.constantFrom(...QUESTIONS),
    fc.uint8Array({ maxLength: 400 }),
    fc.boolean(),
    (question, bytes, checksum) => {
      expect(['more', 'reply', 'refused']).toContain(readAnswer(question, bytes, { checksum }).kind);
    },
  );
  fc.assert(property, { ...runs, numRuns: Math.ceil(runs.numRuns / 10) });
});
