/**
 * Gives an OSDP device another address or baud rate, as a job. The row keeps its id, its hwId and what is wanted of it; the
 * key goes with the device, and stays at the old address too until it is known where the device is: a device is polled
 * wherever a key is stored. A job that a restart interrupted sends nothing again, and looks where the device is.
 */
import { z } from 'zod';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { type Readdress, readdressed } from '../../../drivers/contract/osdp.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, type Role, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Conclude, JobWork, ResumeJob } from '../../services/jobs/job-order.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { CommunicationBody } from './bus-schema.ts';
import type { Bus, Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import { answering, existing, type Rs485Row } from './table.ts';

export const READDRESSERS: readonly [Role, ...Role[]] = ['service-tool'];

/** The command, and the time a device has to be there again. */
const TIMEOUT_MS = 60_000;
/** After a restart: links come up one after the other, and the device is asked at both addresses. */
const SEARCH_MS = 120_000;
const LOOK_MS = 1_000;
export const COMMUNICATION = 'osdp-communication';

/** The device was sent nothing, or did not take it. */
const UNCHANGED: readonly DriverErrorCode[] = ['REFUSED', 'INVALID_COMMAND', 'DEVICE_OFFLINE', 'BUSY'];

export interface CommunicationOptions extends Rs485Context {
  buses: Buses;
  keys: Keys;
  polled: Pick<PolledAddresses, 'heardAt' | 'changed'>;
  reported: Pick<Reported<Rs485Report>, 'get'>;
}

/** Resolves with the job. Throws a GatehouseError. */
export type StartCommunication = (
  deviceId: string,
  body: CommunicationBody,
  caller: Caller,
) => Promise<unknown>;

interface Move {
  row: Rs485Row;
  bus: Bus;
  from: number;
  wanted: Readdress;
}

/**
 * `moved`: it answers at the new address · `stayed`: it answers at another one, and has not taken it · `left`: it has taken
 * another baud rate, and cannot be heard on this bus · `lost`: it answers nowhere.
 */
type Readdressing = 'moved' | 'stayed' | 'left' | 'lost';

/** What is stored of a job, for after a restart. */
const inputOfJob = z.object({ deviceId: z.string(), from: z.int(), address: z.int(), baudRate: z.int() });

export interface Communication {
  readdress: StartCommunication;
  /** Of jobs that were under way when the gateway ended. */
  resumeReaddress(input: unknown): JobWork;
}

export function openCommunication(options: CommunicationOptions): Communication {
  const { table, jobs } = options;
  const start: StartCommunication = async (deviceId, body, caller) => {
    const move = planned(options, existing(table, deviceId), body);
    const { bus, from, row, wanted } = move;
    const { hwId, address, baudRate } = wanted;
    return jobs.start({
      kind: COMMUNICATION,
      object: `rs485/bus/${bus.id}`,
      roles: READDRESSERS,
      ...caller,
      queue: { name: `${COMMUNICATION}/${bus.id}`, input: { deviceId, from, address, baudRate } },
      intent: {
        action: 'rs485.communication',
        object: `rs485/${row.device_id}`,
        detail: { hwId, from, address, baudRate },
      },
      run: (_, signal, conclude) => carryOut(options, move, { caller, signal, conclude }),
    });
  };
  return {
    readdress: start,
    resumeReaddress: ((input) => searching(options, inputOfJob.parse(input))) satisfies ResumeJob,
  };
}

/** Where the device is after a restart that cut its change short. */
function searching(
  options: CommunicationOptions,
  { deviceId, from, address, baudRate }: z.infer<typeof inputOfJob>,
): JobWork {
  const { table, buses, reported, clock } = options;
  return async (_, signal, conclude) => {
    const row = existing(table, deviceId);
    const bus = buses.assertOsdp(row.bus, 'OSDP devices are given addresses over it');
    const move = { row, bus, from, wanted: { hwId: row.hw_id, address, baudRate } };
    const end = clock.monotonic() + SEARCH_MS;
    const found = () => {
      const known = reported.get(deviceId);
      // Only what it said since the start counts.
      return known?.connected && known.at !== undefined ? known.state?.address : undefined;
    };
    while (found() === undefined && clock.monotonic() < end) await clock.sleep(LOOK_MS, signal);
    const by = SYSTEM_PRINCIPAL.id;
    return settled(options, move, { answered: null, found: found() ?? null }, { by, conclude });
  };
}

/** Throws VALIDATION_FAILED, DEVICE_OFFLINE, ALREADY_EXISTS, CONFIRMATION_NEEDED. */
function planned(
  { buses, reported, table }: CommunicationOptions,
  row: Rs485Row,
  { address, baudRate, confirm }: CommunicationBody,
): Move {
  const bus = buses.assertOsdp(row.bus, 'OSDP devices are given addresses over it');
  const { address: from, state } = answering(row, reported.get(row.device_id));
  const rate = bus.line?.baudRate ?? 0;
  const wanted = { hwId: row.hw_id, address: address ?? from, baudRate: baudRate ?? rate };
  const other = table.addressed.all(bus.id).find((one) => one.address === wanted.address);
  if (other && other.deviceId !== row.device_id)
    throw new GatehouseError(
      'ALREADY_EXISTS',
      `Address ${wanted.address} of bus ${bus.id} is that of the device ${other.deviceId} (${other.hwId}).`,
    );
  const doubt = doubtOf(state, wanted.baudRate, rate);
  if (doubt !== undefined && !confirm)
    throw new GatehouseError('CONFIRMATION_NEEDED', `${doubt} Send confirm to do it all the same.`);
  return { row, bus, from, wanted };
}

function doubtOf(state: Rs485Report | undefined, baudRate: number, ofBus: number): string | undefined {
  if (baudRate !== ofBus)
    return `At ${baudRate} baud the device cannot be reached over this bus, which has ${ofBus}.`;
  if (state?.security !== 'secure')
    return 'The device is spoken to in clear text: no one can prove that it is the one that is meant.';
  return undefined;
}

async function carryOut(
  options: CommunicationOptions,
  move: Move,
  { caller, signal, conclude }: { caller: Caller; signal: AbortSignal; conclude: Conclude },
): Promise<Record<string, unknown>> {
  const { database, clock, keys, polled, field } = options;
  const { bus, from, wanted } = move;
  const by = caller.principal.id;
  const isElsewhere = wanted.address !== from;
  function failed(error: unknown): never {
    const reason = error instanceof Error ? error.message : String(error);
    const isAsBefore = error instanceof DriverError && UNCHANGED.includes(error.code);
    const also = () => {
      if (isAsBefore && isElsewhere) keys.forget(bus.id, wanted.address);
    };
    conclude({ outcome: 'failed', detail: { reason }, also, stored: () => polled.changed(bus.id) });
    throw error;
  }
  await database.commit(() => {
    const place = { bus: bus.id, address: from };
    if (isElsewhere) keys.copy(place, wanted.address, { now: clock.now(), principalId: by });
  });
  const command = { kind: 'readdress', data: { ...wanted }, timeoutMs: TIMEOUT_MS, movesNothing: true };
  // What fails after it is no failure of the device.
  const answer = await field.execute(bus.id, command, signal).then(readdressed.parse).catch(failed);
  return settled(options, move, answer, { by, conclude });
}

/** What the audit, the row and the keys have of it. */
async function settled(
  { clock, database, keys, polled }: CommunicationOptions,
  move: Move,
  { answered, found }: z.infer<typeof readdressed>,
  { by, conclude }: { by: string; conclude: Conclude },
): Promise<Record<string, unknown>> {
  const { row, bus, from, wanted } = move;
  const { address, baudRate } = wanted;
  const outcome = outcomeOf({ answered, found }, move);
  const now = found ?? (outcome === 'left' ? (answered?.address ?? address) : from);
  conclude({
    outcome: outcome === 'moved' || outcome === 'left' ? 'done' : 'failed',
    detail: { outcome, now },
    also() {
      const place = { bus: bus.id, address: from };
      if (now !== address && now !== from) keys.copy(place, now, { now: clock.now(), principalId: by });
      if (outcome !== 'lost') for (const left of [from, address]) if (left !== now) keys.forget(bus.id, left);
    },
    stored: () => polled.changed(bus.id),
  });
  // Its session, or its answer under the key, has shown where it is.
  await database.commit(() => polled.heardAt(row, now));
  return { deviceId: row.device_id, hwId: row.hw_id, bus: bus.id, from, address: now, baudRate, outcome };
}

function outcomeOf(
  { answered, found }: ReturnType<typeof readdressed.parse>,
  { from, wanted, bus }: Move,
): Readdressing {
  const rate = bus.line?.baudRate;
  if (found === null) return answered !== null && answered.baudRate !== rate ? 'left' : 'lost';
  // Elsewhere than it was, and than it was to be: it had been moved by hand before. Some devices take another address, and say so.
  const isThere = found === wanted.address || (found === answered?.address && found !== from);
  // It is heard at the rate of the bus.
  return wanted.baudRate === rate && isThere ? 'moved' : 'stayed';
}
