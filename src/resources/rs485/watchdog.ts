/**
 * Relays that the gateway times are opened by a watchdog of their device when the gateway dies. Such a relay is fired only
 * once a test has shown that this is so: for this device, this relay, and what its profile says of the watchdog now.
 *
 * What the device answers after the silence is one half of the proof: a device may open its relay because it is asked, or because
 * its watchdog is cleared so that it can be asked. The other half is a person, who saw the relay open during the silence.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { WATCHDOG_EXPIRIES, type WatchdogTest, watchdogTested } from '../../../drivers/contract/rs485.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller, Role } from '../../platform/principal.ts';
import type { ReportProgress } from '../../services/jobs/job-order.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { WatchdogTestBody } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import { relayOf } from './relays.ts';
import type { WatchdogState } from './schema.ts';
import type { Settings } from './settings.ts';
import { existing, type Rs485Row } from './table.ts';
import { identityOf, type WatchdogProofs } from './watchdog-proofs.ts';

export const WATCHDOG_TESTERS: readonly [Role, ...Role[]] = ['service-tool'];
const WATCHDOG_TEST = 'rs485.watchdogTest';
const WATCHDOG_WITNESS = 'rs485.watchdogWitness';

/** The silence is longer than the watchdog waits (drivers/rs485/watchdog-proof.ts), and the relay is switched and read. */
const TIMES_WATCHDOG = 1.5;
/** For a person to say what was seen. */
const WITNESS_MS = 600_000;
const SWITCHING_MS = 15_000;
const PROGRESS_EVERY_MS = 1_000;

export interface WatchdogOptions extends Rs485Context {
  buses: Pick<Buses, 'speaks'>;
  watchdogProofs: WatchdogProofs;
  reported: Pick<Reported<Rs485Report>, 'get'>;
  settings: Pick<Settings, 'forOrders' | 'isInForce'>;
}

export interface Watchdogs {
  /** Resolves with the job. Throws a GatehouseError. */
  testWatchdog(deviceId: string, body: WatchdogTestBody, caller: Caller): Promise<unknown>;
  /** null: the device opens its relay by itself, or is not known. */
  stateOf(row: Rs485Row): WatchdogState | null;
  /** Throws IN_PROGRESS while a test of this device runs, or one that withholds what feeds it. */
  assertNotTested(deviceId: string): void;
}

export function openWatchdogs(options: WatchdogOptions): Watchdogs {
  const { table, watchdogProofs, clock, reported, jobs } = options;
  const tests: Tests = { endsBy: new Map(), awaiting: new Map() };
  const orderOf = ({ bus }: Rs485Row, caller: Caller) => ({
    kind: 'rs485-watchdog-test',
    object: `rs485/bus/${bus}`,
    roles: WATCHDOG_TESTERS,
    ...caller,
  });

  function awaited(row: Rs485Row): Awaiting | undefined {
    const one = tests.awaiting.get(row.device_id);
    const state = reported.get(row.device_id)?.state;
    const isSame =
      state?.watchdog?.proof === one?.proof &&
      one?.hwId === row.hw_id &&
      state &&
      identityOf(state) === one.identity;
    return one && isSame && clock.monotonic() - one.at < WITNESS_MS ? one : undefined;
  }

  function assertNotTested(deviceId: string): void {
    const row = table.device.get(deviceId);
    const ids = row && isFedTogether(row.bus, options) ? table.onBus.all(row.bus) : [{ device_id: deviceId }];
    for (const { device_id } of ids) {
      const endsAt = tests.endsBy.get(device_id);
      if (endsAt !== undefined)
        throw new GatehouseError(
          'IN_PROGRESS',
          `Nothing was fired: a watchdog test of device ${device_id} runs until ${new Date(endsAt).toISOString()} at the latest. Ask again when it is over.`,
        );
    }
  }

  return {
    assertNotTested,
    async testWatchdog(deviceId, body, caller) {
      const row = existing(table, deviceId);
      if (body.openedByItself !== undefined) {
        const witness = { row, test: expected(awaited(row)), openedByItself: body.openedByItself, caller };
        return jobs.start({ ...orderOf(row, caller), run: () => witnessed(options, tests, witness) });
      }
      const test = { row, caller, ...testable(options, row, body.confirm) };
      assertNotTested(deviceId);
      assertNoPulse(options, row);
      return jobs.start({
        ...orderOf(row, caller),
        run: (progress, signal) => carryOut(options, tests, test, progress, signal),
      });
    },
    stateOf(row) {
      const { state } = reported.get(row.device_id) ?? {};
      if (!state?.watchdog) return null;
      const { unfed } = state.watchdog;
      const relay = options.settings.forOrders(row)?.relayIndex ?? null;
      const proof = relay === null ? undefined : watchdogProofs.of(row, state, relay);
      return {
        milliseconds: state.watchdog.milliseconds,
        proven: proof !== undefined,
        provenAt: proof ? new Date(proof.proven_at).toISOString() : null,
        provenBy: proof?.proven_by ?? null,
        awaitsWitness: awaited(row) !== undefined,
        unfed: unfed ? { ...unfed, at: new Date(unfed.at).toISOString() } : null,
      };
    },
  };
}

