/**
 * One group of links and the process that runs it: started when its predecessor is gone, watched, ended, restarted.
 *
 * A process, and not a thread: a crash, a stuck library or a slow disk in one place must not delay a bus or a door
 * elsewhere; a serial port library aborts the whole process from a thread; the library of Zigbee coordinators holds one
 * per process; and the kernel takes back what a killed process held. Two masters on one bus are worse than none, hence
 * the wait for the predecessor.
 */

import type { Plain } from '../../../drivers/contract/driver.ts';
import { fired, settles } from '../../../drivers/contract/waiting.ts';
import type { Acting } from '../acting.ts';
import { type Backoff, supervise } from '../supervise.ts';
import { type Conversation, type HostListener, openConversation } from './conversation.ts';
import { isPlain, type LinkStart } from './ipc.ts';
import { forgetProcess, predecessorGone, recordProcess } from './pid-file.ts';
import { groupOf, type HostProcess, type ProcessOptions, startProcess } from './process.ts';

/**
 * Buses and doors wait for it, so the first times it is started again at once; one that dies each time at its start takes
 * a second of a core each time, and is left in peace for longer.
 */
const HOST_BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000, healthyMs: 10_000 };
/** What a host wrote before its end is read for so long after it. */
const READ_OUT_MS = 1_000;

export interface LinkSpec {
  id: string;
  /** A name in drivers/index.ts. */
  protocol: string;
  /** Links with the same host share one process. */
  host: string;
  /** Or what makes them, called at each start of the process; when it throws, the start is tried again later. */
  options: Plain | (() => Plain);
  /** What the configuration says of it, to see whether it has changed; by default the options. */
  wiring?: Plain;
}

export interface HostOptions extends ProcessOptions {
  name: string;
  links: readonly LinkSpec[];
  /** Its first process, when it runs already. */
  first: HostProcess | undefined;
  pidFile: string;
  kill: (pid: number) => void;
  listener: HostListener;
  acting: Acting;
}

export interface HostState {
  name: string;
  /** Undefined while no process runs, as is the age. */
  pid: number | undefined;
  heartbeatAgeMs: number | undefined;
  /** Processes started after the first. */
  restarts: number;
}

export interface Host {
  /** Keeps a process running until the signal fires; resolves when it is gone. */
  run(signal: AbortSignal): Promise<void>;
  /** With its process; undefined while none runs. */
  conversation(): Conversation | undefined;
  /** One more link, or one that was closed before. Throws when its options are not plain data. */
  open(link: LinkSpec): void;
  /** Closes one link; the others go on. */
  close(linkId: string): void;
  /** Ends the process, for the next one to be started at once, with the options there are then. */
  restart(): void;
  state(): HostState;
}

export function openHost(options: HostOptions): Host {
  const { name, pidFile, clock, listener, acting } = options;
  const log = options.log.child({ host: name });
  const links = new Map(options.links.map((link) => [link.id, link]));
  let current: { pid: number; conversation: Conversation; given: Set<string>; restart(): void } | undefined;
  let { first } = options;
  let starts = 0;

  /** Returns when it was to be started again. */
  async function runProcess(signal: AbortSignal): Promise<void> {
    await predecessorGone(pidFile, clock, log, options.kill, signal);
    signal.throwIfAborted();
    const started = [...links.values()].map(startOf);
    const given = new Set(links.keys());
    const restart = Promise.withResolvers<string>();
    const child = first ?? startProcess(groupOf(name, started), options);
    first = undefined;
    const ending = new AbortController();
    const heard = untilEnding(listener, ending.signal);
    using conversation = openConversation({
      stream: child.stream,
      linkIds: given,
      listener: heard,
      clock,
      log,
      acting,
    });
    let reason = 'asked to end';
    try {
      if (child.pid === undefined) throw new Error(await child.exited);
      starts += 1;
      recordProcess(pidFile, child.pid);
      current = { pid: child.pid, conversation, given, restart: () => restart.resolve(RESTARTED) };
      log.info({ pid: child.pid }, `host ${name} runs as process ${child.pid}`);
      conversation.start(started);
      const lapsed = acting.over(ending.signal).then(() => LAPSED);
      const asked = fired(signal).then(() => 'asked to end');
      reason = await Promise.race([child.exited, conversation.failed, asked, restart.promise, lapsed]);
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
      throw error;
    } finally {
      current = undefined;
      ending.abort();
      const error = { code: 'LINK_LOST', message: `its host process ended (${reason})` } as const;
      for (const id of links.keys()) listener.link(id, false, error);
      // It knows the time, and closes its links by itself.
      if (reason === LAPSED)
        await settles(child.exited, Math.max(0, acting.until() - clock.monotonic()), clock);
      await child.end(signal.aborted || reason === RESTARTED);
      // What it wrote before its end is still read: answers and events that came in time count.
      await settles(conversation.failed, READ_OUT_MS, clock);
      forgetProcess(pidFile);
    }
    if (reason !== RESTARTED && reason !== LAPSED) throw new Error(`${reason}; ${await child.exited}`);
  }

  async function runOnce(signal: AbortSignal): Promise<never> {
    for (;;) {
      await acting.begun(signal);
      await runProcess(signal);
    }
  }

  return {
    run: (signal) =>
      supervise({ name: `host ${name}`, run: runOnce, signal, clock, log, backoff: HOST_BACKOFF }),
    conversation: () => current?.conversation,
    open(link) {
      const start = startOf(link);
      links.set(link.id, link);
      current?.given.add(link.id);
      current?.conversation.openLink(start);
    },
    close(linkId) {
      links.delete(linkId);
      current?.conversation.closeLink(linkId);
    },
    restart: () => current?.restart(),
    state: () => ({
      name,
      pid: current?.pid,
      heartbeatAgeMs: current?.conversation.heartbeatAgeMs(),
      restarts: Math.max(0, starts - 1),
    }),
  };
}

/** Why a process was ended. */
const RESTARTED = 'to be started again';
const LAPSED = 'this gateway may move nothing until it has renewed its lease';

/** Throws when they are not plain data. */
function startOf({ id, protocol, options }: LinkSpec): LinkStart {
  const own = typeof options === 'function' ? options() : options;
  if (isPlain(own)) return { id, protocol, options: own };
  throw new Error(`the options of link ${id} are not plain data within bounds`);
}

/** How the links of a process are counts until it ends; events of it count after that, too. */
function untilEnding(listener: HostListener, ending: AbortSignal): HostListener {
  return {
    link(...update) {
      if (!ending.aborted) listener.link(...update);
    },
    report(...update) {
      if (!ending.aborted) listener.report(...update);
    },
    event: listener.event,
  };
}
