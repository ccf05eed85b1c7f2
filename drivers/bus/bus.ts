/**
 * A bus: one port, one owner, one exchange at a time. It works from when it is open until it is disposed or the port is
 * lost, whether anybody waits for `run` or not. Whose turn it is: schedule.ts. The wire and its silences: line.ts. Whom
 * to leave alone, and how long to wait for whom: devices.ts.
 */
import { type Clock, DriverError, type DriverLog } from '../driver.ts';
import type { BusReport } from '../rs485.ts';
import { openComplaint } from './complaint.ts';
import { watchDevice } from './device.ts';
import { type Devices, openDevices } from './devices.ts';
import type { Outcome } from './ear.ts';
import type { Exchange, Order, Poll } from './exchange.ts';
import { type Line, openLine } from './line.ts';
import type { BusOptions } from './options.ts';
import { openBell } from './pause.ts';
import type { OpenPort } from './port.ts';
import { type Job, openSchedule, type Polled } from './schedule.ts';
import { rtuGapMs } from './wire.ts';

export interface Bus extends AsyncDisposable {
  /**
   * Resolves with the reply. Rejects with a DriverError: DEVICE_OFFLINE, DEADLINE_PASSED, BUSY, LINK_LOST (nothing was
   * sent) · NO_REPLY, BAD_REPLY (it was sent, and nobody knows more) · REFUSED; or with the signal's reason, whether
   * it was sent or not.
   */
  exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal): Promise<Reply>;
  /** Reads the device until disposed. Throws INVALID_OPTIONS when it is read already. */
  poll(poll: Poll): Disposable;
  /** Works until the port is lost (throws LINK_LOST) or the signal fires (throws its reason). */
  run(signal: AbortSignal): Promise<never>;
  /** Counters since the bus was opened, of devices that are polled or have answered. */
  report(): BusReport;
}

export interface OpenBusOptions {
  options: BusOptions;
  openPort: OpenPort;
  clock: Clock;
  log: DriverLog;
  /** Silence before each request, milliseconds; t3.5 of Modbus RTU unless told (wire.ts). */
  gapMs?: number;
}

export type OpenBus = (options: OpenBusOptions, signal: AbortSignal) => Promise<Bus>;

export const openBus: OpenBus = async (context, signal) => {
  const { options, clock, log } = context;
  const gapMs = context.gapMs ?? rtuGapMs(options);
  const line = await openLine({ ...context, gapMs }, signal);
  const devices = openDevices({ options, line, clock, gapMs });
  const { work, ...desk } = openDesk({ clock, log, line, devices });
  const working = work().catch((error: unknown) => {
    if (!line.gone.aborted) log.error({ err: error }, 'the bus failed, and its port is closed');
    line.lose(error instanceof Error ? error : new Error(String(error)));
  });
  return {
    ...desk,
    async run(runSignal) {
      const ended = AbortSignal.any([runSignal, line.gone]);
      if (!ended.aborted) {
        await new Promise((resolve) => ended.addEventListener('abort', resolve, { once: true }));
      }
      runSignal.throwIfAborted();
      throw line.gone.reason;
    },
    async [Symbol.asyncDispose]() {
      await line[Symbol.asyncDispose]();
      await working;
    },
  };
};

/** A device that is busy is asked again after so long. */
const BUSY_WAIT_MS = 20;
/** A poll that cannot even ask is defective, and stays so for some time. */
const BROKEN_POLL_WAIT_MS = 1_000;

interface Desk extends Pick<Bus, 'exchange' | 'poll' | 'report'> {
  /** One exchange after the other; rejects when the port is gone. */
  work(): Promise<never>;
}

interface DeskOptions {
  clock: Clock;
  log: DriverLog;
  line: Line;
  devices: Devices;
}