/** One broadcast feeds all watchdogs of a DCON bus, and a test withholds it. */
function isFedTogether(bus: string, { buses }: WatchdogOptions): boolean {
  return buses.speaks(bus, 'dcon');
}

function expected(test: Awaiting | undefined): Awaiting {
  if (test) return test;
  throw new GatehouseError(
    'WATCHDOG_NOT_PROVEN',
    'No watchdog test of this device has ended within the last 10 minutes: run one first.',
  );
}

/** Throws where there is nothing to test, or no one has confirmed it. */
function testable({ reported, settings }: WatchdogOptions, row: Rs485Row, confirm: boolean) {
  const { connected = false, state } = reported.get(row.device_id) ?? {};
  if (!connected)
    throw new GatehouseError(
      'DEVICE_OFFLINE',
      `Nothing was sent: the device does not answer. See to its power and to bus ${row.bus}.`,
    );
  const watchdog = state?.watchdog;
  if (!watchdog)
    throw new GatehouseError('NO_RELAY', 'The device opens its relay by itself: there is nothing to test.');
  const { relayIndex: relay } = relayOf(settings, row);
  if (!confirm)
    throw new GatehouseError(
      'CONFIRMATION_NEEDED',
      `The test closes relay ${relay} twice, for some ${seconds(watchdog.milliseconds)} s each. Disconnect what it opens, and send confirm.`,
    );
  return { relay, watchdog, identity: identityOf(state) };
}

/** The silence of the test would end it. */
function assertNoPulse(options: WatchdogOptions, { bus, device_id }: Rs485Row) {
  const { table, reported, clock } = options;
  for (const { device_id: id } of isFedTogether(bus, options) ? table.onBus.all(bus) : [{ device_id }]) {
    const { state, at = 0 } = reported.get(id) ?? {};
    const left = (state?.pulse?.remainingMilliseconds ?? 0) - (clock.monotonic() - at);
    if (left <= 0) continue;
    throw new GatehouseError(
      'IN_PROGRESS',
      `Nothing was tested: the relay of device ${id} is closed for another ${seconds(left)} s, and the test would end that early. Wait for the end of its pulse; if its door stands open, end that first.`,
    );
  }
}

interface Tests {
  /** Of the tests that run: device id to the latest end, epoch milliseconds. */
  endsBy: Map<string, number>;
  /** Of tests that have ended well, until a person has said what was seen. */
  awaiting: Map<string, Awaiting>;
}

interface Awaiting {
  relay: number;
  hwId: string;
  proof: string;
  identity: string;
  /** Monotonic milliseconds. */
  at: number;
}

interface Test {
  row: Rs485Row;
  relay: number;
  watchdog: NonNullable<Rs485Report['watchdog']>;
  identity: string;
  caller: Caller;
}

