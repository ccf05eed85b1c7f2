/**
 * Moving a network to another channel, which a lock that sleeps through it, or is out of reach just then, may not
 * survive. Hence: nothing is moved while locks were not seen lately unless somebody confirms it; the gateway is told
 * once; and who followed is counted.
 */
import { randomUUID } from 'node:crypto';
import { DriverError } from '../../drivers/driver.ts';
import { channelsApplied } from '../../drivers/settings.ts';
import type { MoveChannel } from '../../drivers/zgate.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { ReportProgress, StartJob } from '../job-order.ts';
import { type Caller, SYSTEM_PRINCIPAL, TECHNICIANS } from '../principal.ts';
import type { ChannelMoveBody } from './action-schema.ts';
import type { Channels } from './channels.ts';
import { type GatewayLock, type LocksOf, shownLock } from './gateway-locks.ts';
import { assertReachable, type ReachOptions } from './reach.ts';
import { existing, type ZgateRow, type ZgateTable } from './table.ts';

/** A network that moves tells its routers first. */
const MOVE_TIMEOUT_MS = 60_000;
/** For a lock that lost its parent to look for it on the other channels. */
const FOLLOW_WINDOW_MS = 15 * 60_000;
const FOLLOW_CHECK_MS = 1_000;
/** Of those not seen lately, the ones that are named in an answer. */
const NAMED_MAX = 20;

export interface MovesOptions extends ReachOptions {
  database: Database;
  table: ZgateTable;
  clock: Clock;
  startJob: StartJob;
  locksOf: LocksOf;
  channels: Pick<Channels, 'channelOf' | 'movedTo'>;
}

export type Moves = ReturnType<typeof openMoves>;

export function openMoves(options: MovesOptions) {
  const { table, startJob, locksOf, channels } = options;
  const unseenOf = (deviceId: string) => locksOf(deviceId).filter(({ isSeenLately }) => !isSeenLately);

  function begin(row: ZgateRow, to: number, caller: Caller, told: Told = UNTOLD): Promise<unknown> {
    const object = `zgate/${row.device_id}`;
    return startJob({
      kind: 'zigbee-channel-move',
      object,
      roles: TECHNICIANS,
      ...caller,
      async run(progress, signal) {
        const work = move(row, to, options, { moved: told.moved, progress, signal });
        work.catch(told.failed);
        return work;
      },
    });
  }

  return {
    /** Where the network has to go, and who stands in the way; undefined: it is where it is wanted. */
    needed(row: ZgateRow): { from: number; to: number; unseen: GatewayLock[] } | undefined {
      const from = channels.channelOf(row);
      const [to] = allowedOf(row);
      if (from === null || to === undefined || allowedOf(row).includes(from)) return undefined;
      return { from, to, unseen: unseenOf(row.device_id) };
    },

    async start(deviceId: string, body: ChannelMoveBody, caller: Caller): Promise<unknown> {
      const row = existing(table, deviceId);
      const to = targetOf(row, channels.channelOf(row), body.channel);
      const unseen = unseenOf(deviceId);
      if (unseen.length > 0 && !body.confirm) throw unconfirmed(unseen, locksOf(deviceId).length);
      assertReachable(row, options);
      return begin(row, to, caller);
    },

    /** Because the allowed channels exclude the present one. Rejects with a DriverError; resolves once it has moved. */
    async byItself(row: ZgateRow, to: number): Promise<void> {
      const how = `POST /network/zgate/${row.device_id}/channel-move`;
      if (row.moved_for_version === row.channels_version)
        throw new DriverError(
          'REFUSED',
          `the network was told to move once, and is not there: ${how} tells it again`,
        );
      const unseen = unseenOf(row.device_id).length;
      if (unseen > 0)
        throw new DriverError(
          'REFUSED',
          `the network has to move to channel ${to}, and ${unseen} of its locks were not seen lately: ${how} with confirm moves it all the same`,
        );
      if (!options.linkState(row.link)?.up) throw new DriverError('LINK_LOST', `link ${row.link} is down`);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
      // Those who follow are not waited for; and a move that failed is not tried again by itself.
      const failed = ({ message }: Error) =>
        reject(new DriverError('REFUSED', `${message}: ${how} tries again`));
      await begin(row, to, caller, { moved: resolve, failed }).catch((error: Error) => {
        throw new DriverError('BUSY', error.message);
      });
      await promise;
    },
  };
}

