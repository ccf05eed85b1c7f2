/**
 * Relays that the gateway times are opened by a watchdog of their device when the gateway dies. Such a relay is fired only
 * once a test has shown that this is so: for this device, this relay, and what its profile says of the watchdog now.
 */
import { DriverError } from '../../drivers/driver.ts';
import { type WatchdogTest, watchdogTested } from '../../drivers/rs485.ts';
import type { Rs485Report } from '../../drivers/settings.ts';
import type { Actuations } from '../actuations/actuations.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { Execute } from '../execute.ts';
import type { ReportProgress, StartJob } from '../job-order.ts';
import type { Caller, Role } from '../principal.ts';
import type { Known } from '../reported.ts';
import type { WatchdogTestBody } from './bus-schema.ts';
import { relayInForce } from './relay.ts';
import type { WatchdogState } from './schema.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';

export const WATCHDOG_TESTERS: readonly [Role, ...Role[]] = ['service-tool'];
const WATCHDOG_TEST = 'rs485.watchdogTest';

/** The silence is longer than the watchdog waits (drivers/rs485/watchdog-proof.ts), and the relay is switched and read. */
const TIMES_WATCHDOG = 1.5;
const SWITCHING_MS = 15_000;
const PROGRESS_EVERY_MS = 1_000;

export interface WatchdogOptions {
  database: Database;
  table: Rs485Table;
  actuations: Actuations;
  clock: Clock;
  known(deviceId: string): Known<Rs485Report> | undefined;
  isInForce(row: Rs485Row): boolean;
  execute: Execute;
  startJob: StartJob;
}

export interface Watchdogs {
  /** Resolves with the job. Throws a GatehouseError. */
  start(deviceId: string, body: WatchdogTestBody, caller: Caller): Promise<unknown>;
  /** null: the device opens its relay by itself, or is not known. */
  stateOf(row: Rs485Row): WatchdogState | null;
  /** Throws IN_PROGRESS while a test of this device runs. */
  assertNotTested(deviceId: string): void;
}

export function openWatchdogs(options: WatchdogOptions): Watchdogs {
  const { table, known, isInForce, startJob } = options;
  const endsBy: TestEnds = new Map();
  return {
    assertNotTested(deviceId) {
      const endsAt = endsBy.get(deviceId);
      if (endsAt === undefined) return;
      throw new GatehouseError(
        'IN_PROGRESS',
        `Nothing was fired: a watchdog test of device ${deviceId} runs until ${new Date(endsAt).toISOString()} at the latest. Ask again when it is over.`,
      );
    },
    async start(deviceId, { confirm }, caller) {
      const row = existing(table, deviceId);
      const { connected = false, state } = known(deviceId) ?? {};
      if (!connected)
        throw new GatehouseError(
          'DEVICE_OFFLINE',
          `Nothing was sent: the device does not answer. See to its power and to bus ${row.bus}.`,
        );
      const watchdog = state?.watchdog;
      if (!watchdog)
        throw new GatehouseError(
          'NO_RELAY',
          'The device opens its relay by itself: there is nothing to test.',
        );
      const relay = relayInForce(row, state, isInForce(row));
      if (!confirm)
        throw new GatehouseError(
          'CONFIRMATION_NEEDED',
          `The test closes relay ${relay} for some ${seconds(watchdog.milliseconds)} s. Disconnect what it opens, and send confirm.`,
        );
      return startJob({
        kind: 'rs485-watchdog-test',
        object: `rs485/bus/${row.bus}`,
        roles: WATCHDOG_TESTERS,
        ...caller,
        run: (progress, signal) =>
          carryOut(options, endsBy, { row, relay, watchdog, caller }, progress, signal),
      });
    },
    stateOf(row) {
      const { state } = known(row.device_id) ?? {};
      if (!state?.watchdog) return null;
      const relay = state.settings?.relayIndex ?? null;
      const proof = relay === null ? undefined : provenBy(table, row, relay, state.watchdog.proof);
      return {
        milliseconds: state.watchdog.milliseconds,
        proven: proof !== undefined,
        provenAt: proof ? new Date(proof.proven_at).toISOString() : null,
        provenBy: proof?.proven_by ?? null,
      };
    },
  };
}