async function carryOut(
  options: WatchdogOptions,
  { endsBy, awaiting }: Tests,
  { row, relay, watchdog, identity, caller: { principal, correlationId } }: Test,
  progress: ReportProgress,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { actuations, clock } = options;
  const object = `rs485/${row.device_id}`;
  const intent = { principal, action: WATCHDOG_TEST, object, correlationId, way: null };
  const tested = { hwId: row.hw_id, relay, proof: watchdog.proof };
  const timeoutMs = WATCHDOG_EXPIRIES * (Math.ceil(watchdog.milliseconds * TIMES_WATCHDOG) + SWITCHING_MS);
  await actuations.begin(intent, { ...tested, doorId: row.door_id });
  endsBy.set(row.device_id, clock.now() + timeoutMs);
  awaiting.delete(row.device_id);
  try {
    const data: WatchdogTest = { hwId: row.hw_id, relay };
    const command = { kind: 'testWatchdog', data, timeoutMs };
    const answer = await watched(options.field.execute(row.bus, command, signal), clock, timeoutMs, progress);
    const { waitedMilliseconds, proof } = watchdogTested.parse(answer);
    awaiting.set(row.device_id, { relay, hwId: row.hw_id, proof, identity, at: clock.monotonic() });
    await actuations.end(intent, 'done', { ...tested, proof, waitedMilliseconds });
    return { deviceId: row.device_id, hwId: row.hw_id, relay, waitedMilliseconds };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // What was proved before is not true any more.
    if (error instanceof DriverError && error.code === 'REFUSED')
      await options.watchdogProofs.refute(row, relay);
    await actuations.end(intent, 'failed', { ...tested, reason });
    throw error;
  } finally {
    endsBy.delete(row.device_id);
  }
}

/** A person has said whether the relay opened while the device was asked nothing. */
async function witnessed(
  { watchdogProofs, actuations }: WatchdogOptions,
  { awaiting }: Tests,
  {
    row,
    test,
    openedByItself,
    caller,
  }: { row: Rs485Row; test: Awaiting; openedByItself: boolean; caller: Caller },
): Promise<Record<string, unknown>> {
  const { principal, correlationId } = caller;
  const { relay, proof } = test;
  const object = `rs485/${row.device_id}`;
  const intent = { principal, action: WATCHDOG_WITNESS, object, correlationId, way: null };
  const detail = { hwId: row.hw_id, relay, proof, openedByItself };
  await actuations.begin(intent, detail);
  try {
    await (openedByItself ? watchdogProofs.keep(row, test, principal.id) : watchdogProofs.refute(row, relay));
  } catch (error) {
    await actuations.end(intent, 'failed', { ...detail, reason: 'the proof could not be stored' });
    throw error;
  }
  awaiting.delete(row.device_id);
  await actuations.end(intent, openedByItself ? 'done' : 'failed', detail);
  return { deviceId: row.device_id, hwId: row.hw_id, relay, proven: openedByItself };
}

async function watched<Answer>(
  answered: Promise<Answer>,
  clock: Clock,
  totalMs: number,
  progress: ReportProgress,
): Promise<Answer> {
  const startedAt = clock.monotonic();
  for (;;) {
    progress({ done: Math.min(totalMs, Math.round(clock.monotonic() - startedAt)), total: totalMs });
    if (!(await settles(answered, PROGRESS_EVERY_MS, clock))) continue;
    const answer = await answered;
    progress({ done: totalMs, total: totalMs });
    return answer;
  }
}

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1_000);

/** A watchdog that was not fed in time: why a device that answers is not connected; undefined: not for that. */
export function unfedReason(
  { bus, address }: Pick<Rs485Row, 'bus' | 'address'>,
  report: Pick<Rs485Report, 'watchdog' | 'address'> | null | undefined,
  buses: Pick<Buses, 'device'>,
): string | undefined {
  const { watchdog } = report ?? {};
  const answers = buses.device(bus, report?.address ?? address)?.alive === true;
  if (!watchdog?.unfed || !answers) return undefined;
  const { pauseMilliseconds } = watchdog.unfed;
  return `its watchdog of ${watchdog.milliseconds} ms was not fed for ${pauseMilliseconds} ms, as the gateway was held up or the bus is too slow; remove devices that are absent, poll fewer on this bus, or raise its baud rate`;
}
