/** The radio with what it needs: the way to the coordinator, the files, and its start on one channel or another. */
import { type Clock, type DriverContext, DriverError } from '../contract/driver.ts';
import { channel as channelSchema } from '../contract/settings.ts';
import { settles } from '../contract/waiting.ts';
import { type Connection, connectionOptionsOf, openConnection } from './herdsman/connection.ts';
import { openRadio } from './herdsman/herdsman.ts';
import { storeNow } from './kept-files.ts';
import type { ZigbeeOptions } from './options.ts';
import type { Radio, RadioEvent } from './radio.ts';
import { redact } from './redact.ts';
import { type Prepared, prepareFiles } from './state-files.ts';

/** A start that restores takes 10 s, a channel move 15 s, and a slow coordinator twice that. */
const START_MS = 60_000;
/** Lines of the library a minute that are passed on. */
const LINES_MAX = 30;
const MINUTE_MS = 60_000;
/** Events of a radio that is being opened, which takes a second: a busy network has a hundred frames a second. */
const KEPT_MAX = 2_048;

export interface Network {
  /** The present one. */
  radio(): Radio;
  readonly files: Prepared;
  /**
   * What was heard since the radio was opened, or opened again by a move, is passed on now, and the rest as it comes. Not
   * before: a receiver has to know which radio, and which channel, it came from.
   */
  listen(): void;
  /**
   * Starts again on the channel, which is stored (files.storeChannel), and sends the locks there. Rejects with LINK_LOST
   * when it does not come back.
   */
  move(channel: number, signal: AbortSignal): Promise<void>;
  /**
   * Does not settle when the library hangs: the process is then to be replaced. `isLost`: nothing is asked of the
   * coordinator any more.
   */
  close(isLost: boolean): Promise<void>;
}

export interface NetworkOptions {
  options: ZigbeeOptions;
  context: DriverContext;
  mayJoin(ieee: string): boolean;
  /** After `listen`. */
  hear(event: RadioEvent): void;
}

/** Rejects with a DriverError, once nothing of it runs any more. */
export async function openNetwork(needs: NetworkOptions, signal: AbortSignal): Promise<Network> {
  const { options, context } = needs;
  const files = prepareFiles({
    directory: options.stateDirectory,
    ids: options.network,
    snapshot: options.snapshot,
    restore: options.restore,
    knownLocks: options.knownLocks,
    now: context.clock.now(),
  });
  const reportRepairs = () => {
    for (const repair of files.repairs) context.log.warn({}, repair);
  };
  // A restore is prepared again with each attempt.
  if (!options.restore) reportRepairs();
  const [first = 11] = options.allowedChannels;
  const channel = files.channel() ?? first;
  let current = await start(needs, files, channel, signal);
  if (options.restore) reportRepairs();
  files.keepChannel(current.radio.channel);
  let moving = Promise.resolve();

  async function moveTo(channelAfter: number, moveSignal: AbortSignal): Promise<void> {
    await close(current, false);
    const again = { ...needs, options: { ...options, restore: false } };
    current = await start(again, files, channelAfter, moveSignal);
    files.keepChannel(current.radio.channel);
  }

  return {
    radio: () => current.radio,
    files,
    listen: () => current.hearing.listen(),
    move(to, moveSignal) {
      const moved = moveTo(to, moveSignal);
      moving = moved.catch(() => undefined);
      return moved;
    },
    async close(isLost) {
      // Else a library that is being started would meet the next one of this process in its static variables.
      await moving;
      await close(current, isLost);
      storeNow();
    },
  };
}

interface Started {
  radio: Radio;
  connection: Connection | undefined;
  hearing: Hearing;
}

interface Hearing {
  hear(event: RadioEvent): void;
  listen(): void;
}

/** Keeps what is heard until `listen`, then passes it on. */
function openHearing({ hear, context: { log } }: NetworkOptions): Hearing {
  let kept: RadioEvent[] | undefined = [];
  return {
    hear(event) {
      if (!kept) return hear(event);
      if (kept.length === KEPT_MAX)
        log.warn(
          { events: KEPT_MAX },
          'what came while the radio was opened is lost: there was too much of it',
        );
      if (kept.length <= KEPT_MAX) kept.push(event);
    },
    listen() {
      const events = kept ?? [];
      kept = undefined;
      for (const event of events) hear(event);
    },
  };
}

