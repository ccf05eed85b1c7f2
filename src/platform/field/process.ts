/**
 * A process that runs a group of links. It may be started while the daemon's own code is still being loaded, for both
 * take half a second: until it receives its links it is the master of no bus, and it ends with its channel.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { DAEMON_DESCRIPTOR } from './channel.ts';
import { CLOSING_DEADLINE_MS } from './ipc.ts';

/**
 * How Node runs a host, which stands beside the daemon on a small board: a small young generation, garbage collected when it
 * is a tenth of what lives. SIGUSR1 would open a port for debuggers, which every user of this machine can connect to.
 */
const NODE_FLAGS = ['--disable-sigusr1', '--max-semi-space-size=1', '--heap-growing-percent=10'];
/**
 * Code interpreted or compiled as it stands. That saves a third of the memory; what optimising compilers would save is a
 * few per cent of a core on four busy buses.
 */
const UNOPTIMISED = ['--no-opt', '--no-maglev'];
/**
 * The compilers are left on where somebody stands at a door and waits: an unlock through the library of Zigbee takes 1 ms
 * less with them, and a host with a hundred locks 20 MB more.
 */
const flagsFor = ({ protocols }: Group) =>
  protocols.includes('zigbee') ? NODE_FLAGS : [...NODE_FLAGS, ...UNOPTIMISED];
/** After a host has closed its links or given up, for the process to be gone. */
const EXIT_MARGIN_MS = 1_000;
/** A process that outlives SIGKILL this long hangs in the kernel, which an operator should know. */
const UNKILLABLE_MS = 5_000;
/** Characters of what a library prints that are kept per chunk. */
const OUTPUT_MAX = 4_096;

/** Links that share one process. */
export interface Group {
  name: string;
  /** Names in drivers/index.ts: their code is loaded at once. */
  protocols: readonly string[];
}

export interface HostProcess {
  /** Undefined when it could not be started. */
  pid: number | undefined;
  stream: Duplex;
  /** Resolves with how it ended, or why it could not be started. */
  exited: Promise<string>;
  /** Resolves when it is gone: killed, or asked first when `politely`. Again: does nothing. */
  end(politely: boolean): Promise<void>;
}

export interface ProcessOptions {
  /** The node that runs hosts: process.execPath. */
  execPath: string;
  /** All that hosts see of the environment; empty when absent. */
  environment?: Readonly<Record<string, string>>;
  /** The script of a host; start-host.js when absent. */
  hostEntry?: string;
  clock: Clock;
  log: Log;
}

/** Never throws: one that cannot be started has ended. */
export function startProcess(group: Group, options: ProcessOptions): HostProcess {
  const { name, protocols } = group;
  const { execPath, environment = {}, clock } = options;
  const entry = options.hostEntry ?? join(import.meta.dirname, 'host', 'start-host.js');
  const log = options.log.child({ host: name });
  const child: ChildProcess = spawn(execPath, [...flagsFor(group), entry, name, ...protocols], {
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
  return {
    pid: child.pid,
    stream,
    exited,
    async end(politely) {
      if (politely) {
        child.kill('SIGTERM');
        await settles(exited, CLOSING_DEADLINE_MS + EXIT_MARGIN_MS, clock);
      }
      // Does nothing to a process that has ended.
      child.kill('SIGKILL');
      if (await settles(exited, UNKILLABLE_MS, clock)) return;
      const { pid } = child;
      log.error(
        { pid },
        `process ${pid} hangs in the kernel, and its links stay down until it is gone: unplug its adapters, or restart this machine`,
      );
      await exited;
    },
  };
}

export function groupOf(name: string, links: readonly { protocol: string }[]): Group {
  return { name, protocols: [...new Set(links.map(({ protocol }) => protocol))] };
}

/** In the order of the links. */
export function groupsOf(links: readonly { host: string; protocol: string }[]): Group[] {
  return [...Map.groupBy(links, ({ host }) => host)].map(([name, specs]) => groupOf(name, specs));
}