/** How a move went on, before its job has ended. */
interface Told {
  moved(): void;
  failed(error: Error): void;
}
const UNTOLD: Told = { moved() {}, failed() {} };

async function move(
  row: ZgateRow,
  to: number,
  { database, table, clock, execute, locksOf, channels }: MovesOptions,
  { moved, progress, signal }: { moved(): void; progress: ReportProgress; signal: AbortSignal },
): Promise<Record<string, unknown>> {
  const { device_id: deviceId, channels_version: version } = row;
  const before = channels.channelOf(row);
  const locks = locksOf(deviceId);
  progress({ done: 0, total: locks.length });
  await database.commit(() => table.setMovedFor.run(version, deviceId));
  signal.throwIfAborted();
  const data: MoveChannel = { channel: to };
  const command = { kind: 'moveChannel', data, timeoutMs: MOVE_TIMEOUT_MS };
  const answer = channelsApplied.safeParse(await execute(row.link, command, signal));
  if (answer.data?.zigbeeChannel !== to)
    throw new DriverError('BAD_REPLY', `the gateway did not say that the network is on channel ${to}`);
  const movedAt = clock.now();
  await channels.movedTo(deviceId, to);
  moved();
  const stragglers = await whoStayed({ clock, locksOf, deviceId, movedAt, progress, signal });
  const followed = locksOf(deviceId).length - stragglers.length;
  return { channel: to, before, locks: locks.length, followed, stragglers: stragglers.map(shownLock) };
}

/** Until all were heard of, or the time is over. */
async function whoStayed({
  clock,
  locksOf,
  deviceId,
  movedAt,
  progress,
  signal,
}: Pick<MovesOptions, 'clock' | 'locksOf'> & {
  deviceId: string;
  movedAt: number;
  progress: ReportProgress;
  signal: AbortSignal;
}): Promise<GatewayLock[]> {
  const end = clock.monotonic() + FOLLOW_WINDOW_MS;
  for (;;) {
    const locks = locksOf(deviceId);
    const stayed = locks.filter(({ lastSeen }) => (lastSeen ?? 0) <= movedAt);
    progress({ done: locks.length - stayed.length, total: locks.length });
    if (stayed.length === 0 || clock.monotonic() >= end) return stayed;
    await clock.sleep(FOLLOW_CHECK_MS, signal);
  }
}

function allowedOf(row: ZgateRow): number[] {
  return JSON.parse(row.allowed_channels) as number[];
}

/** Throws VALIDATION_FAILED. */
function targetOf(row: ZgateRow, present: number | null, wanted: number | undefined): number {
  const allowed = allowedOf(row);
  const fault = (message: string) =>
    new GatehouseError('VALIDATION_FAILED', `Not valid: /channel ${message}.`, {
      details: [{ path: '/channel', code: 'NOT_POSSIBLE', message }],
    });
  const hasToMove = present !== null && allowed.length > 0 && !allowed.includes(present);
  const to = wanted ?? (hasToMove ? allowed[0] : undefined);
  if (to === undefined) throw fault('is to be given: the network is where allowedChannels wants it');
  if (allowed.length > 0 && !allowed.includes(to))
    throw fault(`is none of allowedChannels (${allowed.join(', ')}): change those first`);
  if (to === present) throw fault('is the one that the network is on');
  return to;
}

function unconfirmed(unseen: readonly GatewayLock[], total: number): GatehouseError {
  const message = `${unseen.length} of ${total} locks were not seen lately, and may be lost when the network moves. See to them, or send confirm.`;
  const details = unseen.slice(0, NAMED_MAX).map(({ doorId, name, mac, lastSeen }) => ({
    path: '/confirm',
    code: 'NOT_SEEN_LATELY',
    message: `door ${name ?? doorId} (${mac}): ${lastSeen === null ? 'never seen' : `seen last ${new Date(lastSeen).toISOString()}`}`,
  }));
  return new GatehouseError('CONFIRMATION_NEEDED', message, { details });
}
