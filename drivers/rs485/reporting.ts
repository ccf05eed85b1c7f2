/** What a bus and its devices are told of to the daemon though nothing changed: how the wire does, and who is there. */
import type { Bus } from '../bus/bus.ts';
import type { DriverContext } from '../contract/driver.ts';

/** The first comes once devices have had time to answer. `reportAge` and `replyAge` of the interface rest on it. */
const BUS_EVERY_MS = 1_000;
/** Reports of the bus between two repetitions of what is known of each device: the daemon may have dropped one. */
const REPORTS_PER_REPETITION = 5;
/** Of a bus report (drivers/contract/rs485.ts). */
const WARNINGS_MAX = 16;

export interface ReportingOptions {
  bus: Pick<Bus, 'report'>;
  context: Pick<DriverContext, 'clock' | 'report'>;
  /** What a technician should mend at devices. */
  warnings(): string[];
  /** Reports each device again. */
  repeat(): void;
}

/** Until the signal fires. */
export async function keepReporting(
  { bus, context, warnings, repeat }: ReportingOptions,
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
