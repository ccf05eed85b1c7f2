/** Shows a text, a light and beeps at the reader of an OSDP device: at once, for a time, and in the audit. */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type ReaderShown, readerShown } from '../../../drivers/contract/osdp.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError, ownFault } from '../../platform/errors.ts';
import type { Caller, Role } from '../../platform/principal.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { ReaderBody, ReaderResult } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import { existing } from './table.ts';

/** Somebody stands there; later it would confuse the next one. */
const TIMEOUT_MS = 3_000;
export const SHOWERS: readonly [Role, ...Role[]] = ['front-desk-admin', 'service-tool'];

export interface Readers {
  /** Throws a GatehouseError: READER_REFUSED names the part that the device cannot do. */
  showOnReader(deviceId: string, body: ReaderBody, caller: Caller): Promise<ReaderResult>;
}

export function openReaders(
  { table, database, audit, field }: Rs485Context,
  buses: Buses,
  reported: Pick<Reported<Rs485Report>, 'get'>,
): Readers {
  return {
    async showOnReader(deviceId, { reader, text, led, buzzer }, { principal, correlationId }) {
      const row = existing(table, deviceId);
      buses.assertOsdp(row.bus, 'OSDP has readers that show something');
      if (reported.get(deviceId)?.connected !== true)
        throw new GatehouseError('DEVICE_OFFLINE', 'Nothing was shown: the device does not answer.');
      const wanted = { reader, ...(text && { text }), ...(led && { led }), ...(buzzer && { buzzer }) };
      const record = (outcome: 'done' | 'failed' | 'unknown', more: Record<string, unknown>) =>
        database.commit(() =>
          audit.record({
            principal,
            correlationId,
            action: 'rs485.reader',
            object: `rs485/${deviceId}`,
            outcome,
            detail: { ...wanted, ...more },
          }),
        );
      const never = new AbortController().signal;
      const command = { kind: 'showOnReader', data: { hwId: row.hw_id, ...wanted }, timeoutMs: TIMEOUT_MS };
      let answer: ReaderShown;
      try {
        answer = readerShown.parse(await field.execute(row.bus, command, never));
      } catch (error) {
        const failure = failureOf(error);
        await record(failure.code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'failed', { reason: failure.message });
        throw failure;
      }
      const { shown, refused } = answer;
      await record(refused ? 'failed' : 'done', { shown, ...(refused && { refused }) });
      if (refused) throw refusal(refused, shown);
      return { deviceId, reader, shown: shown.filter((part) => part !== 'reader') };
    },
  };
}

function refusal({ part, reason }: NonNullable<ReaderShown['refused']>, shown: readonly string[]) {
  const before = shown.length > 0 ? `${shown.join(' and ')} is shown` : 'Nothing was shown';
  return new GatehouseError('READER_REFUSED', `${before}: ${reason}.`, {
    details: [{ path: `/${part}`, code: 'READER_REFUSED', message: reason }],
  });
}

function failureOf(error: unknown): GatehouseError {
  if (!(error instanceof DriverError)) throw error;
  if (error.code === 'INVALID_COMMAND') return ownFault('Nothing was shown', error);
  if (error.code === 'OUTCOME_UNKNOWN' || error.code === 'NO_REPLY' || error.code === 'BAD_REPLY')
    return new GatehouseError('OUTCOME_UNKNOWN', `The reader may show it, or not: ${error.message}.`, {
      cause: error,
    });
  return new GatehouseError('DEVICE_OFFLINE', `Nothing was shown: ${error.message}.`, { cause: error });
}
