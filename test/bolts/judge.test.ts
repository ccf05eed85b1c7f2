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

it('takes no answer to an event of the lock for its command, although both have the same number', () => {
  const late = moved(1_050, 11_600);
  const answer = { ...late.received[0], monotonicMs: 11_500, command: 0x0b, isFoundation: true };
  const log = { ...late, received: [...late.received, answer] as typeof late.received };
  expect(judge([unlock({ outcome: 'unknown', answeredMs: 11_000 })], log)).toEqual([]);
});

it('dates the opening by a mode from when the lock heard the write, however slow it is', () => {
  // operatingMode 0x0025 of type enum8 (0x30) becomes Passage (4): ZCL rev. 8, 2.5.3 and 7.3.2.13.6.
  const write = { monotonicMs: 2_100, tsn: 7, cluster: 0x0101, command: 2, isFoundation: true };
  const log = {
    executed: [
      { startedMs: 4_100, monotonicMs: 4_120, what: 'unlock', source: 'lock', user: null, tsn: 7 } as const,
    ],
    received: [{ ...write, payload: '25003004' }],
  };
  const ended = unlock({ kind: 'standOpen', begunMs: 2_000, overMs: 4_000, outcome: 'unknown' });
  expect(judge([ended], log)).toEqual([]);
  expect(judge([{ ...ended, overMs: 2_050 }], log)).not.toEqual([]);
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
