/**
 * A pairing may end without a known outcome (the window closed, or the host or the gateway died after the KEYSET). When the
 * device proves the pending key in a later handshake, that key becomes its own.
 */

import { randomUUID } from 'node:crypto';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Rs485Context } from './context.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';

export type TakeKeyProof = (bus: string, report: Rs485Report) => void;

export function openKeyProofs(
  { database, audit, clock, log }: Rs485Context,
  keys: Pick<Keys, 'isPending' | 'proved'>,
  polled: Pick<PolledAddresses, 'changed'>,
): TakeKeyProof {
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
