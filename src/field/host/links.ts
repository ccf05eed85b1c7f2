/** All links of a host: loaded, started one after the other, given their commands, closed in reverse. */
import {
  type Clock,
  type DriverCommand,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../../../drivers/driver.ts';
import type { DriverTable } from '../../../drivers/index.ts';
import type { Log } from '../../log.ts';
import type { HostMessage } from '../ipc.ts';
import { type Link, openLink } from './link.ts';
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

export interface Links {
  /** Loads the code of the drivers, which can hold this process up for seconds. */
  load(specs: readonly { id: string; protocol: string; options: Plain }[]): Promise<void>;
  start(): Promise<void>;
  execute(linkId: string, command: DriverCommand, signal: AbortSignal): Promise<Plain>;
  close(): Promise<void>;
}

export function openLinks({ drivers, clock, log, send, reports, events, stuck }: LinksOptions): Links {
  const links = new Map<string, Link>();
  const running: { stop: AbortController; ended: Promise<void> }[] = [];
  const closing = new AbortController();
  return {
    async load(specs) {
      for (const { id, protocol, options } of specs) {
        const link = openLink({
          id,
          options,
          open: await loadDriver(drivers, protocol),
          clock,
          log: log.child({ link: id }),
          report: (report) => reports.report(id, report),
          emit: (event, signal) => events.emit(id, event, signal),
          changed(up, error) {
            if (!up) reports.forget(id);
            void send({ type: 'link', linkId: id, up, ...(error && { error }) });
          },
          stuck,
        });
        links.set(id, link);
      }
    },
    async start() {
      for (const link of links.values()) {
        if (closing.signal.aborted) return;
        const stop = new AbortController();
        running.push({ stop, ended: link.run(stop.signal) });
        await clock.sleep(LINK_STAGGER_MS, closing.signal).catch(() => undefined);
      }
    },
    async execute(linkId, command, signal) {
      const link = links.get(linkId);
      if (!link) throw new DriverError('LINK_LOST', `link ${linkId} is not open yet`);
      return link.execute(command, signal);
    },
    async close() {
      closing.abort();
      for (const { stop, ended } of running.toReversed()) {
        stop.abort();
        await ended;
      }
    },
  };
}

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
