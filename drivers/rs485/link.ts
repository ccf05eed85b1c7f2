/** What all drivers of an RS-485 link have in common beside the protocol: the parts that run, and the commands, found by name. */

import type { z } from 'zod';
import type { Bus } from '../bus/bus.ts';
import { tuned } from '../bus/line-settings.ts';
import type { BusWarning } from '../contract/bus-warnings.ts';
import { type Driver, type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import {
  type EndPulse,
  endPulse,
  type Probed,
  type Pulse,
  type Pulsed,
  probe,
  pulse,
  trace,
  type Watch,
  type WatchdogTest,
  type WatchdogTested,
  watch,
  watchdogTest,
} from '../contract/rs485.ts';
import { type Rs485Applied, type Rs485Apply, rs485Apply } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import type { EventQueue } from './event-queue.ts';

type Execute = Driver['execute'];

export type Commands = Readonly<Record<string, Execute | undefined>>;

/** `link` says whose commands they are, such as "a Modbus link". Rejects with INVALID_COMMAND when there is none of that name. */
export function executing(commands: Commands, link: string): Execute {
  return async (command, signal) => {
    const execute = commands[command.kind];
    if (!execute) throw new DriverError('INVALID_COMMAND', `${link} has no command ${command.kind}`);
    return await execute(command, signal);
  };
}

export interface Until {
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
}

/** A command whose data this schema accepts. Without an answer it answers null. */
export function command<Schema extends z.ZodType>(
  schema: Schema,
  execute: (data: z.output<Schema>, until: Until) => Promise<object | undefined>,
): Execute {
  return async ({ data, deadline }, signal) => {
    const answer = await execute(valid(schema, data, 'INVALID_COMMAND'), { deadline, signal });
    return answer ? ({ ...answer } as Plain) : null;
  };
}

/** One that names its device; `named` throws DEVICE_OFFLINE. */
export function deviceCommand<Schema extends z.ZodType<{ hwId: string }>, Device>(
  schema: Schema,
  named: (hwId: string) => Device,
  execute: (device: Device, data: z.output<Schema>, until: Until) => Promise<object | undefined>,
): Execute {
  return command(schema, async (data, until) => execute(named(data.hwId), data, until));
}

/** What a protocol does for the commands that all have (drivers/contract/rs485.ts). */
interface CommonCommands<Device> {
  watch(list: Watch): void;
  /** The device of this name, which can be reached. Throws DEVICE_OFFLINE. */
  named(hwId: string): Device;
  /** Throws BUSY: a question to one of these addresses would disturb what goes on there. */
  assertMayBeAsked?(addresses: readonly number[]): void;
  probeAddress(address: number, repeats: number, asking: ProbeAsking): Promise<Probed['results'][number]>;
  pulse(device: Device, pulse: Pulse, until: Until): Promise<Pulsed>;
  endPulse(device: Device, pulse: EndPulse, until: Until): Promise<void>;
  applySettings(device: Device, apply: Rs485Apply, until: Until): Promise<Rs485Applied>;
  /** Absent: the devices time each pulse themselves. */
  testWatchdog?(device: Device, test: WatchdogTest, until: Until): Promise<WatchdogTested>;
}

export interface ProbeAsking extends Until {
  /** Asks with the characters of the probe. */
  bus: Pick<Bus, 'exchange'>;
  /** These are not those of the configuration. */
  isTuned: boolean;
}

export function commonCommands<Device>(
  bus: Pick<Bus, 'exchange' | 'trace'>,
  protocol: CommonCommands<Device>,
): Commands {
  const { named, testWatchdog } = protocol;
  return {
    watch: command(watch, async (list) => void protocol.watch(list)),
    probe: command(probe, async ({ addresses, repeats, line }, until) => {
      protocol.assertMayBeAsked?.(addresses);
      const asking = { ...until, bus: line ? tuned(bus, line) : bus, isTuned: line !== undefined };
      const results: Probed['results'] = [];
      for (const address of addresses) results.push(await protocol.probeAddress(address, repeats, asking));
      return { results };
    }),
    trace: command(trace, (wanted, { signal }) => bus.trace(wanted, signal)),
    applySettings: deviceCommand(rs485Apply, named, protocol.applySettings),
    pulse: deviceCommand(pulse, named, protocol.pulse),
    endPulse: deviceCommand(
      endPulse,
      named,
      async (device, wanted, until) => void (await protocol.endPulse(device, wanted, until)),
    ),
    testWatchdog: testWatchdog && deviceCommand(watchdogTest, named, testWatchdog),
  };
}

export interface LinkParts {
  bus: Pick<Bus, 'run' | 'report'>;
  context: Pick<DriverContext, 'clock' | 'report'>;
  /** What a technician should mend at devices. */
  warnings(): BusWarning[];
  /** Reports each device again. */
  repeat(): void;
  events: EventQueue;
  /** What else runs until its signal fires. */
  others?(signal: AbortSignal): Promise<never>[];
  /** What is still to be done when it ends, and why it does. The bus works on meanwhile. */
  farewell?(why: unknown): Promise<void>;
}

/** Until the bus is lost or the signal fires, whichever of the parts ends first. */
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

/** The first comes once devices have had time to answer. `reportAge` and `replyAge` of the interface rest on it. */
const BUS_EVERY_MS = 1_000;
/** Reports of the bus between two repetitions of what is known of each device: the daemon may have dropped one. */
const REPORTS_PER_REPETITION = 5;
/** Of a bus report (drivers/contract/rs485.ts). */
const WARNINGS_MAX = 16;

/** Reports the bus and its devices though nothing changed, until the signal fires. */
async function keepReporting(
  { bus, context, warnings, repeat }: LinkParts,
  signal: AbortSignal,
): Promise<never> {
  for (let reports = 0; ; reports += 1) {
    await context.clock.sleep(BUS_EVERY_MS, signal);
    const state = bus.report();
    const all = [...state.warnings, ...warnings()].slice(0, WARNINGS_MAX);
    context.report({ subject: 'bus', state: { ...state, warnings: all } });
    if (reports % REPORTS_PER_REPETITION === 0) repeat();
  }
}
