/**
 * Moving a network to another channel, which a lock that sleeps through it, or is out of reach just then, may not
 * survive. So a network with a lock that is not known to be there moves only when a person confirms it; the gateway gets the
 * command once; and locks that stay behind are named until they are heard on the new channel.
 */
import { randomUUID } from 'node:crypto';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { channelsApplied } from '../../../drivers/contract/settings.ts';
import type { MoveChannel } from '../../../drivers/contract/zgate.ts';
import { GatehouseError, notPossible } from '../../platform/errors.ts';
import { type Caller, SYSTEM_PRINCIPAL, TECHNICIANS } from '../../platform/principal.ts';
import { AWAKE } from '../../platform/waking.ts';
import type { ReportProgress } from '../../services/jobs/job-order.ts';
import type { ChannelMoveBody, ShownEnergies, ShownStayedBehind } from './action-schema.ts';
import type { Channels } from './channels.ts';
import type { ZgateContext } from './context.ts';
import type { Energies } from './energies.ts';
import {
  type GatewayLock,
  hasStayedBehind,
  shownLock,
  type Unreachable,
  unreachableOf,
} from './gateway-locks.ts';
import { assertReachable } from './reach.ts';
import { allowedChannelsOf, existing, type ZgateRow } from './table.ts';

/** A network that moves informs its routers first. */
const MOVE_TIMEOUT_MS = 60_000;
/** For a lock that lost its parent to look for it on the other channels. */
const FOLLOW_WINDOW_MS = 15 * 60_000;
const FOLLOW_CHECK_MS = 1_000;
/** Of those that are not known to be there, the ones that are named in an answer. */
const NAMED_MAX = 20;

export interface MovesOptions extends ZgateContext {
  channels: Pick<Channels, 'channelOf' | 'movedTo' | 'reported'>;
  energies: Pick<Energies, 'measure' | 'warning'>;
}

/** A lock that is not known to be there, and why. */
interface AbsentLock {
  lock: GatewayLock;
  reason: Unreachable;
}

export interface NetworkMove {
  /** Epoch milliseconds. */
  since: number;
  /** Resolves when it is over, however it ended; of one whose link was lost, when that is up again or has been away for long. */
  over: Promise<void>;
}

export interface Moves {
  /** Where the network has to go, and which locks stand in the way; undefined: it is where it is wanted. */
  needed(row: ZgateRow): { from: number; to: number; absent: AbsentLock[] } | undefined;
  /** The locks that were last heard of on another channel than the network is on. */
  stayedBehind(row: ZgateRow): GatewayLock[];
  /** The move of its network that is being carried out. */
  underWay(deviceId: string): NetworkMove | undefined;
  /** The link of the gateway came up. */
  linkUp(deviceId: string): void;
  start(deviceId: string, body: ChannelMoveBody, caller: Caller): Promise<unknown>;
  /** Because the allowed channels exclude the present one. Rejects with a DriverError; resolves once it has moved. */
  byItself(row: ZgateRow, to: number): Promise<void>;
}

