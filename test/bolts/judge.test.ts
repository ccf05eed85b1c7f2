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
const moved = (heardMs: number, startedMs = heardMs, tsn = 1) => ({
  executed: [
    { startedMs, monotonicMs: startedMs + 20, what: 'unlock', source: 'rf', user: null, tsn } as const,
  ],
  received: [{ monotonicMs: heardMs, tsn, cluster: 0x0101, command: 3, isFoundation: false, payload: '' }],
});
const NOTHING = { executed: [], received: [] };

it('finds nothing where each command moved the bolt as it was answered', () => {
  expect(judge([unlock({})], moved(1_050))).toEqual([]);
  expect(judge([unlock({ outcome: 'unknown', answeredMs: 11_000 })], moved(9_000))).toEqual([]);
  expect(judge([unlock({ outcome: 'unsent' })], NOTHING)).toEqual([]);
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
  ['a movement that nobody asked for', [], moved(1_050)],
  ['a movement after the deadline', [unlock({ outcome: 'unknown' })], moved(11_100)],
  ['a movement although nothing was sent', [unlock({ outcome: 'unsent' })], moved(1_050)],
  [
    'a second movement',
    [unlock({})],
    {
      executed: [...moved(1_040).executed, ...moved(1_050, 1_050, 2).executed],
      received: [...moved(1_040).received, ...moved(1_050, 1_050, 2).received],
    },
  ],
])('finds %s', (_, commands, log) => {
  expect(judge(commands, log)).not.toEqual([]);
});
