/** Asks the addresses of a bus who is there: as a job, some at a time, so that polls and pulses go on in between. */

import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import {
  type LineSettings,
  PROBE_MAX,
  type Probe,
  type Probed,
  probed as probedSchema,
} from '../../../drivers/contract/rs485.ts';
import { isUnitId, unitIds } from '../../../drivers/modbus/options.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { COMMAND_TIMEOUT_MAX_MS } from '../../platform/field/ipc.ts';
import type { Caller, Role } from '../../platform/principal.ts';
import type { ReportProgress } from '../../services/jobs/job-order.ts';
import { busFindings, duringScan, type ScannedAddress } from './bus-findings.ts';
import type { ScanBody } from './bus-schema.ts';
import { type Bus, type Buses, notValid } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Discovery } from './discovery.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import { advice, linesToTry, type Tried } from './scan-lines.ts';

export const SCANNERS: readonly [Role, ...Role[]] = ['service-tool'];

/** Two hex digits; what a loop-back link plays; SIA OSDP 2.2, 5.4. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  dcon: [0, 255],
  loopback: [0, 31],
  osdp: [0, 126],
};
const ANY_ADDRESS = [0, 255] as const;
/** A device that speaks Modbus TCP itself is asked at 255 (drivers/modbus/options.ts). */
const rangeOf = ({ protocol, port }: Bus): readonly [number, number] =>
  protocol === 'modbus' ? unitIds(port ?? '') : (RANGES[protocol] ?? ANY_ADDRESS);

/** Polls that go before a probe, and the margin. */
const PROBE_BASE_MS = 10_000;
/** Frames of an exchange at 1200 baud, beside the turnaround of the device. */
const WIRE_MS = 400;
/** Of one command: it ends the sooner after a cancel, and stays below what a command may take. */
const EXCHANGES_MAX = 320;

export interface ScanOptions extends Rs485Context {
  buses: Buses;
  discovery: Pick<Discovery, 'record'>;
  polled: Pick<PolledAddresses, 'place'>;
}

type Result = Probed['results'][number];

export interface Scans {
  /** Resolves with the job. */
  scan(body: ScanBody, caller: Caller): Promise<unknown>;
}

export function openScans(options: ScanOptions): Scans {
  return { scan: (body, caller) => start(options, body, caller) };
}

async function start(
  options: ScanOptions,
  body: ScanBody,
  { principal, correlationId }: Caller,
): Promise<unknown> {
  const { buses } = options;
  const bus = body.bus === undefined ? buses.only() : buses.assertKnown(body.bus);
  const [lowest, highest] = rangeOf(bus);
  const from = body.from ?? lowest;
  const to = body.to ?? highest;
  // Unit id 0 is a broadcast, which no device may answer; above the highest no device may be.
  if (from < lowest || from > highest) throw beyond('from', bus, lowest, highest);
  if (to < from || to > highest) throw beyond('to', bus, from, highest);
  const lines = linesToTry(bus, body);
  if (!buses.isUp(bus.id))
    throw new GatehouseError('DEVICE_OFFLINE', `Bus ${bus.id} is down: its state says why.`);
  const range = { from, to, repeats: body.repeats };
  return options.jobs.start({
    kind: 'rs485-scan',
    object: `rs485/bus/${bus.id}`,
    roles: SCANNERS,
    principal,
    correlationId,
    run(progress, signal) {
      const job = { options, bus, body, range, caller: { principal, correlationId }, progress, signal };
      return lines ? scanLines(job, lines) : scan(job, { total: size(range) });
    },
  });
}

function beyond(field: 'from' | 'to', { id, protocol }: Bus, least: number, most: number): GatehouseError {
  return notValid(`/${field}`, `expected ${least} to ${most}: bus ${id} speaks ${protocol}`);
}

interface Range {
  from: number;
  to: number;
  repeats: number;
}

interface Scan {
  options: ScanOptions;
  bus: Bus;
  body: ScanBody;
  range: Range;
  caller: Caller;
  progress: ReportProgress;
  signal: AbortSignal;
}

const size = ({ from, to }: Range) => to - from + 1;

async function scan(job: Scan, { total }: { total: number }): Promise<ScanResult> {
  const { bus, range } = job;
  const addresses: ScannedAddress[] = [];
  const state = () => job.options.buses.overview().find(({ id }) => id === bus.id);
  const before = state();
  for await (const results of probed(job, range, { done: 0, total }))
    addresses.push(...(await takeIn(job, results)));
  const after = state();
  const findings = after ? busFindings(duringScan(before, after), addresses) : [];
  return { bus: bus.id, protocol: bus.protocol, ...range, addresses, findings };
}

interface ScanResult {
  [name: string]: unknown;
  addresses: ScannedAddress[];
}

