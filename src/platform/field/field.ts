/**
 * The field: every link of the site, in host processes. What runs where, commands to links, and what is known of each.
 * Links come up in their own time; nothing here waits for them.
 */
import { join } from 'node:path';
import {
  DriverError,
  type DriverEvent,
  type Plain,
  type StateReport,
} from '../../../drivers/contract/driver.ts';
import { type Acting, ALWAYS_ACTING } from '../acting.ts';
import type { Clock } from '../clock.ts';
import { makeFolder } from '../host/durable-file.ts';
import type { LinkCommand } from '../link-command.ts';
import type { HostListener } from './conversation.ts';
import { type Host, type HostState, type LinkSpec, openHost } from './hosts.ts';
import { COMMAND_TIMEOUT_MAX_MS, type Failure, isPlain, KIND_MAX } from './ipc.ts';
import type { HostProcess, ProcessOptions } from './process.ts';

export type { HostState, LinkSpec } from './hosts.ts';

/** Between the starts of two hosts, so that a small board is not asked for everything at once. */
const HOST_STAGGER_MS = 250;

export interface FieldOptions extends ProcessOptions {
  /** Where the pid files of hosts are kept; made (0700) when it does not exist. */
  directory: string;
  /** Sends SIGKILL to a process that is not a child of this one: a host left by a daemon that was killed. */
  kill: (pid: number) => void;
  /** Until when commands may be sent; for good when absent. */
  acting?: Acting;
  /** The first process of a host, which runs already. */
  first?: { name: string; process: HostProcess } | undefined;
  /** The latest state of a subject of a link; what it throws is logged. */
  onReport?(linkId: string, report: StateReport): void;
  /** A link came up or went down. */
  onLink?(linkId: string, link: LinkState): void;
  /** Resolves when the event is durable; when it rejects, the event comes again with the same id. */
  onEvent(linkId: string, event: DriverEvent): Promise<void>;
}

export interface LinkState {
  up: boolean;
  /** Since when it is up, or down: epoch milliseconds. */
  since: number;
  /** Why it is, or last was, down. */
  lastError: Failure | undefined;
}

export interface FieldState {
  hosts: HostState[];
  links: (LinkState & {
    id: string;
    protocol: string;
    host: string;
    /** The latest of each subject; they stay when the link goes down, and grow old. */
    reports: { subject: string; state: Plain; ageMs: number }[];
  })[];
}