/** Throws WATCHDOG_NOT_PROVEN where a relay could stay closed for ever. */
export function assertProven(table: Rs485Table, row: Rs485Row, told: Rs485Report | undefined, relay: number) {
  if (!told?.watchdog || provenBy(table, row, relay, told.watchdog.proof)) return;
  throw new GatehouseError(
    'WATCHDOG_NOT_PROVEN',
    `Nothing was fired: nobody has proved yet that the watchdog of device ${row.device_id} opens relay ${relay} when the gateway dies. Disconnect what it opens, and run: gatehouse bus watchdog-test ${row.hw_id}`,
  );
}

/** The hwId too: another device in its place is another device. */
function provenBy(table: Rs485Table, row: Rs485Row, relay: number, proof: string) {
  return table.watchdogProof.get(row.device_id, relay, row.hw_id, proof);
}

/** Of the tests that run: device id to the latest end, epoch milliseconds. */
type TestEnds = Map<string, number>;

interface Test {
  row: Rs485Row;
  relay: number;
  watchdog: NonNullable<Rs485Report['watchdog']>;
  caller: Caller;
}

async function carryOut(
  options: WatchdogOptions,
  endsBy: TestEnds,
  { row, relay, watchdog, caller: { principal, correlationId } }: Test,
  progress: ReportProgress,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { database, table, actuations, clock } = options;
  const intent = { principal, action: WATCHDOG_TEST, object: `rs485/${row.device_id}`, correlationId };
  const tested = { hwId: row.hw_id, relay, proof: watchdog.proof };
  const timeoutMs = Math.ceil(watchdog.milliseconds * TIMES_WATCHDOG) + SWITCHING_MS;
  await actuations.begin(intent, { ...tested, doorId: row.door_id });
  endsBy.set(row.device_id, clock.now() + timeoutMs);
  try {
    const data: WatchdogTest = { hwId: row.hw_id, relay };
    const command = { kind: 'testWatchdog', data, timeoutMs };
    const answer = await watched(options.execute(row.bus, command, signal), clock, timeoutMs, progress);
    const { waitedMilliseconds, proof } = watchdogTested.parse(answer);
    await database.commit(() => {
      table.keepWatchdogProof.run(row.device_id, relay, row.hw_id, proof, clock.now(), principal.id);
    }, 'urgent');
    await actuations.end(intent, 'done', { ...tested, proof, waitedMilliseconds });
    return { deviceId: row.device_id, hwId: row.hw_id, relay, waitedMilliseconds };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // What was proved before is not true any more.
    if (error instanceof DriverError && error.code === 'REFUSED')
      await database.commit(() => table.dropWatchdogProof.run(row.device_id, relay), 'urgent');
    await actuations.end(intent, 'failed', { ...tested, reason });
    throw error;
  } finally {
    endsBy.delete(row.device_id);
  }
}

async function watched<Answer>(
  answered: Promise<Answer>,
  clock: Clock,
  totalMs: number,
  progress: ReportProgress,
): Promise<Answer> {
  const startedAt = clock.monotonic();
  const over = new AbortController();
  const settled = answered.finally(() => over.abort());
  for (;;) {
    progress({ done: Math.min(totalMs, Math.round(clock.monotonic() - startedAt)), total: totalMs });
    const isOver = await clock.sleep(PROGRESS_EVERY_MS, over.signal).then(
      () => false,
      () => true,
    );
    if (!isOver) continue;
    const answer = await settled;
    progress({ done: totalMs, total: totalMs });
    return answer;
  }
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1_000);
