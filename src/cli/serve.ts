/** `gatehouse serve`: the daemon itself, from its configuration to its last line. */
import { existsSync, statSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { fired, within } from '../../drivers/contract/waiting.ts';
import { VERSION } from '../app/version.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import { openSource } from '../platform/config/config-file.ts';
import { isFullWithin } from '../platform/database/faults.ts';
import { TooLittleRoom } from '../platform/database/migrate.ts';
import { roomForStart, START_BYTES } from '../platform/database/space.ts';
import { groupsOf, startProcess } from '../platform/field/process.ts';
import { handedOver } from '../platform/host/handed-over.ts';
import { type Notifier, openNotifier } from '../platform/host/notify.ts';
import { feedWatchdog } from '../platform/host/watchdog.ts';
import { type Log, openLog } from '../platform/log.ts';
import type { Ending } from '../services/cluster/lease.ts';
import { configFile, openClient } from './client.ts';
import type { Member } from './cluster-member.ts';
import { holdDataDirectory } from './data-directory.ts';
import { assertFinished, removeLeftovers } from './leftovers.ts';
import { CommandFailed, type Shell } from './shell.ts';

/** Of a start on a full disk: below systemd's TimeoutStartSec. */
const ROOM_AWAITED_MS = 60_000;
const ROOM_LOOKED_AT_MS = 1_000;
/** From the signal to the end, when the event loop is free. */
const STOP_DEADLINE_MS = 10_000;
/** When a disk holds the event loop up in a write; below systemd's TimeoutStopSec. A kill loses nothing that was acknowledged. */
export const KILL_DEADLINE_MS = 20_000;
const KILLED = `gatehouse: the disk has held the stop up for ${KILL_DEADLINE_MS / 1_000} s, this ends it. What was answered is stored; what was not answered may not be.\n`;

/** Of one that was replaced, to close what it has: below what the lease of one that lets go has left. */
const ENDING_MS = 5_000;
const NOT_ACTIVE =
  'gatehouse: another gateway of the cluster is active, and this one was not closed in time: it ends at once.\n';

/** Serves until a signal. Throws ConfigError, or CommandFailed with what to change. */
export async function serve(options: { config?: string }, shell: Shell): Promise<void> {
  const file = configFile(options.config, shell);
  const source = openSource(file);
  const config = source.read({ checkFiles: true });
  const { log, control: logControl } = openLog({
    level: config.log.level,
    journal: shell.journal,
    terminal: shell.stdout.isTTY === true,
    write: (line) => shell.stdout.write(line),
  });
  shell.reportCrashes((err) => log.error({ err }, 'crashed: this is a fault of Gatehouse, please report it'));
  const started = { version: VERSION, node: shell.nodeVersion, config: file, program: import.meta.filename };
  log.info(started, 'starting');
  const reloading = openReloading(shell, log);
  const notifier = openNotifier(shell.env);

  await using stack = new AsyncDisposableStack();
  const first = firstProcess(config, log, shell);
  stack.defer(() => first?.process.end(false));
  // After the first host has been started, for loading it takes longest.
  const { openGateway } = await import('../app/gateway.ts');
  let member: Member | undefined;
  const gateway = await opening(config, shell, log, async () => {
    stack.use(holdDataDirectory(config.dataDirectory));
    assertFinished(config.dataDirectory);
    warnOfWriters(config.dataDirectory, log);
    clearLeftovers(config.dataDirectory, log);
    member = await activeIn(config, { shell, log, notifier });
    if (!member && config.cluster) return undefined;
    const takeover = member ? member.takeover : await takeoverAlone(config, shell, log);
    const processes = { ...shell.processes, first };
    const httpsDescriptor = handedOver(shell.env, 'https');
    const { clock } = shell;
    const given = { config, source, clock, log, logControl, processes, httpsDescriptor };
    return openGateway({ ...given, cluster: member, takeover });
  });
  // Stopped while it was the standby.
  if (!gateway) return;
  stack.adopt(gateway, (open) => closeInTime(open, shell.clock));
  const { baseUrl, encoderUrl, adminSocket, systemId } = gateway;
  const where = `ready at ${baseUrl}, encoders at ${encoderUrl}`;
  log.info({ baseUrl, encoderUrl, adminSocket, systemId }, where);
  notifier.ready(where);
  reloading.begin(gateway.reload);
  flushCompileCache();

  const local = openClient({ socket: adminSocket }, shell);
  const vitals = [...gateway.vitals, { name: 'interface', check: () => local.call('GET', '/healthz') }];
  const describe = () => (member?.leftMs() === 0 ? 'moves nothing: the lease cannot be renewed' : where);
  void feedWatchdog({ notifier, vitals, describe, clock: shell.clock, log }, shell.stopping);
  const ending = await Promise.race([fired(shell.stopping), member?.ended ?? new Promise<never>(() => {})]);
  if (ending && member) return endAsActive(member, { gateway, stack, notifier, log, shell }, ending);
  shell.killAfter?.(KILL_DEADLINE_MS, KILLED);
  notifier.stopping();
  log.info({ signal: shell.stopping.reason }, 'stopping');
}

interface Running {
  gateway: AsyncDisposable;
  stack: AsyncDisposableStack;
  notifier: Notifier;
  log: Log;
  shell: Shell;
}

/** Everything is let go of before another gateway may begin, at the latest with the end of the process. */
async function endAsActive(
  member: Member,
  { stack, notifier, log, shell }: Running,
  { reason }: Ending,
): Promise<never> {
  // One whose time is over already has let go: nothing leaves it, and its hosts have ended.
  shell.killAfter?.(Math.max(ENDING_MS, member.leftMs() ?? ENDING_MS), NOT_ACTIVE);
  log.warn({ reason }, `this gateway is the active one no more: ${reason}`);
  notifier.status(`not active any more: ${reason}`);
  const held = stack.move();
  await held.disposeAsync();
  await member
    .release()
    .catch((err) => log.warn({ err }, 'the other gateway waits for the end of the lease'));
  throw new CommandFailed(`not active any more: ${reason}; started again, this gateway is the standby`);
}

/** Undefined without a cluster, and when it was stopped before it was the active one. */
async function activeIn(
  { cluster, dataDirectory }: Config,
  { shell, log, notifier }: { shell: Shell; log: Log; notifier: Notifier },
): Promise<Member | undefined> {
  if (!cluster) return undefined;
  const { clock, stopping } = shell;
  let status = 'standby';
  const over = new AbortController();
  const waiting = (reason: string) => {
    status = `standby: ${reason}`;
    notifier.ready(status);
  };
  const alive = AbortSignal.any([stopping, over.signal]);
  void feedWatchdog({ notifier, vitals: [], describe: () => status, clock, log }, alive);
  try {
    const { joinCluster } = await import('./cluster-member.ts');
    return await joinCluster({ cluster, dataDirectory, clock, log, waiting }, stopping);
  } catch (error) {
    if (stopping.aborted) return undefined;
    throw error;
  } finally {
    over.abort();
  }
}

/** Of a gateway without a cluster that was in one. */
async function takeoverAlone({ dataDirectory }: Config, { clock }: Shell, log: Log) {
  if (!existsSync(join(dataDirectory, 'cluster'))) return undefined;
  const { beginAlone } = await import('./cluster-alone.ts');
  return beginAlone({ dataDirectory, clock, log });
}

const OTHERS_MAY_WRITE = 0o022;

/** No reason not to start: nothing of what is there may be opened by others. But they may remove it, and put something else there. */
function warnOfWriters(dataDirectory: string, log: Log): void {
  if ((statSync(dataDirectory).mode & OTHERS_MAY_WRITE) === 0) return;
  log.warn(
    { dataDirectory },
    `other users may write to ${dataDirectory}, where database and keys are: chmod go-w ${dataDirectory}`,
  );
}

/** No reason not to start. */
function clearLeftovers(dataDirectory: string, log: Log): void {
  const what = 'of a restore or backup that was killed: keys and database in clear';
  try {
    for (const path of removeLeftovers(dataDirectory)) log.warn({ path }, `removed what is left ${what}`);
  } catch (err) {
    log.error({ err, dataDirectory }, `cannot remove what is left ${what}; remove it by hand`);
  }
}

/** A signal that comes before the gateway is open counts once it is. */
function openReloading({ onHangup }: Shell, log: Log): { begin(reload: () => Promise<void>): void } {
  let isWanted = false;
  let run = () => {
    isWanted = true;
  };
  onHangup(() => run());
  return {
    begin(reload) {
      run = () => void reload().catch((err) => log.debug({ err }, 'the configuration was not reloaded'));
      if (isWanted) run();
    },
  };
}

/** Runs from now on, and waits for its links. */
function firstProcess({ links }: Config, log: Log, { clock, processes }: Shell) {
  const [group] = groupsOf(links);
  return group && { name: group.name, process: startProcess(group, { ...processes, clock, log }) };
}

async function closeInTime(gateway: AsyncDisposable, clock: Clock): Promise<void> {
  const late = () => new CommandFailed(`not everything was closed within ${STOP_DEADLINE_MS / 1_000} s`);
  await within(Promise.resolve(gateway[Symbol.asyncDispose]()), STOP_DEADLINE_MS, clock, late);
}

/** Turns what keeps the gateway from starting into one line that names the setting to change. */
async function opening<T>(config: Config, shell: Shell, log: Log, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (err) {
    log.debug({ err }, 'start-up failed');
    const tooLittle = [...causesOf(err)].find((cause) => cause instanceof TooLittleRoom);
    if (!tooLittle && !isFullWithin(err))
      throw new CommandFailed(startFailure(err, config), undefined, { cause: err });
    const neededBytes = tooLittle?.neededBytes ?? START_BYTES;
    const message = `${noRoomFor(config.dataDirectory, neededBytes)} (${startFailure(err, config)})`;
    await waitForRoom({ folder: config.dataDirectory, neededBytes }, message, shell, log);
    throw new CommandFailed(message, undefined, { cause: err });
  }
}

/** Without room, and without a ballast, nothing can be stored: a start would forget what it counts. */
function noRoomFor(folder: string, neededBytes: number): string {
  const { freeBytes } = roomForStart(folder);
  const missing = Math.max(1, Math.ceil((neededBytes - freeBytes) / 1_024));
  const backups = join(folder, 'backups');
  const copies = existsSync(backups) ? `, then the old copies in ${backups}` : '';
  const lack = neededBytes > START_BYTES ? 'has too little room' : 'is full';
  return `dataDirectory: the disk of ${folder} ${lack}, ${Math.floor(freeBytes / 1_024)} KiB are free: Gatehouse starts when ${missing} KiB more are. Look at df -h ${folder} and du -xh${copies}`;
}

/** systemd would start it again every two seconds, each time in vain and with a line in the journal. */
async function waitForRoom(
  { folder, neededBytes }: { folder: string; neededBytes: number },
  message: string,
  { clock, stopping }: Shell,
  log: Log,
) {
  log.error({ folder }, `${message}; waiting for room before the end, ${ROOM_AWAITED_MS / 1_000} s at most`);
  const until = clock.monotonic() + ROOM_AWAITED_MS;
  while (clock.monotonic() < until && !stopping.aborted && !roomForStart(folder, neededBytes).isEnough)
    await clock.sleep(ROOM_LOOKED_AT_MS, stopping).catch(() => undefined);
}

/** Exported for its test. */
export function startFailure(error: unknown, config: Config): string {
  const causes = [...causesOf(error)];
  const texts = causes.map((cause) => cause.message.replaceAll('\n', ' '));
  const message = texts.filter((text, depth) => !texts.slice(0, depth).some((outer) => outer.includes(text)));
  const setting = causes.map((cause) => settingOf(cause, config)).find((name) => name !== undefined);
  return [...(setting ? [setting] : []), ...message].join(': ');
}

function* causesOf(error: unknown): Generator<Error> {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    seen.add(cause);
    yield cause;
  }
  if (seen.size === 0) yield new Error(String(error));
}

/** The setting that named the address a system call has failed on. */
function settingOf(error: NodeJS.ErrnoException, config: Config): string | undefined {
  const { syscall, port, address, hostname } = error as NodeJS.ErrnoException & {
    port?: number;
    address?: string;
    hostname?: string;
  };
  const ports = { 'http.listen': config.http.listen, 'encoders.listen': config.encoders.listen };
  for (const [name, listen] of Object.entries(ports)) {
    if (syscall === 'listen' && port !== undefined && port === listen.port) return name;
    if (syscall === 'getaddrinfo' && hostname === listen.host) return name;
  }
  return syscall === 'listen' && port === undefined && address !== undefined ? 'adminSocket' : undefined;
}