export function openMoves(options: MovesOptions): Moves {
  const { table, jobs, locksOf, channels } = options;
  const underWay = openUnderWay(options);

  const absentOf = absentIn(options);

  /** Throws a DriverError while the network may not move unasked. */
  function assertMayMove(row: ZgateRow, to: number): void {
    const absent = absentOf(row);
    const [first] = absent;
    if (!first) return;
    // After a start of the link its locks are reported one after the other.
    if (absent.every(({ reason }) => reason === 'UNKNOWN'))
      throw new DriverError('BUSY', `the gateway has not reported lock ${first.lock.mac} yet`);
    throw new DriverError(
      'REFUSED',
      `the network has to move to channel ${to}, and ${absent.length} of its locks cannot be reached: a move that is ordered and confirmed goes on without them`,
    );
  }

  function begin(
    row: ZgateRow,
    to: number,
    caller: Caller,
    observer: Observer = UNOBSERVED,
  ): Promise<unknown> {
    const object = `zgate/${row.device_id}`;
    return jobs.start({
      kind: 'zigbee-channel-move',
      object,
      roles: TECHNICIANS,
      ...caller,
      async run(progress, signal) {
        const work = move(row, to, { ...options, underWay }, { observer, progress, signal });
        work.catch(observer.failed);
        return work;
      },
    });
  }

  return {
    needed(row: ZgateRow): { from: number; to: number; absent: AbsentLock[] } | undefined {
      const from = channels.channelOf(row);
      const [to] = allowedChannelsOf(row);
      if (from === null || to === undefined || allowedChannelsOf(row).includes(from)) return undefined;
      return { from, to, absent: absentOf(row) };
    },

    stayedBehind(row) {
      const channel = channels.channelOf(row);
      return locksOf(row.device_id).filter((lock) => hasStayedBehind(lock, channel));
    },
    underWay: underWay.of,
    linkUp: underWay.linkUp,

    async start(deviceId, body, caller) {
      const row = existing(table, deviceId);
      const to = targetOf(row, channels.channelOf(row), body.channel);
      assertReachable(row, options);
      const absent = absentOf(row);
      if (absent.length > 0 && !body.confirm) throw unconfirmed(absent, locksOf(deviceId).length);
      return begin(row, to, caller);
    },

    async byItself(row, to) {
      if (row.moved_for_version === row.channels_version)
        throw new DriverError(
          'REFUSED',
          `the network was sent to move once, and is not there: order the move again`,
        );
      if (!options.field.link(row.link)?.up) throw new DriverError('LINK_LOST', `link ${row.link} is down`);
      assertMayMove(row, to);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
      const observer: Observer = {
        // Its job was stored meanwhile.
        check() {
          try {
            assertMayMove(row, to);
          } catch (error) {
            reject(error);
            throw error;
          }
        },
        moved: resolve,
        // Those who follow are not waited for; and a move that failed is not tried again by itself.
        failed: ({ message }) => reject(new DriverError('REFUSED', `${message}: order the move again`)),
      };
      await begin(row, to, caller, observer).catch((error: Error) => {
        throw new DriverError('BUSY', error.message);
      });
      await promise;
    },
  };
}

function absentIn({ locksOf, channels }: Pick<MovesOptions, 'locksOf' | 'channels'>) {
  return (row: ZgateRow): AbsentLock[] => {
    const channel = channels.channelOf(row);
    return locksOf(row.device_id).flatMap((lock) => {
      const reason = unreachableOf(lock, channel);
      return reason === undefined ? [] : [{ lock, reason }];
    });
  };
}

/** How a move goes on, before its job has ended. */
interface Observer {
  /** Throws when it may not begin any more. */
  check(): void;
  moved(): void;
  failed(error: Error): void;
}
const UNOBSERVED: Observer = { check() {}, moved() {}, failed() {} };

/** Moves that a gateway has been ordered, and is carrying out. */
function openUnderWay({ clock, channels, connectionChanged }: MovesOptions) {
  const moves = new Map<string, NetworkMove & { linkUp: AbortController }>();
  return {
    of: (deviceId: string): NetworkMove | undefined => moves.get(deviceId),
    linkUp: (deviceId: string) => moves.get(deviceId)?.linkUp.abort(AWAKE),
    async during<T>(deviceId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const linkUp = new AbortController();
      moves.set(deviceId, { since: clock.now(), over, linkUp });
      try {
        return await work();
      } catch (error) {
        // The link starts again on the channel that its driver has stored: until it is up, what waits could not be sent.
        const back = AbortSignal.any([signal, linkUp.signal]);
        if (isLinkLost(error)) await clock.sleep(MOVE_TIMEOUT_MS, back).catch(() => undefined);
        throw error;
      } finally {
        moves.delete(deviceId);
        resolve();
        // Its locks are shown by their own word again, and what waits for them need not wait for its next attempt.
        if (channels.reported.get(deviceId)?.connected) connectionChanged(deviceId, true);
      }
    },
  };
}

function isLinkLost(error: unknown): boolean {
  return error instanceof DriverError && ['LINK_LOST', 'OUTCOME_UNKNOWN'].includes(error.code);
}

async function move(
  row: ZgateRow,
  to: number,
  options: MovesOptions & { underWay: ReturnType<typeof openUnderWay> },
  { observer, progress, signal }: { observer: Observer; progress: ReportProgress; signal: AbortSignal },
): Promise<Record<string, unknown>> {
  const { database, table, clock, field, locksOf, channels } = options;
  const { device_id: deviceId, channels_version: version } = row;
  const before = channels.channelOf(row);
  const macs = new Set(locksOf(deviceId).map(({ mac }) => mac));
  progress({ done: 0, total: macs.size });
  const measured = await measuredBefore(row, to, options, signal);
  observer.check();
  await database.commit(() => table.setMovedFor.run(version, deviceId));
  signal.throwIfAborted();
  const data: MoveChannel = { channel: to };
  const command = { kind: 'moveChannel', data, timeoutMs: MOVE_TIMEOUT_MS, movesNothing: true };
  const moved = await options.underWay.during(deviceId, signal, () =>
    field.execute(row.link, command, signal),
  );
  const answer = channelsApplied.safeParse(moved);
  if (answer.data?.zigbeeChannel !== to)
    throw new DriverError('BAD_REPLY', `the gateway did not say that the network is on channel ${to}`);
  await channels.movedTo(deviceId, to);
  observer.moved();
  // Those that join later were never on the other channel, and those that leave need not follow.
  const locks = () => locksOf(deviceId).filter(({ mac }) => macs.has(mac));
  const stragglers = await whoStayed({ clock, locks, to, progress, signal });
  const total = locks().length;
  return {
    channel: to,
    before,
    locks: total,
    followed: total - stragglers.length,
    stragglers: stragglers.map(shownLock),
    ...measured,
  };
}

