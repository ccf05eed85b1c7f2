/**
 * Gives an OSDP device another address or baud rate, as a job. The row keeps its id, its hwId and what is wanted of it; the
 * key goes with the device, and stays at the old address too until it is known where the device is.
 */
import { DriverError, type DriverErrorCode } from '../../drivers/driver.ts';
import { type Readdress, readdressed } from '../../drivers/osdp.ts';
import type { Rs485Report } from '../../drivers/settings.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { Execute } from '../execute.ts';
import type { StartJob } from '../job-order.ts';
import type { Caller, Role } from '../principal.ts';
import type { Known } from '../reported.ts';
import { answering } from './answering.ts';
import type { Bus, Buses } from './buses.ts';
import type { Keys } from './keys.ts';
import type { CommunicationBody } from './osdp-schema.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';

export const READDRESSERS: readonly [Role, ...Role[]] = ['service-tool'];

/** The command, and the time a device has to be there again. */
const TIMEOUT_MS = 60_000;

/** The device was told nothing, or did not take it. */
const UNCHANGED: readonly DriverErrorCode[] = ['REFUSED', 'INVALID_COMMAND', 'DEVICE_OFFLINE', 'BUSY'];

export interface CommunicationOptions {
  database: Database;
  table: Rs485Table;
  audit: Audit;
  clock: Clock;
  buses: Buses;
  keys: Keys;
  polled: Pick<PolledAddresses, 'place' | 'changed'>;
  known(deviceId: string): Known<Rs485Report> | undefined;
  execute: Execute;
  startJob: StartJob;
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
 * `moved`: it answers at the new address · `stayed`: it answers at the old one, and has not taken it · `left`: it has taken
 * another baud rate, and cannot be heard on this bus · `lost`: it answers nowhere.
 */
type Outcome = 'moved' | 'stayed' | 'left' | 'lost';

export function openCommunication(options: CommunicationOptions): StartCommunication {
  const { table, startJob } = options;
  return async (deviceId, body, caller) => {
    const move = planned(options, existing(table, deviceId), body);
    return startJob({
      kind: 'osdp-communication',
      object: `rs485/bus/${move.bus.id}`,
      roles: READDRESSERS,
      ...caller,
      run: (_, signal) => carryOut(options, move, caller, signal),
    });
  };
}

/** Throws VALIDATION_FAILED, DEVICE_OFFLINE, ALREADY_EXISTS, CONFIRMATION_NEEDED. */
function planned(
  { buses, known, table }: CommunicationOptions,
  row: Rs485Row,
  { address, baudRate, confirm }: CommunicationBody,
): Move {
  const bus = buses.assertOsdp(row.bus, 'OSDP devices are given addresses over it');
  const { address: from, state } = answering(row, known(row.device_id));
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
    return 'The device is spoken to in clear text: nobody can prove that it is the one that is meant.';
  return undefined;
}

async function carryOut(
  options: CommunicationOptions,
  move: Move,
  { principal, correlationId }: Caller,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { database, audit, clock, keys, polled, execute } = options;
  const { row, bus, from, wanted } = move;
  const { address, baudRate } = wanted;
  const by = () => ({ now: clock.now(), principalId: principal.id });
  const record = (outcome: string, detail: object) =>
    audit.record({
      principal,
      correlationId,
      action: 'rs485.communication',
      object: `rs485/${row.device_id}`,
      outcome,
      detail: { hwId: row.hw_id, from, address, baudRate, ...detail },
    });
  const place = { bus: bus.id, address: from };
  async function failed(error: unknown): Promise<never> {
    const reason = error instanceof Error ? error.message : String(error);
    const isAsBefore = error instanceof DriverError && UNCHANGED.includes(error.code);
    await database.commit(() => {
      record('failed', { reason });
      if (isAsBefore && address !== from) keys.forget(bus.id, address);
    });
    throw error;
  }
  await database.commit(() => {
    record('accepted', {});
    if (address !== from) keys.copy(place, address, by());
  });
  try {
    const command = { kind: 'readdress', data: { ...wanted }, timeoutMs: TIMEOUT_MS };
    // What fails after it is no failure of the device.
    const answer = await execute(bus.id, command, signal).then(readdressed.parse).catch(failed);
    const { told, found } = answer;
    const outcome = outcomeOf({ told, found }, move);
    const now = found ?? (outcome === 'left' ? (told?.address ?? address) : from);
    await database.commit(() => {
      record(outcome === 'moved' || outcome === 'left' ? 'done' : 'failed', { outcome, now });
      if (now !== address && now !== from) keys.copy(place, now, by());
      if (outcome !== 'lost') for (const left of [from, address]) if (left !== now) keys.forget(bus.id, left);
    });
    await polled.place([{ bus: bus.id, hwId: row.hw_id, address: now }]);
    return { deviceId: row.device_id, hwId: row.hw_id, bus: bus.id, from, address: now, baudRate, outcome };
  } finally {
    polled.changed(bus.id);
  }
}

function outcomeOf(
  { told, found }: ReturnType<typeof readdressed.parse>,
  { from, wanted, bus }: Move,
): Outcome {
  const rate = bus.line?.baudRate;
  if (found === null) return told !== null && told.baudRate !== rate ? 'left' : 'lost';
  // It is heard at the rate of the bus.
  const isTaken = wanted.baudRate === rate && (found !== from || wanted.address === from);
  return isTaken ? 'moved' : 'stayed';
}
