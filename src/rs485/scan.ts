/** Asks the addresses of a bus who is there: as a job, some at a time, so that polls and pulses go on in between. */
import { DriverError, type Plain } from '../../drivers/driver.ts';
import { PROBE_MAX, type Probe, type Probed, probed } from '../../drivers/rs485.ts';
import { GatehouseError } from '../errors.ts';
import type { Caller, Role } from '../principal.ts';
import type { ScanBody } from './bus-schema.ts';
import type { Bus, Buses } from './buses.ts';
import type { Discovery, Found } from './discovery.ts';
import type { Execute } from './settings.ts';
import type { Rs485Table } from './table.ts';

export const SCANNERS: readonly [Role, ...Role[]] = ['service-tool'];

/** Modbus over serial line 1.02, 2.2; two hex digits; what a loop-back link plays; SIA OSDP 2.2, 5.4. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  modbus: [1, 247],
  dcon: [0, 255],
  loopback: [0, 31],
  osdp: [0, 126],
};
const ANY_ADDRESS = [0, 255] as const;

/** Polls that go before a probe, and the margin. */
const PROBE_BASE_MS = 10_000;
/** Frames of an exchange at 1200 baud, beside the turnaround of the device. */
const WIRE_MS = 400;
/** The longest a command may take (src/field/ipc.ts). */
const COMMAND_MAX_MS = 600_000;
/** Of one command: it ends the sooner after a cancel, and stays below what a command may take. */
const EXCHANGES_MAX = 320;

type Progress = (progress: { done: number; total: number }) => void;

/** Starts a job (src/jobs/jobs.ts); resolves with it as the interface shows it. Throws QUEUE_FULL. */
export type StartJob = (
  order: Caller & {
    kind: string;
    object: string;
    roles: readonly Role[];
    run(progress: Progress, signal: AbortSignal): Promise<Record<string, unknown>>;
  },
) => Promise<unknown>;

export interface ScanOptions {
  table: Rs485Table;
  buses: Buses;
  discovery: Pick<Discovery, 'record'>;
  execute: Execute;
  startJob: StartJob;
  /** Stores where devices with a row are. */
  place(found: readonly Found[]): Promise<void>;
}

type Result = Probed['results'][number];

export type StartScan = (body: ScanBody, caller: Caller) => Promise<unknown>;

export function openScan(options: ScanOptions): StartScan {
  return async (body, { principal, correlationId }) => {
    const { buses } = options;
    const bus = body.bus === undefined ? buses.only() : buses.assertKnown(body.bus);
    const [lowest, highest] = RANGES[bus.protocol] ?? ANY_ADDRESS;
    const from = body.from ?? lowest;
    const to = body.to ?? highest;
    // Unit id 0 is a broadcast, which no device may answer; above the highest no device may be.
    if (from < lowest || from > highest) throw beyond('from', bus, lowest, highest);
    if (to < from || to > highest) throw beyond('to', bus, from, highest);
    if (!buses.isUp(bus.id))
      throw new GatehouseError('DEVICE_OFFLINE', `Bus ${bus.id} is down: GET /network/rs485/buses says why.`);
    const range = { from, to, repeats: body.repeats };
    return options.startJob({
      ...{ kind: 'rs485-scan', object: `rs485/bus/${bus.id}`, roles: SCANNERS, principal, correlationId },
      run: (progress, signal) => scan(options, bus, range, { principal, correlationId }, progress, signal),
    });
  };
}

function beyond(field: 'from' | 'to', { id, protocol }: Bus, least: number, most: number): GatehouseError {
  const message = `expected ${least} to ${most}: bus ${id} speaks ${protocol}`;
  return new GatehouseError('VALIDATION_FAILED', `Not valid: /${field}: ${message}.`, {
    details: [{ path: `/${field}`, code: 'INVALID_VALUE', message }],
  });
}

async function scan(
  options: ScanOptions,
  bus: Bus,
  { from, to, repeats }: { from: number; to: number; repeats: number },
  caller: Caller,
  progress: Progress,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const total = to - from + 1;
  const atOnce = Math.max(1, Math.min(PROBE_MAX, Math.floor(EXCHANGES_MAX / Math.max(2, repeats))));
  const told: Record<string, unknown>[] = [];
  for (let next = from; next <= to; next += atOnce) {
    progress({ done: next - from, total });
    const addresses = range(next, Math.min(to, next + atOnce - 1));
    const results = await probe(options, bus, { addresses, repeats }, signal);
    told.push(...(await takeIn(options, bus.id, results, caller)));
    signal.throwIfAborted();
  }
  progress({ done: total, total });
  return { bus: bus.id, protocol: bus.protocol, from, to, repeats, addresses: told };
}

async function probe(
  { execute }: ScanOptions,
  bus: Bus,
  data: Probe,
  signal: AbortSignal,
): Promise<Result[]> {
  const exchanges = data.addresses.length * Math.max(2, data.repeats);
  const timeoutMs = PROBE_BASE_MS + exchanges * (bus.turnaroundMaxMs + WIRE_MS);
  const command = { kind: 'probe', data: data as Plain, timeoutMs: Math.min(timeoutMs, COMMAND_MAX_MS) };
  const answer = probed.safeParse(await execute(bus.id, command, signal));
  if (!answer.data) throw new DriverError('BAD_REPLY', `the driver of ${bus.id} gave no results`);
  return answer.data.results.filter(({ address }) => data.addresses.includes(address));
}

/** Rows for who is there; what is told of these addresses: of those that said anything, and those that should have. */
async function takeIn(
  { table, buses, discovery, place }: ScanOptions,
  bus: string,
  results: readonly Result[],
  caller: Caller,
): Promise<Record<string, unknown>[]> {
  const found = results.flatMap(({ address, identity }) =>
    identity ? [{ bus, hwId: identity.hwId, address }] : [],
  );
  const isNew = new Set(found.flatMap(({ hwId }) => (table.byHwId.get(bus, hwId) ? [] : hwId)));
  if (isNew.size > 0) await discovery.record(found, caller);
  await place(found);
  const expected = new Map(table.addressed.all(bus).map((row) => [row.address, row]));
  return results.flatMap(({ address, identity, turnaroundMs, counters }) => {
    const row = identity ? table.byHwId.get(bus, identity.hwId) : undefined;
    const deviceId = row?.device_id ?? expected.get(address)?.deviceId ?? null;
    const { timeouts: _, ...heard } = counters;
    const answered = counters.replies > 0 || identity !== null;
    const isExpected = deviceId !== null || buses.device(bus, address) !== undefined;
    if (!answered && !isExpected && Object.values(heard).every((count) => count === 0)) return [];
    const isNewHere = identity !== null && row !== undefined && isNew.has(identity.hwId);
    return [{ address, answered, identity, turnaroundMs, counters, deviceId, isNew: isNewHere }];
  });
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
