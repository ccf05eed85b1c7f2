/** What was asked of a device and not done, or not answered, or answered by another in its place: a gateway before it, or a server of another protocol. */

import { type Exchange, whenRead } from '../bus/exchange.ts';
import type { Clock, DriverError } from '../contract/driver.ts';
import { OFF_TRIES_MS } from '../rs485/relay-faults.ts';
import type { Step } from './contact-steps.ts';
import type { DeviceState } from './device-state.ts';
import type { Profile } from './profile-shape.ts';
import type { Span } from './registers.ts';

/** As many as it may miss before it is taken for dead (drivers/bus/circuit-breaker.ts). */
const REFUSALS_MAX = 3;
/** Two devices may change places without a missed reply, as while this process stands still. So long what one says may count as that of the other. */
const NAME_EVERY_MS = 30_000;

export function isRefusal({ code }: DriverError): boolean {
  return code === 'REFUSED' || code === 'BUSY';
}

export interface PollFailures {
  /** A contact has not opened every relay: each try feeds the watchdog that is to do so. */
  closed(): void;
  opened(): void;
  /** What is to be asked in place of the next poll. */
  due(): Step | undefined;
  /** Its reply is taken. Returns why all has to be read again. */
  answered(asked: Step): string | undefined;
  /**
   * Returns whether all has to be read again: what is known of a device that keeps refusing its polls
   * grows old, and one whose watchdog has run out meanwhile may take nothing but the first steps of a contact.
   */
  failed(step: Step, isContact: boolean, error: DriverError): boolean;
}

/** `reading`: the step that reads a span. `staysClosed`: contacts have not opened every relay for too long. */
export function openPollFailures(
  { profile, clock, staysClosed }: { profile: Profile; clock: Clock; staysClosed(): void },
  state: Pick<DeviceState, 'hwId' | 'identify' | 'doubt' | 'isDoubted'>,
  reading: (span: Span) => Step,
): PollFailures {
  const { hwId } = profile.identity;
  const name = hwId && reading({ table: hwId.table, address: hwId.address, quantity: hwId.registers });
  let namedAt = Number.NEGATIVE_INFINITY;
  /** Since its name was read: a device that is asked seldom is not asked for its name alone. */
  let hasPolled = false;
  const isNameDue = () =>
    state.isDoubted() ||
    state.identify() !== state.hwId() ||
    (hasPolled && clock.monotonic() - namedAt >= NAME_EVERY_MS);
  /** Of one step, in a row. */
  let failures = 0;
  /** Monotonic: the first try that did not open every relay, until one does. */
  let closedSince: number | undefined;

  function closed(): void {
    closedSince ??= clock.monotonic();
    if (clock.monotonic() - closedSince < OFF_TRIES_MS) return;
    closedSince = undefined;
    staysClosed();
  }

  return {
    closed,
    opened() {
      closedSince = undefined;
    },
    due: () => (isNameDue() ? name : undefined),
    answered(asked) {
      failures = 0;
      hasPolled = asked !== name;
      if (asked !== name) return undefined;
      namedAt = clock.monotonic();
      if (state.identify() === state.hwId()) return undefined;
      return 'another device answers where one was: it is read again';
    },
    failed(step, isContact, error) {
      if (error.code === 'NO_REPLY') state.doubt();
      if (!isRefusal(error) && (!isContact || error.code === 'NO_REPLY')) return false;
      failures += 1;
      if (step.opens) closed();
      return failures % REFUSALS_MAX === 0;
    },
  };
}

export interface StandIn {
  /** The same exchange, listened to. */
  begin(exchange: Exchange<unknown>): Exchange<unknown>;
  /** What it said in the last one; undefined: no one stood in. */
  reason(): string | undefined;
}

export function openStandIn(): StandIn {
  let reason: string | undefined;
  return {
    begin(exchange) {
      reason = undefined;
      return whenRead(exchange, (reading) => {
        if (reading.kind === 'unanswered' || reading.kind === 'unreached') reason = reading.reason;
      });
    },
    reason: () => reason,
  };
}
