/**
 * zigbee-herdsman gives radios their time by the clock: 3 s for a network to settle, 12 s for devices to change their
 * channel. Simulated ones are ready at once. Loading this makes its pauses short in this process; its timeouts stay.
 */
import { onTestFinished } from 'vitest';

const PAUSE = /zigbee-herdsman\/dist\/utils\/wait\.js/;
const TIMEOUT =
  /zigbee-herdsman\/dist\/(utils\/waitress|adapter\/ember\/(adapter\/oneWaitress|ezsp\/ezsp))\.js/;
/** What is left of a pause, and from which length on. */
const PAUSE_SHARE = 0.05;
const LONG_MS = 1_000;

let timeouts = { share: 1, from: LONG_MS };
const { setTimeout: wait } = globalThis;

function shortened(action: (...values: unknown[]) => void, milliseconds = 0, ...values: unknown[]) {
  return wait(
    action,
    milliseconds < LONG_MS ? milliseconds : milliseconds * shareOf(milliseconds),
    ...values,
  );
}
globalThis.setTimeout = Object.assign(shortened, wait) as typeof setTimeout;

/** Frames of a stack among which the library's is: a caller may have switched them off (spared-work.ts). */
const STACK_FRAMES = 10;

function shareOf(milliseconds: number): number {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = STACK_FRAMES;
  const { stack = '' } = new Error('who waits');
  Error.stackTraceLimit = stackTraceLimit;
  if (PAUSE.test(stack)) return PAUSE_SHARE;
  return milliseconds >= timeouts.from && TIMEOUT.test(stack) ? timeouts.share : 1;
}

/**
 * For a coordinator that will not answer, until the test ends: what is left of the library's timeouts, those alone that are as
 * long as `from`. A timeout that runs already stays as it is.
 */
export function shortenTimeouts(share: number, from = LONG_MS): void {
  timeouts = { share, from };
  onTestFinished(() => {
    timeouts = { share: 1, from: LONG_MS };
  });
}
