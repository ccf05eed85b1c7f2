/**
 * Gives an OSDP device its key: as a job, in a window of time that a technician opens and watches. While it is open whoever
 * listens on that bus can learn the key, so it is explicit, short, and in the audit.
 */
import { DriverError, type DriverErrorCode } from '../../drivers/driver.ts';
import { type Pair, paired } from '../../drivers/rs485.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { Execute } from '../execute.ts';
import type { StartJob } from '../job-order.ts';
import type { Caller, Role } from '../principal.ts';
import type { PairBody } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Discovery } from './discovery.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import type { Rs485Table } from './table.ts';

export const PAIRERS: readonly [Role, ...Role[]] = ['service-tool'];

/** Of the driver: no KEYSET was sent. */
const UNSENT: readonly DriverErrorCode[] = [
  ...(['REFUSED', 'NO_REPLY', 'DEVICE_OFFLINE', 'BUSY'] as const),
  ...(['INVALID_COMMAND', 'LINK_LOST', 'DEADLINE_PASSED'] as const),
];

/** For the way to the host and back. */
const MARGIN_MS = 5_000;

export interface PairingOptions {
  database: Database;
  table: Rs485Table;
  audit: Audit;
  clock: Clock;
  buses: Buses;
  keys: Keys;
  discovery: Pick<Discovery, 'record'>;
  polled: Pick<PolledAddresses, 'place' | 'changed'>;
  execute: Execute;
  startJob: StartJob;
}

export type StartPairing = (bus: string, body: PairBody, caller: Caller) => Promise<unknown>;

export function openPairing(options: PairingOptions): StartPairing {
  const { buses, startJob } = options;
  return async (busId, body, caller) => {
    if (!buses.has(busId))
      throw new GatehouseError(
        'NOT_FOUND',
        `There is no bus ${busId}; GET /network/rs485/buses has those there are.`,
      );
    const { id } = buses.assertOsdp(busId, 'OSDP has keys');
    if (!buses.isUp(id))
      throw new GatehouseError('DEVICE_OFFLINE', `Bus ${id} is down: GET /network/rs485/buses says why.`);
    return startJob({
      kind: 'osdp-pairing',
      object: `rs485/bus/${id}`,
      roles: PAIRERS,
      principal: caller.principal,
      correlationId: caller.correlationId,
      run: (_, signal) => pair(options, id, body, caller, signal),
    });
  };
}

async function pair(
  options: PairingOptions,
  bus: string,
  { address, seconds }: PairBody,
  caller: Caller,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { database, audit, clock, keys, discovery, polled, table } = options;
  const { principal, correlationId } = caller;
  const place = { bus, address };
  const by = () => ({ now: clock.now(), principalId: principal.id });
  const record = (outcome: string, detail: object) =>
    audit.record({
      principal,
      correlationId,
      action: 'rs485.pair',
      object: `rs485/bus/${bus}`,
      outcome,
      detail: { address, ...detail },
    });
  async function failed(error: unknown): Promise<never> {
    const reason = error instanceof Error ? error.message : String(error);
    const isUnsent = error instanceof DriverError && UNSENT.includes(error.code);
    await database.commit(() => {
      record(isUnsent ? 'failed' : 'unknown', { reason });
      // One that was drawn for an earlier pairing may have been sent in that.
      if (isUnsent && isNew) keys.discard(place);
    });
    throw error;
  }
  const { key, isNew } = await database.commit(() => {
    record('accepted', { seconds });
    return keys.draw(place, by());
  });
  try {
    const data: Pair = { address, key, milliseconds: seconds * 1_000 };
    const timeoutMs = data.milliseconds + MARGIN_MS;
    const command = { kind: 'pair', data: { ...data }, timeoutMs };
    // What fails after it is no failure of the pairing.
    const { hwId } = await options.execute(bus, command, signal).then(paired.parse).catch(failed);
    await database.commit(() => {
      keys.proved(place, by());
      record('done', { hwId });
    });
    const found = [{ bus, hwId, address }];
    await discovery.record(found, caller);
    await polled.place(found);
    return { bus, address, hwId, deviceId: table.byHwId.get(bus, hwId)?.device_id ?? null };
  } finally {
    polled.changed(bus);
  }
}
