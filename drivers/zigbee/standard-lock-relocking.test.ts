/** Who locks a door again: what a lock offers, and what is tried. */
import { expect, it } from 'vitest';
import { relockOf, waysOf } from './standard-lock.ts';

const NAN = Number.NaN;

it.each([
  // The lock has it, whatever else it has.
  [true, 0, { by: 'timedUnlock', seconds: null }, ['timedUnlock'], ['timedUnlock', 'gateway']],
  [
    true,
    60,
    { by: 'timedUnlock', seconds: null },
    ['timedUnlock', 'autoRelock'],
    ['timedUnlock', 'autoRelock'],
  ],
  // No one knows yet: it is tried.
  [undefined, undefined, undefined, ['timedUnlock'], ['timedUnlock', 'gateway']],
  [
    undefined,
    60,
    { by: 'autoRelock', seconds: 60 },
    ['timedUnlock', 'autoRelock'],
    ['timedUnlock', 'autoRelock'],
  ],
  [false, 60, { by: 'autoRelock', seconds: 60 }, ['autoRelock'], ['autoRelock']],
  // It never locks again by itself, or does not say that it does.
  [false, 0, { by: 'gateway', seconds: null }, [], ['gateway']],
  [false, NAN, { by: 'gateway', seconds: null }, [], ['gateway']],
  [false, undefined, { by: 'gateway', seconds: null }, [], ['gateway']],
])(
  'timed %s, auto-relock %s: shown %j, alone %j, with the gateway %j',
  (timedUnlock, autoRelockTime, ...expected) => {
    const lock = { timedUnlock, autoRelockTime };
    expect([relockOf(lock), waysOf(lock, false), waysOf(lock, true)]).toEqual(expected);
  },
);