export interface Field extends AsyncDisposable {
  /**
   * Has a link execute a command, at most once. Rejects with a DriverError: LINK_LOST when it was not handed over, or not released,
   * OUTCOME_UNKNOWN when it was and no one knows. Firing the signal asks the driver to stop; its word still decides.
   */
  execute(linkId: string, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** Has the host of a link start again, with the options there are then; its other links with it. */
  restart(linkId: string): void;
  /** Whether a command of the link is being executed. */
  isBusy(linkId: string): boolean;
  specs(): LinkSpec[];
  /** Closes these links for good; the other links of their hosts go on. Resolves when the hosts without links have ended. */
  close(linkIds: readonly string[]): Promise<void>;
  /** Adds links, in the hosts there are where they have the same name. Returns at once. */
  open(specs: readonly LinkSpec[]): void;
  /** undefined: there is no such link. */
  link(linkId: string): LinkState | undefined;
  state(): FieldState;
}

interface LinkRecord extends LinkState {
  spec: LinkSpec;
  host: Host;
  reports: Map<string, { state: Plain; at: number }>;
}

/** Without a link so far. Disposal closes every link and ends every host. */
export function openField(options: FieldOptions): Field {
  const { directory, clock } = options;
  makeFolder(directory);
  const links = new Map<string, LinkRecord>();
  const hosts = new Map<string, RunningHost>();
  const stop = new AbortController();

  function start(name: string, specs: readonly LinkSpec[], delayMs: number): Host {
    const stopHost = new AbortController();
    const signal = AbortSignal.any([stop.signal, stopHost.signal]);
    const host: Host = openHost({
      ...options,
      acting: options.acting ?? ALWAYS_ACTING,
      name,
      links: specs,
      pidFile: join(directory, `${name}.pid`),
      first: options.first?.name === name ? options.first.process : undefined,
      listener: listenFor(options, (linkId) => {
        const link = links.get(linkId);
        return link?.host === host ? link : undefined;
      }),
    });
    const run = async () => {
      if (delayMs > 0) await clock.sleep(delayMs, signal).catch(() => undefined);
      await host.run(signal);
    };
    hosts.set(name, { host, stop: stopHost, ended: run() });
    return host;
  }

  function record(specs: readonly LinkSpec[], host: Host): void {
    const down = { up: false, since: clock.now(), lastError: undefined };
    for (const spec of specs) links.set(spec.id, { spec, host, reports: new Map(), ...down });
  }

  return {
    async execute(linkId, command, signal) {
      const link = links.get(linkId);
      if (!link) throw new DriverError('LINK_LOST', `${linkId} is not in the configuration`);
      refuseInvalid(command);
      const conversation = link.host.conversation();
      if (!conversation)
        throw new DriverError('LINK_LOST', `link ${linkId} is down: its host process does not run`);
      return conversation.execute(linkId, command, signal);
    },
    restart: (linkId) => links.get(linkId)?.host.restart(),
    isBusy: (linkId) => links.get(linkId)?.host.conversation()?.isBusy(linkId) ?? false,
    specs: () => [...links.values()].map(({ spec }) => spec),
    async close(linkIds) {
      for (const [id, link] of links) {
        if (!linkIds.includes(id)) continue;
        link.host.close(id);
        setLink(options, id, link, false, CLOSED);
        links.delete(id);
      }
      const inUse = new Set([...links.values()].map(({ host }) => host));
      const unused = [...hosts].filter(([, { host }]) => !inUse.has(host));
      for (const [name, one] of unused) {
        hosts.delete(name);
        one.stop.abort();
      }
      await Promise.all(unused.map(([, { ended }]) => ended));
    },
    open(specs) {
      assertFit([...[...links.values()].map(({ spec }) => spec), ...specs]);
      let started = 0;
      for (const [name, added] of Map.groupBy(specs, ({ host }) => host)) {
        const there = hosts.get(name);
        record(added, there?.host ?? start(name, added, started++ * HOST_STAGGER_MS));
        for (const spec of added) there?.host.open(spec);
      }
    },
    link: (linkId) => links.get(linkId),
    state: () => ({
      hosts: [...hosts.values()].map(({ host }) => host.state()),
      links: [...links.values()].map((link) => stateOf(link, clock)),
    }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([...hosts.values()].map(({ ended }) => ended));
    },
  };
}

const CLOSED: Failure = { code: 'LINK_LOST', message: 'the configuration has changed' };

interface RunningHost {
  host: Host;
  stop: AbortController;
  ended: Promise<void>;
}

function assertFit(specs: readonly LinkSpec[]): void {
  const ids = new Set<string>();
  for (const { id, options } of specs) {
    if (ids.has(id)) throw new Error(`two links are called ${id}`);
    ids.add(id);
    if (typeof options !== 'function' && !isPlain(options))
      throw new Error(`the options of link ${id} are not plain data`);
  }
}

/** Keeps the record of each link of a host, and passes on what the host says of it. */
function listenFor(options: FieldOptions, linkOf: (linkId: string) => LinkRecord | undefined): HostListener {
  const { clock } = options;
  return {
    link(linkId, up, error) {
      const link = linkOf(linkId);
      if (link) setLink(options, linkId, link, up, error);
    },
    report(linkId, report) {
      const link = linkOf(linkId);
      if (!link) return;
      link.reports.set(report.subject, { state: report.state, at: clock.monotonic() });
      passOn(options, linkId, () => options.onReport?.(linkId, report));
    },
    event: async (linkId, event) => options.onEvent(linkId, event),
  };
}

function setLink(
  options: FieldOptions,
  linkId: string,
  link: LinkRecord,
  up: boolean,
  error: Failure | undefined,
): void {
  const { clock, log } = options;
  if (error) link.lastError = error;
  if (link.up === up) return;
  link.up = up;
  link.since = clock.now();
  const { since, lastError } = link;
  const reason = error ? { code: error.code, reason: error.message } : {};
  log.info({ link: linkId, ...reason }, `link ${linkId} is ${up ? 'up' : 'down'}`);
  passOn(options, linkId, () => options.onLink?.(linkId, { up, since, lastError }));
}

function passOn({ log }: FieldOptions, linkId: string, notify: () => void): void {
  try {
    notify();
  } catch (error) {
    log.error({ link: linkId, err: error }, `what link ${linkId} said could not be taken in`);
  }
}

function refuseInvalid({ kind, data, timeoutMs }: LinkCommand): void {
  const inTime = Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= COMMAND_TIMEOUT_MAX_MS;
  if (!inTime) throw new DriverError('INVALID_COMMAND', `a command takes 1 to ${COMMAND_TIMEOUT_MAX_MS} ms`);
  if (kind.length < 1 || kind.length > KIND_MAX || !isPlain(data)) {
    throw new DriverError('INVALID_COMMAND', 'a command takes a kind and plain data within bounds');
  }
}

function stateOf(
  { spec, up, since, lastError, reports }: LinkRecord,
  clock: Clock,
): FieldState['links'][number] {
  const now = clock.monotonic();
  const { id, protocol, host } = spec;
  const ages = [...reports].map(([subject, { state, at }]) => ({ subject, state, ageMs: now - at }));
  return { id, protocol, host, up, since, lastError, reports: ages };
}