function openDesk({ clock, log, line, devices }: DeskOptions): Desk {
  const schedule = openSchedule();
  const bell = openBell(clock);
  const polls = new Map<number, Polled>();
  const complain = openComplaint(log, 'a poll or an order is at fault');
  let inFlight: Job | Polled | undefined;

  /** Calls out; what it throws is told and otherwise undefined. */
  function guard<Result>(call: () => Result): Result | undefined {
    try {
      return call();
    } catch (error) {
      complain(error);
      return undefined;
    }
  }

  async function ask(job: Job | Polled, exchange: Exchange<unknown>, request: Uint8Array) {
    inFlight = job;
    const by = 'poll' in job ? 'poll' : 'order';
    const { conversation, changed } = await devices
      .converse(job.device, exchange, request, by)
      .finally(() => {
        inFlight = undefined;
      });
    const { outcome, turnaroundMs } = conversation;
    if (outcome.kind === 'busy') job.device.askableAt = conversation.endedAt + BUSY_WAIT_MS;
    if ('order' in job) guard(() => job.order.observe?.({ outcome: outcome.kind, turnaroundMs }));
    const polled = polls.get(job.device.address);
    if (changed && polled) guard(() => polled.poll.alive(job.device.isAlive === true));
    return outcome;
  }

  async function serve(job: Job): Promise<void> {
    const { device, exchange, order } = job;
    let request: Uint8Array;
    try {
      request = exchange.request();
    } catch (error) {
      job.reject(error);
      return;
    }
    const outcome = await ask(job, exchange, request).catch((error: unknown) => {
      job.reject(job.lastError ?? error);
      throw error;
    });
    job.attempts += 1;
    if (outcome.kind === 'reply') return job.resolve(outcome.reply);
    job.lastError = errorOf(outcome, device.address);
    const repeats = outcome.kind !== 'refused' && job.attempts < order.attempts && !job.isSettled();
    if (repeats && !line.gone.aborted) schedule.again(job);
    else job.reject(job.lastError);
  }

  async function read(polled: Polled): Promise<void> {
    const { poll, device } = polled;
    polled.dueAt = clock.monotonic() + poll.everyMs;
    const question = guard(() => {
      const exchange = poll.begin();
      return { exchange, request: exchange.request() };
    });
    if (!question) {
      polled.dueAt = clock.monotonic() + Math.max(poll.everyMs, BROKEN_POLL_WAIT_MS);
      return;
    }
    const outcome = await ask(polled, question.exchange, question.request);
    if (polls.get(device.address) !== polled) return;
    guard(() =>
      poll.settle(
        outcome.kind === 'reply' ? { reply: outcome.reply } : { error: errorOf(outcome, device.address) },
      ),
    );
  }

  line.gone.addEventListener('abort', () => {
    const unknown = new DriverError('NO_REPLY', 'the port was lost before the reply', {
      cause: line.gone.reason,
    });
    if (inFlight && 'order' in inFlight) inFlight.reject(unknown);
    for (const job of schedule.drain()) job.reject(job.lastError ?? line.gone.reason);
    bell.ring();
  });

  return {
    exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal) {
      return new Promise<unknown>((resolve, reject) => {
        signal.throwIfAborted();
        line.gone.throwIfAborted();
        const job = newJob({ device: devices.at(exchange.address), exchange, order }, signal, {
          resolve,
          reject(error) {
            schedule.remove(job);
            reject(error);
          },
        });
        try {
          schedule.add(job);
          bell.ring();
        } catch (error) {
          job.reject(error);
        }
      }) as Promise<Reply>;
    },
    poll(poll) {
      const device = devices.at(poll.address);
      if (polls.has(poll.address)) {
        throw new DriverError('INVALID_OPTIONS', `address ${poll.address} is on the list twice`);
      }
      const polled: Polled = { device, poll, dueAt: clock.monotonic() };
      watchDevice(device, true);
      polls.set(poll.address, polled);
      schedule.watch(polled);
      bell.ring();
      return {
        [Symbol.dispose]() {
          if (polls.get(poll.address) !== polled) return;
          polls.delete(poll.address);
          schedule.unwatch(polled);
          watchDevice(device, false);
        },
      };
    },
    report: devices.report,
    async work() {
      for (;;) {
        await line.silent();
        const turn = schedule.next(clock.monotonic());
        if (turn.kind === 'nobody') await bell.wait(turn.until - clock.monotonic());
        else if (turn.kind === 'order') await serve(turn.job);
        else await read(turn.polled);
      }
    },
  };
}

function newJob(
  what: Pick<Job, 'device' | 'exchange' | 'order'>,
  signal: AbortSignal,
  { resolve, reject }: Pick<Job, 'resolve' | 'reject'>,
): Job {
  let isSettled = false;
  function settle(call: () => void): void {
    if (isSettled) return;
    isSettled = true;
    signal.removeEventListener('abort', abort);
    call();
  }
  const job: Job = {
    ...what,
    attempts: 0,
    lastError: undefined,
    resolve: (reply) => settle(() => resolve(reply)),
    reject: (error) => settle(() => reject(error)),
    isSettled: () => isSettled,
  };
  const abort = () => job.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return job;
}

function errorOf(outcome: Exclude<Outcome, { kind: 'reply' }>, address: number): DriverError {
  switch (outcome.kind) {
    case 'refused':
      return new DriverError('REFUSED', `device ${address} refused: ${outcome.reason}`);
    case 'busy':
      return new DriverError('REFUSED', `device ${address} is busy`);
    case 'timeout':
      return new DriverError('NO_REPLY', `device ${address} did not answer in time`);
    case 'crc':
      return new DriverError('BAD_REPLY', `the reply of device ${address} was damaged on the wire`);
    case 'framing':
      return new DriverError('BAD_REPLY', `what came instead of a reply of device ${address} is no frame`);
    case 'foreign':
      return new DriverError('BAD_REPLY', `what came is no answer to what device ${address} was asked`);
    case 'collision':
      return new DriverError('BAD_REPLY', `what was sent to device ${address} was disturbed on the wire`);
  }
}
