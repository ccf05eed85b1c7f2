import { expect, it } from 'vitest';
import { type Command, judge } from './judge.ts';

const unlock = (more: Partial<Command>): Command => ({
  kind: 'unlock',
  begunMs: 1_000,
  answeredMs: 1_100,
  overMs: 1_100,
  outcome: 'confirmed',
  ...more,
});
const moved = (heardMs: number, startedMs = heardMs, tsn = 1) => {
  const monotonicMs = startedMs + 20;
  const times = { startedMs, heardMs, monotonicMs };
  return { executed: [{ ...times, what: 'unlock', source: 'rf', user: null, tsn } as const] };
};
const NOTHING = { executed: [] };

it('finds nothing where each command moved the bolt as it was answered', () => {
  expect(judge([unlock({})], moved(1_050))).toEqual([]);
  expect(judge([unlock({ outcome: 'unknown', answeredMs: 11_000 })], moved(9_000))).toEqual([]);
  expect(judge([unlock({ outcome: 'unsent' })], NOTHING)).toEqual([]);
  // Its parent keeps frames beyond the deadline.
  expect(judge([unlock({ outcome: 'unknown', overMs: 36_000 })], moved(18_000))).toEqual([]);
});

it('dates an opening from when the lock heard of it, however slow it is', () => {
  // A host that was killed meanwhile begins with the same numbers: the second frame has that of the first.
  const log = { executed: [...moved(1_050, 11_600).executed, ...moved(11_500, 22_100).executed] };
  const unlocks = [
    unlock({ outcome: 'unknown', answeredMs: 11_000 }),
    unlock({ begunMs: 11_400, answeredMs: 21_400, outcome: 'unknown' }),
  ];
  expect(judge(unlocks, log)).toEqual([]);
  const ended = unlock({ kind: 'standOpen', begunMs: 2_000, overMs: 4_000, outcome: 'unknown' });
  expect(judge([ended], moved(2_100, 4_100))).toEqual([]);
  expect(judge([{ ...ended, overMs: 2_050 }], moved(2_100, 4_100))).not.toEqual([]);
});

it('wants no movement for the standing open of a door that is open', () => {
  const open = unlock({ kind: 'standOpen', begunMs: 2_000, answeredMs: 2_100, overMs: 2_200 });
  expect(judge([unlock({}), open], moved(1_050))).toEqual([]);
  expect(judge([open], NOTHING)).not.toEqual([]);
});

it.each<[string, Command[], Parameters<typeof judge>[1]]>([
  ['a confirmation without a movement', [unlock({})], NOTHING],
  [
    'a confirmation by the movement of an earlier command',
    [
      unlock({ outcome: 'unknown', begunMs: 0, answeredMs: 900 }),
      unlock({ begunMs: 1_000, answeredMs: 3_000 }),
    ],
    moved(10, 2_000),
  ],
  [
    'a lock that was locked only by its answer',
    [unlock({}), unlock({ kind: 'lock', begunMs: 2_000, answeredMs: 2_100 })],
    moved(1_050),
  ],
  ['a movement that no one asked for', [], moved(1_050)],
  ['a movement after the deadline', [unlock({ outcome: 'unknown' })], moved(11_100)],
  ['a movement although nothing was sent', [unlock({ outcome: 'unsent' })], moved(1_050)],
  [
    'a second movement',
    [unlock({})],
    { executed: [...moved(1_040).executed, ...moved(1_050, 1_050, 2).executed] },
  ],
])('finds %s', (_, commands, log) => {
  expect(judge(commands, log)).not.toEqual([]);
});
