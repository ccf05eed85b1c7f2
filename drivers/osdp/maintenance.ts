/**
 * Changes of the key (pairing.ts) or the address of a device, one at a time at each address. Another address or baud rate is given by
 * osdp_COMSET, whose reply still comes from the old place; when that is lost no one can know, so both places are asked.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Readdress, Readdressed } from '../contract/osdp.ts';
import type { Pair, Paired } from '../contract/rs485.ts';
import type { Until } from '../rs485/link.ts';
import type { Member, Registry } from '../rs485/registry.ts';
import { type AddressTable, assertSameSecurity } from './address-table.ts';
import type { Device } from './device.ts';
import type { Asking } from './device-session.ts';
import type { OsdpOptions } from './options.ts';
import { pairDevice } from './pairing.ts';
import type { Policy } from './policy.ts';
import { HIGHEST_ADDRESS } from './protocol/frame.ts';

export interface Maintenance {
  pair(pair: Pair, signal: AbortSignal): Promise<Paired>;
  /** `isTaken`: whether a device answers at the address. Throws a DriverError, and nothing has changed then. */
  readdress(
    wanted: Readdress,
    isTaken: (address: number) => Promise<boolean>,
    until: Until,
  ): Promise<Readdressed>;
}

const COMSET_MS = 5_000;
/** A device may restart for it; its handshake takes some exchanges more. */
const SEARCH_MS = 15_000;
/** One that says that it has another rate now may go on as before all the same. */
const SEARCH_LEFT_MS = 3_000;
const LOOK_MS = 50;

/** `settle` polls exactly the addresses of the table. */
export function openMaintenance(
  busBaudRate: OsdpOptions['baudRate'],
  table: AddressTable,
  registry: Pick<Registry<Member & { device: Device }>, 'join' | 'named' | 'holderOf'>,
  settle: () => void,
  clock: Clock,
  closing: AbortSignal,
): Maintenance {
  const occupy = openOccupancy();
  /** Polls this address too, as the device is spoken to, until disposed. */
  function hold(address: number, policy: Policy): Disposable {
    table.hold(address, policy);
    settle();
    return {
      [Symbol.dispose]() {
        table.release(address);
        settle();
      },
    };
  }

  return {
    async pair({ address, key, milliseconds }, signal) {
      if (table.isClearText(address))
        throw new DriverError(
          'INVALID_COMMAND',
          `the configuration says secure: off for address ${address}: take that out, reload it, and pair the device then`,
        );
      using _occupied = occupy([address]);
      using _held = hold(address, table.policyAt(address));
      const hasKey = table.keyAt(address) !== undefined;
      const { device } = registry.join(address);
      const paired = await pairDevice(device, {
        key,
        milliseconds,
        clock,
        signal: AbortSignal.any([signal, closing]),
        hasKey,
        mayHave: () => table.setPendingKey(address, key),
      });
      table.assign(address, paired.hwId, key);
      return paired;
    },
    async readdress({ hwId, address, baudRate }, isTaken, { deadline, signal }) {
      const { device } = registry.named(hwId);
      const { address: before } = device;
      assertSameSecurity(table, before, address);
      using _occupied = occupy([before, address]);
      const policy = table.policyAt(before);
      const key = table.keyAt(before);
      // A list that arrives meanwhile may lack the device.
      using _held = hold(before, policy);
      if (address !== before && (await isTaken(address)))
        throw new DriverError(
          'REFUSED',
          `something answers at address ${address} already, and nothing was changed: give the device another address`,
        );
      const until = AbortSignal.any([signal, closing]);
      const answered = await sendComset(
        device,
        { address, baudRate },
        { hwId, deadline: clock.monotonic() + COMSET_MS, signal: until },
      );
      device.restart();
      using places = new DisposableStack();
      for (const place of new Set([address, answered?.address ?? address]))
        if (place !== before && place <= HIGHEST_ADDRESS) places.use(hold(place, policy));
      const whereabouts = () => registry.holderOf(hwId)?.device.address;
      const hasLeft = answered !== null && answered.baudRate !== busBaudRate;
      const end = Math.min(deadline, clock.monotonic() + (hasLeft ? SEARCH_LEFT_MS : SEARCH_MS));
      while (whereabouts() === undefined && clock.monotonic() < end) await clock.sleep(LOOK_MS, until);
      const found = whereabouts() ?? null;
      if (found !== null) table.assign(found, hwId, key);
      return { answered, found };
    },
  };
}

function openOccupancy() {
  const occupied = new Set<number>();
  return (addresses: readonly number[]): Disposable => {
    const busy = addresses.find((address) => occupied.has(address));
    if (busy !== undefined)
      throw new DriverError(
        'BUSY',
        `a device at address ${busy} is being paired already, or given an address: wait for the end of that`,
      );
    for (const address of addresses) occupied.add(address);
    return {
      [Symbol.dispose]() {
        for (const address of addresses) occupied.delete(address);
      },
    };
  };
}

/** null: it was sent, and its answer is lost. */
async function sendComset(
  { session }: Device,
  wanted: { address: number; baudRate: number },
  asking: Omit<Asking, 'class'>,
): Promise<Readdressed['answered']> {
  try {
    const reply = await session.ask({ kind: 'COMSET', ...wanted }, { class: 'settings', ...asking });
    return reply.kind === 'COM' ? { address: reply.address, baudRate: reply.baudRate } : null;
  } catch (error) {
    const isUnknown = error instanceof DriverError && ['OUTCOME_UNKNOWN', 'BAD_REPLY'].includes(error.code);
    if (isUnknown && !asking.signal.aborted) return null;
    throw error;
  }
}
