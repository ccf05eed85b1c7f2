/**
 * The meta of a device in the library's database, as far as it is ours: with the device, which goes when it leaves, and what has
 * to outlast that with the coordinator.
 */
import { DriverError } from '../../contract/driver.ts';
import type { Radio } from '../radio.ts';

/** Of a device or the coordinator in the library's database. */
export interface MetaEntry {
  meta: Record<string, unknown>;
  save(): void;
}
type Values = Readonly<Record<string, unknown>>;

/** Its name there. */
const OWN = 'gatehouse';
/**
 * What the lock had before it stood open, which is still to be given back when the lock leaves meanwhile and joins again; and its
 * holidays, which it keeps when it leaves, with whether it has yet to show that these are what it has.
 */
const LASTING: readonly string[] = ['standing', 'relockSeconds', 'holidays', 'holidaysUnshown'];

export function metaOf(ieee: string, device: MetaEntry, coordinator: MetaEntry): Values {
  return { ...plain(device.meta[OWN]), ...plain(plain(coordinator.meta[OWN])[ieee]) };
}

/** What lasts is saved first. Never throws: what the disk does not take now is stored later. */
export function remember(ieee: string, values: Values, device: MetaEntry, coordinator: MetaEntry): void {
  const isLasting = ([name]: [string, unknown]) => LASTING.includes(name);
  const lasting = Object.entries(values).filter(isLasting);
  if (lasting.length > 0) {
    const { [ieee]: before, ...others } = plain(coordinator.meta[OWN]);
    const after = Object.entries({ ...plain(before), ...Object.fromEntries(lasting) });
    const left = after.filter(([, value]) => value !== null);
    coordinator.meta[OWN] = left.length > 0 ? { ...others, [ieee]: Object.fromEntries(left) } : others;
    coordinator.save();
  }
  // Earlier versions kept all of it with the device: what is taken back is taken back there, too.
  device.meta[OWN] = { ...plain(device.meta[OWN]), ...values };
  device.save();
}

/** `unstored`: why the database is not on the disk as it was written last. */
export function openDeviceMeta(
  find: (ieee: string) => MetaEntry,
  coordinator: MetaEntry,
  unstored: () => string | undefined,
): Pick<Radio, 'meta' | 'remember' | 'rememberFirst'> {
  return {
    meta: (ieee) => metaOf(ieee, find(ieee), coordinator),
    remember: (ieee, values) => remember(ieee, values, find(ieee), coordinator),
    rememberFirst(ieee, values) {
      const device = find(ieee);
      const entries = [device, coordinator].map((entry) => ({ entry, before: entry.meta[OWN] }));
      remember(ieee, values, device, coordinator);
      const reason = unstored();
      if (reason === undefined) return;
      for (const { entry, before } of entries) {
        entry.meta[OWN] = before;
        entry.save();
      }
      throw new DriverError(
        'REFUSED',
        `not sent: what has to be known of it later cannot be stored (${reason})`,
      );
    },
  };
}

function plain(kept: unknown): Values {
  return typeof kept === 'object' && kept !== null ? (kept as Values) : {};
}