/** With the settings of the configuration first, as any scan; with the others no one becomes a row, for none can be polled so. */
async function scanLines(
  job: Scan,
  [configured, ...others]: LineSettings[],
): Promise<Record<string, unknown>> {
  const { bus, range } = job;
  const total = size(range) * (1 + others.length);
  const result = await scan(job, { total });
  const heard = result.addresses.filter(({ answered }) => answered).map(({ address }) => address);
  const tried: (Tried & { devices: object[] })[] = [];
  if (configured) tried.push({ line: configured, answered: heard, devices: [] });
  for (const [index, line] of others.entries()) {
    const found: Result[] = [];
    const begun = { done: (1 + index) * size(range), total };
    // Once: who says nothing is most of them.
    for await (const results of probed(job, { ...range, repeats: 1 }, begun, line))
      found.push(...results.filter(({ counters, identity }) => counters.replies > 0 || identity !== null));
    const devices = found.map(({ address, identity }) => ({ address, hwId: identity?.hwId ?? null }));
    tried.push({ line, answered: found.map(({ address }) => address), devices });
  }
  const settings = tried.map(({ line, answered, devices }, index) => ({
    ...line,
    configured: index === 0,
    answered,
    ...(index > 0 && { devices }),
  }));
  return { ...result, settings, advice: advice(bus.id, tried) };
}

/** What the driver says of each few addresses. */
async function* probed(
  { options, bus, progress, signal }: Scan,
  { from, to, repeats }: Range,
  { done, total }: { done: number; total: number },
  line?: LineSettings,
): AsyncGenerator<Result[], void> {
  const atOnce = Math.max(1, Math.min(PROBE_MAX, Math.floor(EXCHANGES_MAX / Math.max(2, repeats))));
  for (let next = from; next <= to; next += atOnce) {
    progress({ done: done + next - from, total });
    const addresses = range(next, Math.min(to, next + atOnce - 1)).filter(
      (address) => bus.protocol !== 'modbus' || isUnitId(address),
    );
    if (addresses.length > 0)
      yield await probe(options, bus, { addresses, repeats, ...(line && { line }) }, signal);
    signal.throwIfAborted();
  }
  progress({ done: done + to - from + 1, total });
}

async function probe({ field }: ScanOptions, bus: Bus, data: Probe, signal: AbortSignal): Promise<Result[]> {
  const exchanges = data.addresses.length * Math.max(2, data.repeats);
  const timeoutMs = PROBE_BASE_MS + exchanges * (bus.turnaroundMaxMs + WIRE_MS);
  const command = {
    kind: 'probe',
    data: data as Plain,
    timeoutMs: Math.min(timeoutMs, COMMAND_TIMEOUT_MAX_MS),
    movesNothing: true,
  };
  const answer = probedSchema.safeParse(await field.execute(bus.id, command, signal));
  if (!answer.data) throw new DriverError('BAD_REPLY', `the driver of ${bus.id} gave no results`);
  return answer.data.results.filter(({ address }) => data.addresses.includes(address));
}

/**
 * Makes rows for the devices that answered, where rows are wanted. Shown are the addresses that answered, and those that should
 * have.
 */
async function takeIn({ options, bus: { id: bus }, body, caller }: Scan, results: readonly Result[]) {
  const { table, buses, discovery, polled } = options;
  const records = body.record !== false;
  const found = results.flatMap(({ address, identity }) =>
    identity && !isByPlaceAlone(bus, address, identity) ? [{ bus, hwId: identity.hwId, address }] : [],
  );
  const isNew = new Set(found.flatMap(({ hwId }) => (table.byHwId.get(bus, hwId) ? [] : hwId)));
  if (records && isNew.size > 0) await discovery.record(found, caller);
  if (records) await polled.place(found);
  const expected = new Map(table.addressed.all(bus).map((row) => [row.address, row]));
  return results.flatMap(({ address, identity, turnaroundMs, counters }) => {
    const row = identity ? table.byHwId.get(bus, identity.hwId) : undefined;
    const deviceId = row?.device_id ?? expected.get(address)?.deviceId ?? null;
    const { timeouts: _, ...heard } = counters;
    const answered = counters.replies > 0 || identity !== null;
    const isExpected = deviceId !== null || buses.device(bus, address) !== undefined;
    if (!answered && !isExpected && Object.values(heard).every((count) => count === 0)) return [];
    const isNewHere = identity !== null && isNew.has(identity.hwId) && (row !== undefined || !records);
    return [{ address, answered, identity, turnaroundMs, counters, deviceId, isNew: isNewHere }];
  });
}

/** A product other than that of the profile, without a name: nothing separates it from another one at this address. */
function isByPlaceAlone(bus: string, address: number, { hwId, profile }: NonNullable<Result['identity']>) {
  return profile === null && hwId === `${bus}-${address}`;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
