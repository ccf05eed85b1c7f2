/** All links of a host: loaded, started one after the other, given their commands, closed in reverse. */
import {
  type Clock,
  type DriverCommand,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../../../../drivers/contract/driver.ts';
import type { DriverTable } from '../../../../drivers/index.ts';
import type { Log } from '../../log.ts';
import type { HostMessage, LinkStart } from '../ipc.ts';
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
  load(specs: readonly LinkStart[]): Promise<void>;
  start(): Promise<void>;
  /** Loads and starts one more. */
  open(spec: LinkStart): Promise<void>;
  /** Resolves when it is closed, and the daemon knows that it is down. */
  closeOne(linkId: string): Promise<void>;
  execute(linkId: string, command: DriverCommand, signal: AbortSignal): Promise<Plain>;
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
    const link = linkOf(spec, await loadDriver(drivers, spec.protocol), options);
    links.set(spec.id, { link });
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
    async execute(linkId, command, signal) {
      const one = links.get(linkId);
      if (!one) throw new DriverError('LINK_LOST', `link ${linkId} is not open`);
      return one.link.execute(command, signal);
    },
    async close() {
      closing.abort();
      for (const one of [...links.values()].toReversed()) await end(one);
    },
  };
}

function linkOf(
  { id, options }: LinkStart,
  open: OpenDriver,
  { clock, log, send, reports, events, stuck }: LinksOptions,
): Link {
  return openLink({
    id,
    options,
    open,
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
