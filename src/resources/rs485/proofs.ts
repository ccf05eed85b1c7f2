/**
 * A pairing may end without a known outcome (the window closed, or the host or the gateway died after the KEYSET). When the
 * device proves the pending key in a later handshake, that key becomes its own.
 */
import { randomUUID } from 'node:crypto';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Keys } from './keys.ts';

export interface ProofsOptions {
  database: Database;
  keys: Pick<Keys, 'isPending' | 'proved'>;
  audit: Audit;
  clock: Clock;
  log: Log;
  /** The keys of this bus are other ones now. */
  changed(bus: string): void;
}

export type TakeProof = (bus: string, told: Rs485Report) => void;

export function openProofs({ database, keys, audit, clock, log, changed }: ProofsOptions): TakeProof {
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
      () => changed(bus),
      (error: unknown) =>
        log.warn(
          { link: bus, address, err: error },
          'the key that a device has proved was not stored as its own; it is tried again with its next report',
        ),
    );
  };
}
