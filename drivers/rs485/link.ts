/** What every driver of an RS-485 link is made of beside its protocol: its parts run, and its commands found by name. */
import type { Bus } from '../bus/bus.ts';
import { type Driver, DriverError } from '../contract/driver.ts';
import type { EventQueue } from './event-queue.ts';
import { keepReporting, type ReportingOptions } from './reporting.ts';

export type Execute = Driver['execute'];

export type Commands = Readonly<Record<string, Execute | undefined>>;

/** `link` says whose commands they are, such as "a Modbus link". Rejects with INVALID_COMMAND when there is none of that name. */
export function executing(commands: Commands, link: string): Execute {
  return async (command, signal) => {
    const execute = commands[command.kind];
    if (!execute) throw new DriverError('INVALID_COMMAND', `${link} has no command ${command.kind}`);
    return await execute(command, signal);
  };
}

export interface LinkParts extends ReportingOptions {
  bus: Pick<Bus, 'run' | 'report'>;
  events: EventQueue;
  /** What else runs until its signal fires. */
  others?(signal: AbortSignal): Promise<never>[];
  /** What is still to be done when it ends, and why it does. The bus works on meanwhile. */
  farewell?(why: unknown): Promise<void>;
}

/** Until the bus is lost or the signal fires, whichever of the parts tells it first. */
export async function runLink(parts: LinkParts, signal: AbortSignal): Promise<never> {
  const { bus, events, others, farewell } = parts;
  const ended = new AbortController();
  const closed = new AbortController();
  const working = AbortSignal.any([signal, ended.signal]);
  const running = [
    bus.run(closed.signal),
    events.run(working),
    keepReporting(parts, working),
    ...(others?.(working) ?? []),
  ];
  try {
    return await Promise.race(running);
  } catch (error) {
    ended.abort(error);
    await farewell?.(error);
    throw error;
  } finally {
    closed.abort(new DriverError('LINK_LOST', 'the link is closed'));
    await Promise.allSettled(running);
  }
}