async function close({ radio, connection }: Started, isLost: boolean): Promise<void> {
  if (isLost) connection?.[Symbol.dispose]();
  await radio.close();
  connection?.[Symbol.dispose]();
}

async function start(
  needs: NetworkOptions,
  files: Prepared,
  channel: number,
  signal: AbortSignal,
): Promise<Started> {
  const { options, context, mayJoin } = needs;
  const { clock } = context;
  const hearing = openHearing(needs);
  const way = connectionOptionsOf(options.port, options.cert);
  const connection = way && (await openConnection(way, clock, signal));
  const nothingIsKnown = !files.hasBackup && options.snapshot === null && options.knownLocks.length === 0;
  const over = new AbortController();
  const opening = openRadio({
    path: options.port,
    connection,
    adapter: options.adapter,
    baudRate: options.baudRate,
    rtscts: options.rtscts,
    network: { ...options.network, extPanId: files.extPanId(options.adapter) },
    channel,
    manufacturerCode: options.manufacturerCode,
    stateDirectory: options.stateDirectory,
    databaseFile: files.databaseFile,
    backup: files.backup,
    mayForm: nothingIsKnown,
    mayFormOver: options.newNetwork,
    mayRestore: options.restore,
    withoutKeys: options.withoutKeys,
    mayJoin,
    hear: hearing.hear,
    clock,
    signal: over.signal,
    log: openLibraryLog(context),
  });
  try {
    const inTime = await settles(opening, START_MS, clock, signal);
    if (inTime) {
      const radio = await onAChannel(opening);
      await radio
        .restoreChildren()
        .catch((err) => context.log.warn({ err }, 'a lock was not restored as a child of the coordinator'));
      return { radio, connection, hearing };
    }
  } catch (error) {
    connection?.[Symbol.dispose]();
    throw lost(error, options.adapter);
  }
  // The library cannot be called off; without its port it gives up by itself, else this process is replaced.
  over.abort();
  connection?.[Symbol.dispose]();
  await opening.then(
    (radio) => radio.close(),
    () => undefined,
  );
  signal.throwIfAborted();
  throw new DriverError('LINK_LOST', `the coordinator did not start within ${START_MS} ms`);
}

/** Rejects, with the radio closed, when it says that it is where no network can be. */
async function onAChannel(opening: Promise<Radio>): Promise<Radio> {
  const radio = await opening;
  if (channelSchema.safeParse(radio.channel).success) return radio;
  await radio.close();
  const reason = `the coordinator says that it is on channel ${radio.channel}, which does not exist: power it off and on, or update its firmware`;
  throw new DriverError('LINK_LOST', reason);
}

const STACKS = { zstack: 'a Z-Stack', ember: 'an EmberZNet' } as const;

export function lost(error: unknown, adapter: ZigbeeOptions['adapter']): DriverError {
  if (error instanceof DriverError) return error;
  const reason = redact(error instanceof Error ? error.message : String(error));
  const advice = `see that its port is that of ${STACKS[adapter]} coordinator (adapter; gatehouse zgate probe says what is there), that a serial one has this baudRate, and that it has power, else plug it in again`;
  return new DriverError('LINK_LOST', `the coordinator cannot be used (${reason}): ${advice}`);
}

/** What the library says, without secrets, and no more of it than somebody would read. */
function openLibraryLog({ clock, log }: { clock: Clock; log: DriverContext['log'] }) {
  let minute = Number.NEGATIVE_INFINITY;
  let lines = 0;
  return (level: 'info' | 'warn' | 'error', line: string) => {
    if (clock.monotonic() - minute >= MINUTE_MS) {
      minute = clock.monotonic();
      lines = 0;
    }
    lines += 1;
    if (lines > LINES_MAX) return;
    const text = `zigbee-herdsman: ${redact(line)}`;
    // Its errors are ours to judge: a lock out of reach is one to it.
    if (level === 'error') log.warn({}, text);
    else log.debug({}, text);
  };
}
