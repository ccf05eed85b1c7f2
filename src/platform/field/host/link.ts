/** One link inside a host: opened, run and closed again and again by `supervise`, and given its commands meanwhile. */
import {
  type Clock,
  type Driver,
  type DriverCommand,
  type DriverContext,
  DriverError,
  type DriverEvent,
  type OpenDriver,
  type Plain,
  type StateReport,
} from '../../../../drivers/contract/driver.ts';
import type { Log } from '../../log.ts';
import { type Backoff, DEFAULT_BACKOFF, supervise } from '../../supervise.ts';
import { type Failure, isPlain, TEXT_MAX } from '../ipc.ts';

/** To try costs little, and the person who plugs an adapter in again stands there and waits. */
const LINK_BACKOFF: Backoff = { ...DEFAULT_BACKOFF, longestMs: 1_000 };
/** A coordinator that restores its network takes a minute. */
const OPENING_DEADLINE_MS = 120_000;
/** For a driver to end after its signal has fired, and again to close. */
export const DRIVER_ENDING_DEADLINE_MS = 5_000;

export interface LinkOptions {
  id: string;
  options: Plain;
  open: OpenDriver;
  clock: Clock;
  log: Log;
  report(report: StateReport): void;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
  /** Called at every change, with the reason when the link is down because of a failure. */
  changed(up: boolean, error?: Failure): void;
  /** The driver holds on to what it has opened; only the end of the process takes it away. */
  stuck(reason: string): void;
}

export interface Link {
  /** Works the link until the signal fires; resolves when it is closed. */
  run(signal: AbortSignal): Promise<void>;
  /** `deadline`: monotonic milliseconds. Rejects with a DriverError, whatever the driver throws. */
  execute(command: DriverCommand, signal: AbortSignal): Promise<Plain>;
}

export function openLink(link: LinkOptions): Link {
  const { id, clock, log } = link;
  /** What runs now; `lost` fires when it does no more. */
  let current: { driver: Driver; lost: AbortSignal } | undefined;

  async function runOnce(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const failed = (error: unknown): never => {
      ended.abort();
      if (!signal.aborted) link.changed(false, failureOf(error, 'LINK_LOST'));
      throw error;
    };
    const driver = await openDriver(link, signal, ended.signal).catch(failed);
    await using _closing = { [Symbol.asyncDispose]: () => closeDriver(link, driver) };
    await runDriver(driver, signal).catch(failed);
  }

  async function runDriver(driver: Driver, signal: AbortSignal): Promise<void> {
    const lost = new AbortController();
    current = { driver, lost: lost.signal };
    link.changed(true);
    try {
      await endingInTime<unknown>(link, signal, () => driver.run(signal));
      throw new DriverError('LINK_LOST', `the driver of link ${id} returned`);
    } finally {
      current = undefined;
      lost.abort(new DriverError('OUTCOME_UNKNOWN', `link ${id} was lost while it executed the command`));
    }
  }

  return {
    run: (signal) =>
      supervise({ name: `link ${id}`, run: runOnce, signal, clock, log, backoff: LINK_BACKOFF }),
    async execute(command, signal) {
      if (current && !current.driver.holds?.(command.kind)) await command.released;
      if (!current) throw new DriverError('LINK_LOST', `link ${id} is down`);
      if (command.deadline <= clock.monotonic()) {
        throw new DriverError('DEADLINE_PASSED', 'the deadline passed before the command reached its link');
      }
      try {
        const answer = await current.driver.execute(command, AbortSignal.any([signal, current.lost]));
        if (isPlain(answer)) return answer;
        throw new TypeError('the answer is not plain data within bounds');
      } catch (error) {
        if (error instanceof DriverError) throw error;
        log.error({ kind: command.kind, err: error }, `the driver of link ${id} failed to execute a command`);
        throw new DriverError('OUTCOME_UNKNOWN', 'the driver failed while it executed the command');
      }
    },
  };
}

/** Once `ended` has fired nothing that the driver reports is passed on: it describes a link that has ended. */
async function openDriver(link: LinkOptions, signal: AbortSignal, ended: AbortSignal): Promise<Driver> {
  const { id, clock, log, options, open } = link;
  const context: DriverContext = {
    linkId: id,
    clock,
    log,
    report(report) {
      if (!ended.aborted) link.report(report);
    },
    emit: (event, emitSignal) => link.emit(event, emitSignal),
  };
  const late = new AbortController();
  const opened = new AbortController();
  const reason = new DriverError('LINK_LOST', `link ${id} did not open within ${OPENING_DEADLINE_MS} ms`);
  clock.sleep(OPENING_DEADLINE_MS, opened.signal).then(
    () => late.abort(reason),
    () => undefined,
  );
  const either = AbortSignal.any([signal, late.signal]);
  try {
    return await endingInTime(link, either, () => open(options, context, either));
  } finally {
    opened.abort();
  }
}

/** One that fails may still hold what it has opened, and would be in the way of the next: the process ends with it. */
async function closeDriver(link: LinkOptions, driver: Driver): Promise<void> {
  try {
    await endingInTime(link, AbortSignal.abort(), async () => driver[Symbol.asyncDispose]());
  } catch (error) {
    const { message } = failureOf(error, 'LINK_LOST');
    link.stuck(`the driver of link ${link.id} could not be closed: ${message}`);
    throw error;
  }
}

/** Runs a step of the driver; once the signal has fired it must end in time, or the link is stuck. */
async function endingInTime<T>(
  { id, clock, stuck }: LinkOptions,
  signal: AbortSignal,
  step: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const watch = () => {
    const report = () => stuck(`the driver of link ${id} did not end within ${DRIVER_ENDING_DEADLINE_MS} ms`);
    clock.sleep(DRIVER_ENDING_DEADLINE_MS, over.signal).then(report, () => undefined);
  };
  if (signal.aborted) watch();
  else signal.addEventListener('abort', watch, { once: true, signal: over.signal });
  try {
    return await step();
  } finally {
    over.abort();
  }
}

export function failureOf(error: unknown, otherwise: Failure['code']): Failure {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, TEXT_MAX);
  return { code: error instanceof DriverError ? error.code : otherwise, message };
}
