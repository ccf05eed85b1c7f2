/**
 * Devices that are taken to have one network address. A frame goes to a network address and not to an IEEE address
 * (Zigbee specification, 3.6.1.10): an unlock would open the door of the other one, or both. It comes of two devices that chose the same
 * address, and of one that announces the IEEE address of another with an address of its own (2.4.3.1.11, Device_annce),
 * which the library takes over unseen. Until each has an address of its own nothing is sent to it that opens a door. Nor to one that
 * has asked to join again, until its address
 * was named by a frame that takes the key of the network: asking takes none, and what comes from that address may come of
 * another lock.
 */
import type { DriverContext } from '../contract/driver.ts';
import type { Locks } from './locks.ts';
import type { Radio } from './radio.ts';

export interface SharedAddresses {
  /** Why nothing that opens a door may be sent to this lock; undefined: its network address is its own. */
  reason(ieee: string): string | undefined;
  /** Its network address may be another, or it may have gone. */
  look(ieee: string): void;
  /** Now and then. */
  review(): void;
}

/** `radio` gives the present one. */
export function openSharedAddresses(
  radio: () => Pick<Radio, 'sharing' | 'hearAsItself' | 'locate' | 'isDoubted'>,
  locks: Pick<Locks, 'note' | 'all'>,
  { log }: Pick<DriverContext, 'log'>,
): SharedAddresses {
  /** The other devices that have the same address. */
  const shared = new Map<string, readonly string[]>();
  const locating = new Set<string>();

  /** It may be the library that is wrong: the devices, or their parents, are asked. */
  function locate(ieee: string): void {
    if (locating.has(ieee)) return;
    locating.add(ieee);
    radio()
      .locate(ieee)
      .catch((error) => log.debug({ device: ieee, err: error }, 'a device did not say its network address'))
      .finally(() => locating.delete(ieee));
  }

  function sharing(ieee: string): string[] | undefined {
    try {
      return radio().sharing(ieee);
    } catch {
      // While the radio is opened again, as by a channel move; no door is opened meanwhile (commands.ts).
      return undefined;
    }
  }

  function isDoubted(ieee: string): boolean {
    try {
      return radio().isDoubted(ieee);
    } catch {
      // The same.
      return true;
    }
  }

  function take(ieee: string): readonly string[] {
    const before = shared.get(ieee) ?? [];
    const others = sharing(ieee) ?? before;
    if (others.join() === before.join()) return before;
    if (others.length > 0) {
      shared.set(ieee, others);
      log.warn({ lock: ieee, others }, reasonOf(others));
      locate(ieee);
    } else {
      shared.delete(ieee);
      radio().hearAsItself(ieee);
      log.info({ lock: ieee }, 'the network address of a device is its own again');
    }
    // Which is in its report (lock-record.ts).
    locks.note(ieee, {});
    return [...before, ...others];
  }

  function look(ieee: string): void {
    for (const other of take(ieee)) take(other);
    if (isDoubted(ieee)) locate(ieee);
  }

  return {
    look,
    reason(ieee) {
      look(ieee);
      const others = shared.get(ieee);
      if (others) return reasonOf(others);
      return isDoubted(ieee) ? DOUBTED : undefined;
    },
    review() {
      for (const { ieee } of locks.all()) look(ieee);
      for (const ieee of shared.keys()) locate(ieee);
    },
  };
}

const DOUBTED =
  'it is said to have joined its network again, and its network address is not certain yet: another device may have asked in its name. It is asked for its address: try again in some seconds, else take its batteries out and put them back';

function reasonOf(others: readonly string[]): string {
  return `its network address is also that of ${others.join(', ')}: what opens one door could open the other, so nothing that opens is sent to either. Have one of the two leave the network and join again; remove the one that is not there any more`;
}
