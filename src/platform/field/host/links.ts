/**
 * All links of a host: loaded, started one after the other, given their commands, closed in reverse. `supervise` opens, runs and closes
 * each again and again. Each command is executed at most once in the life of the host, and not past its deadline.
 */
import {
  type Clock,
  type Driver,
  type DriverCommand,
  type DriverContext,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../../../../drivers/contract/driver.ts';
import { openDeadline } from '../../../../drivers/contract/waiting.ts';
import type { DriverTable } from '../../../../drivers/index.ts';
import type { Log } from '../../log.ts';
import { type Backoff, DEFAULT_BACKOFF, supervise } from '../../supervise.ts';
import {
  type DaemonMessage,
  type Failure,
  type HostMessage,
  isPlain,
  type LinkStart,
  TEXT_MAX,
} from '../ipc.ts';
import type { Events, Reports } from './outbox.ts';

/** Between the starts of two links, so that a site's devices are not all asked at once. */
const LINK_STAGGER_MS = 100;

export interface LinksOptions {
  drivers: DriverTable;
  clock: Clock;
  log: Log;
  send: (message: HostMessage) => Promise<void>;
  reports: Reports;
  events: Events;
  /** A driver holds on to what it has opened; only the end of the process takes it away. */
  stuck: (reason: string) => void;
}

export interface Links extends Executions {
  /** Loads the code of the drivers, which can hold this process up for seconds. */
  load(specs: readonly LinkStart[]): Promise<void>;
  start(): Promise<void>;
  /** Loads and starts one more. */
  open(spec: LinkStart): Promise<void>;
  /** Resolves when it is closed, and the daemon knows that it is down. */
  closeOne(linkId: string): Promise<void>;
  close(): Promise<void>;
}

interface OpenLink {
  link: Link;
  /** Undefined before it is started. */
  running?: { stop: AbortController; ended: Promise<void> };
}

export function openLinks(options: LinksOptions): Links {
  const { drivers, clock, send, reports } = options;
  const links = new Map<string, OpenLink>();
  const closing = new AbortController();
  /** One change at a time, in the order of the messages: a port may move from one link to the next. */
  let turn: Promise<void> = Promise.resolve();
  const next = (step: () => Promise<void>) => {
    turn = turn.then(step);
    return turn;
  };

  async function load(spec: LinkStart): Promise<void> {
    links.set(spec.id, { link: openLink(spec, await loadDriver(drivers, spec.protocol), options) });
  }

  function run(one: OpenLink): void {
    if (one.running || closing.signal.aborted) return;
    const stop = new AbortController();
    one.running = { stop, ended: one.link.run(stop.signal) };
  }

  async function end({ running }: OpenLink): Promise<void> {
    running?.stop.abort();
    await running?.ended;
  }

  return {
    ...openExecutions(options, (linkId) => links.get(linkId)?.link),
    load: (specs) =>
      next(async () => {
        for (const spec of specs) await load(spec);
      }),
    start: () =>
      next(async () => {
        for (const one of links.values()) {
          run(one);
          await clock.sleep(LINK_STAGGER_MS, closing.signal).catch(() => undefined);
        }
      }),
    open: (spec) =>
      next(async () => {
        await load(spec);
        const one = links.get(spec.id);
        if (one) run(one);
      }),
    closeOne: (linkId) =>
      next(async () => {
        const one = links.get(linkId);
        if (!one) return;
        await end(one);
        links.delete(linkId);
        reports.forget(linkId);
        const error = { code: 'LINK_LOST', message: 'the configuration has changed' } as const;
        void send({ type: 'link', linkId, up: false, error });
      }),
    async close() {
      closing.abort();
      for (const one of [...links.values()].toReversed()) await end(one);
    },
  };
}

// Commands, from the message of the daemon to its answer.

type CommandMessage = Extract<DaemonMessage, { type: 'command' }>;

interface Executions {
  command(message: CommandMessage): void;
  /** Of a command that was held: it may be sent. */
  release(id: number): void;
  cancel(id: number): void;
}

interface Execution {
  release(): void;
  /** Asks the driver to stop. */
  stop(reason: string): void;
}

function openExecutions(
  { send, clock, log }: LinksOptions,
  linkOf: (linkId: string) => Link | undefined,
): Executions {
  const open = new Map<number, Execution>();
  let lastId = 0;

  async function run(message: CommandMessage): Promise<void> {
    const { id, linkId, kind, data, deadline } = message;
    const stop = new AbortController();
    const settled = new AbortController();
    const hold = message.held ? openHold() : undefined;
    const stopFor = (reason: string) => {
      hold?.withdraw();
      stop.abort(hold?.isHeld() ? unsent() : new DriverError('OUTCOME_UNKNOWN', reason));
    };
    clock.sleep(deadline - clock.monotonic(), settled.signal).then(
      () => stopFor('the deadline passed while the command was executed'),
      () => undefined,
    );
    open.set(id, { release: () => hold?.release(), stop: stopFor });
    try {
      const command = { kind, data, deadline, ...(hold && { released: hold.released }) };
      const link = linkOf(linkId);
      if (!link) throw new DriverError('LINK_LOST', `link ${linkId} is not open`);
      const answer = await link.execute(command, stop.signal);
      void send({ type: 'done', id, data: answer });
    } catch (error) {
      const failure = failureOf(error, 'OUTCOME_UNKNOWN');
      // Whatever the driver thinks of it: what was not released was not sent, and is not any more.
      const known =
        hold?.isHeld() && failure.code === 'OUTCOME_UNKNOWN' ? failureOf(unsent(), 'LINK_LOST') : failure;
      void send({ type: 'failed', id, error: known });
    } finally {
      hold?.withdraw();
      settled.abort('settled');
      open.delete(id);
    }
  }

  return {
    command(message) {
      // Ids only rise, so one number remembers every command there was.
      if (message.id <= lastId) {
        log.error({ command: message.id }, 'a command came twice and was not executed again');
        return;
      }
      lastId = message.id;
      void run(message);
    },
    release: (id) => open.get(id)?.release(),
    cancel: (id) => open.get(id)?.stop('cancelled by the caller'),
  };
}

/** What keeps a command from being sent; withdrawn, it keeps it for ever. */
function openHold() {
  const { promise: released, resolve, reject } = Promise.withResolvers<void>();
  // A driver that has given up does not wait for it.
  released.catch(() => undefined);
  let state: 'held' | 'released' | 'withdrawn' = 'held';
  return {
    released,
    isHeld: () => state !== 'released',
    release() {
      if (state === 'held') state = 'released';
      resolve();
    },
    withdraw() {
      if (state !== 'held') return;
      state = 'withdrawn';
      reject(unsent());
    },
  };
}

function unsent(): DriverError {
  return new DriverError('DEADLINE_PASSED', 'it was withdrawn, or its time was over, before it was sent');
}

// One link.

/** A driver that cannot be loaded is a link that cannot be opened; the others go on. */
async function loadDriver(drivers: DriverTable, protocol: string): Promise<OpenDriver> {
  try {
    const load = drivers.get(protocol);
    if (load) return await load();
    throw new DriverError('INVALID_OPTIONS', `there is no driver for the protocol ${protocol}`);
  } catch (error) {
    return () => Promise.reject(error);
  }
}

/** To try costs little, and the person who plugs an adapter in again stands there and waits. */
const LINK_BACKOFF: Backoff = { ...DEFAULT_BACKOFF, longestMs: 1_000 };
/** A coordinator that restores its network takes a minute. */
const OPENING_DEADLINE_MS = 120_000;
/** For a driver to end after its signal has fired, and again to close. */
export const DRIVER_ENDING_DEADLINE_MS = 5_000;

interface Link {
  /** Works the link until the signal fires; resolves when it is closed. */
  run(signal: AbortSignal): Promise<void>;
  /** `deadline`: monotonic milliseconds. Rejects with a DriverError, whatever the driver throws. */
  execute(command: DriverCommand, signal: AbortSignal): Promise<Plain>;
}

function openLink({ id, options }: LinkStart, open: OpenDriver, host: LinksOptions): Link {
  const { clock, send, reports, events } = host;
  const log = host.log.child({ link: id });
  /** What runs now; `lost` fires when it does no more. */
  let current: { driver: Driver; lost: AbortSignal } | undefined;

  /** `error`: where the link is down because of a failure. */
  function changed(up: boolean, error?: Failure): void {
    if (!up) reports.forget(id);
    void send({ type: 'link', linkId: id, up, ...(error && { error }) });
  }

  /** Once `ended` has fired nothing that the driver reports is passed on: it describes a link that has ended. */
  const contextUntil = (ended: AbortSignal): DriverContext => ({
    linkId: id,
    clock,
    log,
    report(report) {
      if (!ended.aborted) reports.report(id, report);
    },
    emit: (event, signal) => events.emit(id, event, signal),
  });

  async function runOnce(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const failed = (error: unknown): never => {
      ended.abort();
      if (!signal.aborted) changed(false, failureOf(error, 'LINK_LOST'));
      throw error;
    };
    const opening = (until: AbortSignal) => open(options, contextUntil(ended.signal), until);
    const driver = await openInTime(id, host, signal, opening).catch(failed);
    await using _closing = { [Symbol.asyncDispose]: () => closeDriver(id, host, driver) };
    await runDriver(driver, signal).catch(failed);
  }

  async function runDriver(driver: Driver, signal: AbortSignal): Promise<void> {
    const lost = new AbortController();
    current = { driver, lost: lost.signal };
    changed(true);
    try {
      await endingInTime<unknown>(id, host, signal, () => driver.run(signal));
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

async function openInTime(
  id: string,
  host: LinksOptions,
  signal: AbortSignal,
  open: (signal: AbortSignal) => Promise<Driver>,
): Promise<Driver> {
  const late = () => new DriverError('LINK_LOST', `link ${id} did not open within ${OPENING_DEADLINE_MS} ms`);
  using deadline = openDeadline(OPENING_DEADLINE_MS, host.clock, late);
  const either = AbortSignal.any([signal, deadline.signal]);
  return await endingInTime(id, host, either, () => open(either));
}

/** One that fails may still hold what it has opened, and would be in the way of the next: the process ends with it. */
async function closeDriver(id: string, host: LinksOptions, driver: Driver): Promise<void> {
  try {
    await endingInTime(id, host, AbortSignal.abort(), async () => driver[Symbol.asyncDispose]());
  } catch (error) {
    const { message } = failureOf(error, 'LINK_LOST');
    host.stuck(`the driver of link ${id} could not be closed: ${message}`);
    throw error;
  }
}

/** Runs a step of the driver; once the signal has fired it must end in time, or the link is stuck. */
async function endingInTime<T>(
  id: string,
  { clock, stuck }: LinksOptions,
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

function failureOf(error: unknown, otherwise: Failure['code']): Failure {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, TEXT_MAX);
  return { code: error instanceof DriverError ? error.code : otherwise, message };
}