/** A busy channel is no reason not to move: a person has ordered it, or the one before is allowed no more. */
async function measuredBefore(
  row: ZgateRow,
  to: number,
  { energies, log }: MovesOptions,
  signal: AbortSignal,
): Promise<{ energies: ShownEnergies | null; warning: string | null }> {
  try {
    const measured = await energies.measure(row, signal);
    const warning = energies.warning(measured, to);
    if (warning !== null) log.warn({ link: row.link }, warning);
    return { energies: measured, warning };
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    log.warn({ link: row.link, err: error.message }, 'the channels were not measured before a move');
    return { energies: null, warning: null };
  }
}

/** Until all were heard of on the new channel, or the time is over. No clock is asked which was first. */
async function whoStayed({
  clock,
  locks,
  to,
  progress,
  signal,
}: Pick<MovesOptions, 'clock'> & {
  locks(): GatewayLock[];
  to: number;
  progress: ReportProgress;
  signal: AbortSignal;
}): Promise<GatewayLock[]> {
  const end = clock.monotonic() + FOLLOW_WINDOW_MS;
  for (;;) {
    const all = locks();
    const stayed = all.filter(({ heardOn, isMissed }) => heardOn !== to || isMissed);
    progress({ done: all.length - stayed.length, total: all.length });
    if (stayed.length === 0 || clock.monotonic() >= end) return stayed;
    await clock.sleep(FOLLOW_CHECK_MS, signal);
  }
}

/** As …/state shows it. */
export function shownMove({ absent, ...move }: NonNullable<ReturnType<Moves['needed']>>) {
  return { ...move, unseen: absent.map(({ lock, reason }) => ({ ...shownLock(lock), reason })) };
}

export function shownStayedBehind(locks: readonly GatewayLock[]): ShownStayedBehind | null {
  if (locks.length === 0) return null;
  const message =
    'Operate each of these locks, or take its batteries out and put them in again, so that it looks for its network. If it is not heard of within 15 minutes, let it join again (permit-join), or move the network back to the channel it was heard on (channel-move with confirm).';
  return { locks: locks.map(shownLock), message };
}

/** Throws VALIDATION_FAILED. */
function targetOf(row: ZgateRow, present: number | null, wanted: number | undefined): number {
  const allowed = allowedChannelsOf(row);
  const fault = (message: string) => notPossible('/channel', message);
  const hasToMove = present !== null && allowed.length > 0 && !allowed.includes(present);
  const to = wanted ?? (hasToMove ? allowed[0] : undefined);
  if (to === undefined) throw fault('is to be given: the network is where allowedChannels wants it');
  if (allowed.length > 0 && !allowed.includes(to))
    throw fault(`is none of allowedChannels (${allowed.join(', ')}): change those first`);
  if (to === present) throw fault('is the one that the network is on');
  return to;
}

function unconfirmed(absent: readonly AbsentLock[], total: number): GatehouseError {
  const message = `${absent.length} of ${total} locks cannot be reached, or were not seen lately, and may be lost when the network moves. See to them, or send confirm.`;
  const details = absent
    .slice(0, NAMED_MAX)
    .map(({ lock: { doorId, name, mac, lastSeen, heardOn }, reason }) => {
      const seen = lastSeen === null ? 'never seen' : `seen last ${new Date(lastSeen).toISOString()}`;
      const why: Record<Unreachable, string> = {
        NOT_SEEN_LATELY: seen,
        STAYED_BEHIND: `${seen}, on channel ${heardOn}: it did not follow an earlier move`,
        DISCONNECTED: `${seen}, and does not answer since`,
        UNKNOWN: `${seen}, and not reported since its gateway started`,
      };
      return { path: '/confirm', code: reason, message: `door ${name ?? doorId} (${mac}): ${why[reason]}` };
    });
  return new GatehouseError('CONFIRMATION_NEEDED', message, { details });
}
