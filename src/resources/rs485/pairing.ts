/**
 * Gives an OSDP device its key: as a job, in a window of time that a technician opens and watches. While it is open anyone who
 * listens on that bus can learn the key, so it is explicit, short, and in the audit.
 */

import { randomUUID } from 'node:crypto';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { type Pair, paired } from '../../../drivers/contract/rs485.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, type Role, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Conclude } from '../../services/jobs/job-order.ts';
import type { PairBody } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Discovery } from './discovery.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';

export const PAIRERS: readonly [Role, ...Role[]] = ['service-tool'];

/** Of the driver: no KEYSET was sent. */
const UNSENT: readonly DriverErrorCode[] = [
  'REFUSED',
  'NO_REPLY',
  'DEVICE_OFFLINE',
  'BUSY',
  'INVALID_COMMAND',
  'LINK_LOST',
  'DEADLINE_PASSED',
];

/** For the way to the host and back. */
const MARGIN_MS = 5_000;

export interface PairingOptions extends Rs485Context {
  buses: Buses;
  keys: Keys;
  discovery: Pick<Discovery, 'record'>;
  polled: Pick<PolledAddresses, 'place' | 'changed'>;
}

export interface Pairings {
  /** Resolves with the job. */
  pair(bus: string, body: PairBody, caller: Caller): Promise<unknown>;
}

export function openPairings(options: PairingOptions): Pairings {
  const { buses, jobs } = options;
  return {
    async pair(busId, body, caller) {
      if (!buses.has(busId))
        throw new GatehouseError('NOT_FOUND', `There is no bus ${busId} in the configuration.`);
      const { id } = buses.assertOsdp(busId, 'OSDP has keys');
      if (!buses.isUp(id))
        throw new GatehouseError('DEVICE_OFFLINE', `Bus ${id} is down: its state says why.`);
      return jobs.start({
        kind: 'osdp-pairing',
        object: `rs485/bus/${id}`,
        roles: PAIRERS,
        principal: caller.principal,
        correlationId: caller.correlationId,
        intent: { action: 'rs485.pair', object: `rs485/bus/${id}`, detail: { ...body } },
        run: (_, signal, conclude) => pair(options, id, body, { caller, signal, conclude }),
      });
    },
  };
}

async function pair(
  options: PairingOptions,
  bus: string,
  { address, seconds }: PairBody,
  { caller, signal, conclude }: { caller: Caller; signal: AbortSignal; conclude: Conclude },
): Promise<Record<string, unknown>> {
  const { database, clock, buses, keys, discovery, polled, table } = options;
  const place = { bus, address };
  const by = () => ({ now: clock.now(), principalId: caller.principal.id });
  function failed(error: unknown): never {
    const reason = error instanceof Error ? error.message : String(error);
    const isUnsent = error instanceof DriverError && UNSENT.includes(error.code);
    const outcome = isUnsent ? 'failed' : 'unknown';
    const also = () => {
      // One that was drawn for an earlier pairing may have been sent in that.
      if (isUnsent && isNew) keys.discard(place);
    };
    conclude({ outcome, detail: { reason }, also, stored });
    throw error;
  }
  function stored(): void {
    keys.pairing(place, false);
    polled.changed(bus);
  }
  const { key, isNew } = await database.commit(() => keys.draw(place, by()));
  keys.pairing(place, true);
  const data: Pair = { address, key, milliseconds: seconds * 1_000 };
  const timeoutMs = data.milliseconds + MARGIN_MS;
  const command = { kind: 'pair', data: { ...data }, timeoutMs, movesNothing: true };
  buses.pairing(bus, { address, until: new Date(clock.now() + data.milliseconds).toISOString() });
  // What fails after it is no failure of the pairing.
  const { hwId } = await options.field
    .execute(bus, command, signal)
    .then(paired.parse)
    .catch(failed)
    .finally(() => buses.pairing(bus, undefined));
  conclude({ outcome: 'done', detail: { hwId }, also: () => keys.proved(place, by()), stored });
  const found = [{ bus, hwId, address }];
  await discovery.record(found, caller);
  await polled.place(found);
  return { bus, address, hwId, deviceId: table.byHwId.get(bus, hwId)?.device_id ?? null };
}

/**
 * A pairing may end without a known outcome (the window closed, or the host or the gateway died after the KEYSET). When the device proves
 * the pending key in a later handshake, as its report says, that key becomes its own.
 */
export function openKeyProofs(
  { database, audit, clock, log }: Rs485Context,
  keys: Pick<Keys, 'isPending' | 'proved'>,
  polled: Pick<PolledAddresses, 'changed'>,
): (bus: string, report: Rs485Report) => void {
  return (bus, { hwId, address, provenKey }) => {
    if (provenKey === undefined || address === undefined) return;
    const place = { bus, address };
    if (!keys.isPending(place, provenKey)) return;
    const promoted = database.commit(() => {
      // Reports repeat, and a pairing may have ended meanwhile.
      if (!keys.isPending(place, provenKey)) return;
      keys.proved(place, { now: clock.now(), principalId: SYSTEM_PRINCIPAL.id });
      audit.record({
        principal: SYSTEM_PRINCIPAL,
        correlationId: randomUUID(),
        action: 'rs485.pair',
        object: `rs485/bus/${bus}`,
        outcome: 'done',
        detail: { address, hwId, reason: 'the device proved its key after its window' },
      });
    });
    promoted.then(
      () => polled.changed(bus),
      (error: unknown) =>
        log.warn(
          { link: bus, address, err: error },
          'the key that a device has proved was not stored as its own; it is tried again with its next report',
        ),
    );
  };
}
