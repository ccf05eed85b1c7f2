/**
 * A host, but for what needs `process` (host.ts): talks to the daemon, runs its links, and ends when the daemon asks it to,
 * when the daemon has gone, or when a driver is stuck.
 */

import type { Duplex } from 'node:stream';
import { settles } from '../../../../drivers/contract/waiting.ts';
import type { DriverTable } from '../../../../drivers/index.ts';
import type { Clock } from '../../clock.ts';
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
import { openLinks } from './links.ts';
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
        links.command(message);
        break;
      case 'release':
        links.release(message.id);
        break;
      case 'cancel':
        links.cancel(message.id);
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
