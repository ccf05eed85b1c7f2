/**
 * The field: every link of the site, in host processes. What runs where, commands to links, and what is known of each.
 * Links come up in their own time; nothing here waits for them.
 */
import { join } from 'node:path';
import { DriverError, type DriverEvent, type Plain, type StateReport } from '../../drivers/driver.ts';
import type { Clock } from '../clock.ts';
import type { LinkCommand } from '../execute.ts';
import { makeFolder } from '../host/durable-file.ts';
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
  links: readonly LinkSpec[];
  /** Sends SIGKILL to a process that is not a child of this one: a host left by a daemon that was killed. */
  kill: (pid: number) => void;
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
   * OUTCOME_UNKNOWN when it was and nobody knows. Firing the signal asks the driver to stop; its word still decides.
   */
  execute(linkId: string, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** Has the host of a link start anew, with the options there are then; its other links with it. */
  restart(linkId: string): void;
  state(): FieldState;
}

interface LinkRecord extends LinkState {
  spec: LinkSpec;
  host: Host;
  reports: Map<string, { state: Plain; at: number }>;
}

/** Returns at once; disposal closes every link and ends every host. */
export async function openField(options: FieldOptions): Promise<Field> {
  const { directory, clock } = options;
  makeFolder(directory);
  const links = new Map<string, LinkRecord>();
  const listener = listenFor(options, links);
  const hosts = new Map<string, Host>();
  for (const [name, specs] of Map.groupBy(options.links, ({ host }) => host)) {
    const host = openHost({
      ...options,
      name,
      links: specs,
      pidFile: join(directory, `${name}.pid`),
      first: options.first?.name === name ? options.first.process : undefined,
      listener,
    });
    hosts.set(name, host);
    for (const spec of specs) {
      if (links.has(spec.id)) throw new Error(`two links are called ${spec.id}`);
      if (typeof spec.options !== 'function' && !isPlain(spec.options))
        throw new Error(`the options of link ${spec.id} are not plain data`);
      const down = { up: false, since: clock.now(), lastError: undefined };
      links.set(spec.id, { spec, host, reports: new Map(), ...down });
    }
  }

  const stop = new AbortController();
  const running = [...hosts.values()].map(async (host, index) => {
    if (index > 0) await clock.sleep(index * HOST_STAGGER_MS, stop.signal).catch(() => undefined);
    await host.run(stop.signal);
  });
  return {
    async execute(linkId, command, signal) {
      const link = links.get(linkId);
      if (!link) throw new DriverError('INVALID_COMMAND', `there is no link ${linkId}`);
      refuseInvalid(command);
      return link.host.execute(linkId, command, signal);
    },
    restart: (linkId) => links.get(linkId)?.host.restart(),
    state: () => ({
      hosts: [...hosts.values()].map((host) => host.state()),
      links: [...links.values()].map((link) => stateOf(link, clock)),
    }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(running);
    },
  };
}

/** Keeps the record of each link, and tells whoever wants to know. */
function listenFor(options: FieldOptions, links: Map<string, LinkRecord>): HostListener {
  const { clock, log } = options;
  const told = (linkId: string, tell: () => void) => {
    try {
      tell();
    } catch (error) {
      log.error({ link: linkId, err: error }, `what link ${linkId} said could not be taken in`);
    }
  };
  return {
    link(linkId, up, error) {
      const link = links.get(linkId);
      if (!link) return;
      if (error) link.lastError = error;
      if (link.up === up) return;
      link.up = up;
      link.since = clock.now();
      const { since, lastError } = link;
      const reason = error ? { code: error.code, reason: error.message } : {};
      log.info({ link: linkId, ...reason }, `link ${linkId} is ${up ? 'up' : 'down'}`);
      told(linkId, () => options.onLink?.(linkId, { up, since, lastError }));
    },
    report(linkId, report) {
      links.get(linkId)?.reports.set(report.subject, { state: report.state, at: clock.monotonic() });
      told(linkId, () => options.onReport?.(linkId, report));
    },
    event: async (linkId, event) => options.onEvent(linkId, event),
  };
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
