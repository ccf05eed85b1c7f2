/**
 * A host, but for what needs `process` (host.ts): talks to the daemon, runs its links, and ends when the daemon asks it to,
 * when the daemon has gone, or when a driver is stuck.
 * Each command is executed at most once in the life of the host, and not past its deadline.
 */

import type { Duplex } from 'node:stream';
import { DriverError } from '../../../../drivers/contract/driver.ts';
import { settles } from '../../../../drivers/contract/waiting.ts';
import type { DriverTable } from '../../../../drivers/index.ts';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { openChannel } from '../channel.ts';
import {
  CLOSING_DEADLINE_MS,
  DAEMON_BEATS_MISSED_MAX,
  type DaemonMessage,
  HEARTBEAT_MS,
  type HostMessage,
  type LinkStart,
  ORPHAN_CLOSING_DEADLINE_MS,
  parseDaemonMessage,
} from '../ipc.ts';
import { failureOf, type Links, openLinks } from './links.ts';
import { openEvents, openHostLog, openReports } from './outbox.ts';

/** Exit codes, for anyone who reads the journal. */
export const EXIT = { asked: 0, orphan: 3, nonsense: 4, stuck: 5 } as const;

const NOT_ACTIVE = 'the time of this gateway as the active one is over';

interface Ending {
  code: number;
  reason: string;
}

export interface ServeOptions {
  /** The stream to the daemon. */
  stream: Duplex;
  /** Of the links to come: their drivers are loaded before the daemon says more of them. */
  protocols: readonly string[];
  drivers: DriverTable;
  clock: Clock;
  /** SIGTERM. */
  signal: AbortSignal;
}

/** Resolves with the exit code when every link is closed, or could not be closed in time: exit then, whatever still runs. */
export async function serve({ stream, protocols, drivers, clock, signal }: ServeOptions): Promise<number> {
  const ending = Promise.withResolvers<Ending>();
  const end = (code: number, reason: string) => ending.resolve({ code, reason });
  signal.addEventListener('abort', () => end(EXIT.asked, 'asked to end'), { once: true });

  const channel = openChannel<DaemonMessage, HostMessage>(stream, parseDaemonMessage, (message) =>
    receive(message),
  );
  void channel.closed.then((nonsense) =>
    nonsense ? end(EXIT.nonsense, nonsense.message) : end(EXIT.orphan, 'the daemon has gone'),
  );
  const { send } = channel;
  const log = openHostLog(send);
  const events = openEvents(send);
  const reports = openReports(send, clock, log);
  const stuck = (reason: string) => end(EXIT.stuck, reason);
  const links = openLinks({ drivers, clock, log, send, reports, events, stuck });
  const executions = openExecutions(send, clock, log, links);
  let started = false;
  let missedHeartbeats = 0;
  let actsUntil = Number.POSITIVE_INFINITY;

  async function start(specs: readonly LinkStart[]): Promise<void> {
    await links.load(specs);
    void links.start();
    for (;;) {
      void send({ type: 'heartbeat' });
      events.sendRefused();
      await clock.sleep(HEARTBEAT_MS);
      missedHeartbeats += 1;
      if (missedHeartbeats > DAEMON_BEATS_MISSED_MAX) end(EXIT.orphan, 'no heartbeat came from the daemon');
      // Also when this process was stopped and wakes: the timer has fired before anything else is read.
      if (clock.monotonic() >= actsUntil) end(EXIT.orphan, NOT_ACTIVE);
    }
  }

  function receive(message: DaemonMessage): void {
    switch (message.type) {
      case 'start':
        if (started) throw new Error('a second start');
        started = true;
        void start(message.links);
        break;
      case 'open':
        void links.open(message.link);
        break;
      case 'close':
        void links.closeOne(message.linkId);
        break;
      case 'heartbeat':
        missedHeartbeats = 0;
        actsUntil = message.actsUntil ?? Number.POSITIVE_INFINITY;
        break;
      case 'command':
        executions.command(message);
        break;
      case 'release':
        executions.release(message.id);
        break;
      case 'cancel':
        executions.cancel(message.id);
        break;
      case 'durable':
        events.durable(message.seq);
        break;
      case 'refused':
        events.refused(message.seq);
        break;
    }
  }

  // A driver that cannot be loaded is reported when its link is opened.
  for (const protocol of protocols)
    drivers
      .get(protocol)?.()
      .catch(() => undefined);

  const { code, reason } = await ending.promise;
  log.info({ code }, `the host ends: ${reason}`);
  const deadlineMs = code === EXIT.asked ? CLOSING_DEADLINE_MS : ORPHAN_CLOSING_DEADLINE_MS;
  await settles(links.close(), deadlineMs, clock);
  return code;
}

interface Execution {
  release(): void;
  /** Asks the driver to stop. */
  stop(reason: string): void;
}

function openExecutions(send: (message: HostMessage) => Promise<void>, clock: Clock, log: Log, links: Links) {
  const open = new Map<number, Execution>();
  let lastId = 0;

  async function run(message: Extract<DaemonMessage, { type: 'command' }>): Promise<void> {
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
      const answer = await links.execute(linkId, command, stop.signal);
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
    command(message: Extract<DaemonMessage, { type: 'command' }>): void {
      // Ids only rise, so one number remembers every command there was.
      if (message.id <= lastId) {
        log.error({ command: message.id }, 'a command came twice and was not executed again');
        return;
      }
      lastId = message.id;
      void run(message);
    },
    release: (id: number) => open.get(id)?.release(),
    cancel: (id: number) => open.get(id)?.stop('cancelled by the caller'),
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
