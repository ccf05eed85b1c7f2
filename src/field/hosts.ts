/**
 * One group of links and the process that runs it: started when its predecessor is gone, watched, ended, restarted.
 *
 * A process, and not a thread: a crash, a stuck library or a slow disk in one place must not delay a bus or a door
 * elsewhere; a serial port library aborts the whole process from a thread; the library of Zigbee coordinators holds one
 * per process; and the kernel takes back what a killed process held. Two masters on one bus are worse than none, hence
 * the wait for the predecessor.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { DriverError, type Plain } from '../../drivers/driver.ts';
import { type Clock, settlesWithin } from '../clock.ts';
import type { LinkCommand } from '../execute.ts';
import type { Log } from '../log.ts';
import { type Backoff, supervise } from '../supervise.ts';
import { DAEMON_DESCRIPTOR } from './channel.ts';
import { type Conversation, type HostListener, openConversation } from './conversation.ts';
import { CLOSING_DEADLINE_MS, isPlain } from './ipc.ts';
import { forgetProcess, predecessorGone, recordProcess } from './pid-file.ts';

/**
 * Buses and doors wait for it, so the first times it is started anew at once; one that dies each time at its start takes
 * a second of a core each time, and is left in peace for longer.
 */
const HOST_BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000, healthyMs: 10_000 };
/**
 * How Node runs a host, which stands beside the daemon on a small board and does little: a small young generation, garbage
 * collected when it is a tenth of what lives, and code interpreted or compiled as it stands. That saves a third of the
 * memory; what optimising compilers would save is a few per cent of a core on four busy buses.
 */
const NODE_FLAGS = ['--max-semi-space-size=1', '--heap-growing-percent=10', '--no-opt', '--no-maglev'];
/** After a host has closed its links or given up, for the process to be gone. */
const EXIT_MARGIN_MS = 1_000;
/** A process that outlives SIGKILL this long hangs in the kernel, which an operator should know. */
const UNKILLABLE_MS = 5_000;
/** Characters of what a library prints that are kept per chunk. */
const OUTPUT_MAX = 4_096;

export interface LinkSpec {
  id: string;
  /** A name in drivers/index.ts. */
  protocol: string;
  /** Links with the same host share one process. */
  host: string;
  /** Or what makes them, anew at each start of the process; when it throws, the start is tried again later. */
  options: Plain | (() => Plain);
}

export interface HostOptions {
  name: string;
  links: LinkSpec[];
  pidFile: string;
  /** The program that runs TypeScript, and the script of a host. */
  execPath: string;
  entry: string;
  /** All a host sees of the environment. */
  environment: Readonly<Record<string, string>>;
  kill: (pid: number) => void;
  listener: HostListener;
  clock: Clock;
  log: Log;
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
  execute(linkId: string, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** Ends the process, for the next one to be started at once, with the options there are then. */
  restart(): void;
  state(): HostState;
}

export function openHost(options: HostOptions): Host {
  const { name, links, pidFile, clock, listener } = options;
  const log = options.log.child({ host: name });
  const linkIds = new Set(links.map(({ id }) => id));
  let current: { pid: number; conversation: Conversation; restart(): void } | undefined;
  let starts = 0;

  /** Returns when it was to be started anew. */
  async function runProcess(signal: AbortSignal): Promise<void> {
    await predecessorGone({ file: pidFile, clock, log, kill: options.kill, signal });
    signal.throwIfAborted();
    const started = links.map((link) => ({ ...link, options: optionsOf(link) }));
    const anew = Promise.withResolvers<string>();
    const child = spawnHost(options, log);
    using conversation = openConversation({ stream: child.stream, linkIds, listener, clock, log });
    let reason = 'asked to end';
    try {
      if (child.pid === undefined) throw new Error(await child.exited);
      starts += 1;
      await recordProcess(pidFile, child.pid);
      current = { pid: child.pid, conversation, restart: () => anew.resolve(ANEW) };
      log.info({ pid: child.pid }, `host ${name} runs as process ${child.pid}`);
      conversation.start(started.map(({ id, protocol, options: own }) => ({ id, protocol, options: own })));
      reason = await Promise.race([child.exited, conversation.failed, fired(signal), anew.promise]);
    } finally {
      current = undefined;
      const error = { code: 'LINK_LOST', message: `its host process ended (${reason})` } as const;
      for (const id of linkIds) listener.link(id, false, error);
      await end(child, { politely: signal.aborted || reason === ANEW, clock, log });
      // What it wrote before its end is still read: answers and events that came in time count.
      await settlesWithin(conversation.failed, EXIT_MARGIN_MS, clock);
      await forgetProcess(pidFile);
    }
    if (reason !== ANEW) throw new Error(`${reason}; ${await child.exited}`);
  }

  async function runOnce(signal: AbortSignal): Promise<never> {
    for (;;) await runProcess(signal);
  }

  return {
    run: (signal) =>
      supervise({ name: `host ${name}`, run: runOnce, signal, clock, log, backoff: HOST_BACKOFF }),
    async execute(linkId, command, signal) {
      if (!current)
        throw new DriverError('LINK_LOST', `link ${linkId} is down: its host process does not run`);
      return current.conversation.execute(linkId, command, signal);
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
const ANEW = 'to be started anew';

/** Throws when they are not plain data. */
function optionsOf({ id, options }: LinkSpec): Plain {
  const own = typeof options === 'function' ? options() : options;
  if (isPlain(own)) return own;
  throw new Error(`the options of link ${id} are not plain data within bounds`);
}

interface Child {
  pid: number | undefined;
  stream: Duplex;
  /** Resolves with how it ended, or why it could not be started. */
  exited: Promise<string>;
  signal(signal: 'SIGTERM' | 'SIGKILL'): void;
}

function spawnHost({ execPath, entry, name, environment }: HostOptions, log: Log): Child {
  const child: ChildProcess = spawn(execPath, [...NODE_FLAGS, entry, name], {
    env: { ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const { promise: exited, resolve } = Promise.withResolvers<string>();
  child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? `code ${code}`}`));
  child.on('error', (error) => {
    if (child.pid === undefined) resolve(`it could not be started: ${error.message}`);
  });
  // Only what libraries print, and the last words of a crash; drivers log through the channel.
  for (const output of [child.stdout, child.stderr]) {
    output?.setEncoding('utf8');
    output?.on('data', (text: string) => log.warn({ output: text.slice(0, OUTPUT_MAX) }, 'the host printed'));
    output?.on('error', () => undefined);
  }
  const stream = child.stdio[DAEMON_DESCRIPTOR] as Duplex;
  return { pid: child.pid, stream, exited, signal: (signal) => void child.kill(signal) };
}

async function end(
  child: Child,
  { politely, clock, log }: { politely: boolean; clock: Clock; log: Log },
): Promise<void> {
  if (politely) {
    child.signal('SIGTERM');
    await settlesWithin(child.exited, CLOSING_DEADLINE_MS + EXIT_MARGIN_MS, clock);
  }
  // Does nothing to a process that has ended.
  child.signal('SIGKILL');
  if (await settlesWithin(child.exited, UNKILLABLE_MS, clock)) return;
  log.error(
    { pid: child.pid },
    `process ${child.pid} hangs in the kernel; its links stay down until it is gone`,
  );
  await child.exited;
}

function fired(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('asked to end');
    else signal.addEventListener('abort', () => resolve('asked to end'), { once: true });
  });
}
