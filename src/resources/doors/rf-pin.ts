/**
 * The PIN that a lock requires for operations by radio (ZCL rev. 8, RequirePINforRFOperation 0x0033). Kept sealed for each
 * lock, and never returned, logged or audited. It goes when its lock is at no door any more.
 */

import type { LockReport } from '../../../drivers/contract/settings.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import { doorEntry } from './live-events.ts';
import { noLock } from './outcome.ts';
import { type DoorRow, existing } from './table.ts';

export interface RfPins {
  /** null: none is stored, or it cannot be opened any more. */
  pinOf(mac: string): string | null;
  has(mac: string | null): boolean;
  /** Throws as `remove` does where another one is stored; not once the alarm says that it may be the wrong one. */
  set(doorId: string, pin: string, caller: Caller): Promise<void>;
  /** Throws STANDS_OPEN or IN_PROGRESS. */
  remove(doorId: string, caller: Caller): Promise<void>;
}

/** `lockedInWords`: when the lock that has to be locked is seen to next, as closing.ts says; for a message. */
export function openRfPins(
  { database, table, audit, log, vault }: DoorContext,
  lockedInWords: (mac: string) => string,
): RfPins {
  const sealedOf = openLastRead(
    (mac) => table.pin.get(mac)?.sealed,
    table.pins.all().map(({ mac, sealed }) => [mac, sealed] as const),
  );
  async function change(
    doorId: string,
    caller: Caller,
    action: string,
    store: (mac: string) => void,
  ): Promise<void> {
    const changed = await database.commit(() => {
      const { mac } = withLock(existing(table, doorId));
      store(mac);
      audit.record(doorEntry(doorId, action, { mac }, caller));
      return mac;
    });
    sealedOf(changed);
  }
  /** Throws STANDS_OPEN or IN_PROGRESS: the lock could not be locked without the PIN that is stored. */
  function assertUnneeded(mac: string, isNeeded: (closing: { raised: number }) => boolean): void {
    const standing = table.standOpens.all().find((row) => row.mac === mac);
    if (standing)
      throw new GatehouseError(
        'STANDS_OPEN',
        'The lock needs its PIN to be locked at the end of standing open: end that first.',
      );
    const closing = table.closing.get(mac);
    if (closing && isNeeded(closing))
      throw new GatehouseError(
        'IN_PROGRESS',
        `The lock needs its PIN to be locked, and was not seen locked yet${lockedInWords(mac)}: try again then, or lock the door.`,
      );
  }
  return {
    pinOf(mac) {
      const sealed = sealedOf(mac);
      if (!sealed) return null;
      try {
        return vault.open(sealed, contextOf(mac)).toString('latin1');
      } catch (error) {
        log.error({ lock: mac, err: error }, 'the stored PIN of a lock cannot be opened: set it again');
        return null;
      }
    },
    has: (mac) => mac !== null && table.pin.get(mac) !== undefined,
    set: (doorId, pin, caller) =>
      change(doorId, caller, 'door.set-rf-pin', (mac) => {
        if (table.pin.get(mac)) assertUnneeded(mac, ({ raised }) => raised === 0);
        table.setPin.run(mac, vault.seal(Buffer.from(pin, 'latin1'), contextOf(mac)));
      }),
    remove: (doorId, caller) =>
      change(doorId, caller, 'door.remove-rf-pin', (mac) => {
        assertUnneeded(mac, () => true);
        table.deletePin.run(mac);
      }),
  };
}

const contextOf = (mac: string) => `lock-pin/${mac}`;

function withLock(row: DoorRow): { mac: string } {
  if (row.mac !== null) return { mac: row.mac };
  throw noLock();
}

/** Throws PIN_REQUIRED: the lock would refuse whatever it is sent. */
export function assertPin(
  mac: string,
  report: Pick<LockReport, 'requiresPin'> | undefined,
  rfPins: Pick<RfPins, 'pinOf'>,
): void {
  if (report?.requiresPin !== true || rfPins.pinOf(mac) !== null) return;
  throw new GatehouseError(
    'PIN_REQUIRED',
    'Nothing was sent: the lock requires a PIN for operations by radio. Give the gateway its PIN (rf-pin), or have the lock not require it.',
  );
}
