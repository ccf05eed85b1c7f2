/**
 * Changes of the key or the address of a device, one at a time at each address.
 *
 * A device is given its key within a window of time that a technician opened. An eavesdropper on the wire learns the key then (annex
 * D.1.1), because it is sent under the default key SCBK-D, which is public. Another address or baud rate is given by osdp_COMSET, whose
 * reply still comes from the old place; when that is lost no one can know, so both places are asked.
 */
import { busWarning } from '../contract/bus-warnings.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Readdress, Readdressed } from '../contract/osdp.ts';
import type { Pair, Paired } from '../contract/rs485.ts';
import type { Until } from '../rs485/link.ts';
import type { Member, Registry } from '../rs485/registry.ts';
import { type AddressTable, assertSameSecurity } from './address-table.ts';
import type { Device } from './device.ts';
import type { OsdpOptions } from './options.ts';
import { isSameKey, type Policy, provenKey } from './policy.ts';
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
        throw new DriverError('INVALID_COMMAND', `the configuration says secure: off for address ${address}`);
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
          `something answers at address ${address} already: nothing was changed`,
        );
      const until = AbortSignal.any([signal, closing]);
      const answered = await sendComset(device, { address, baudRate }, clock.monotonic() + COMSET_MS, until);
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
        `a device at address ${busy} is being paired already, or given an address`,
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
  deadline: number,
  signal: AbortSignal,
): Promise<Readdressed['answered']> {
  try {
    const reply = await session.ask({ kind: 'COMSET', ...wanted }, { class: 'settings', deadline, signal });
    return reply.kind === 'COM' ? { address: reply.address, baudRate: reply.baudRate } : null;
  } catch (error) {
    const isUnknown = error instanceof DriverError && ['OUTCOME_UNKNOWN', 'BAD_REPLY'].includes(error.code);
    if (isUnknown && !signal.aborted) return null;
    throw error;
  }
}

/**
 * Resolves once the device has proved that it has the key. Throws REFUSED or NO_REPLY: it does not have the key;
 * OUTCOME_UNKNOWN: it may have it, and the key is tried from now on.
 */
export async function pairDevice(
  device: Device,
  {
    key,
    milliseconds,
    clock,
    signal,
    hasKey,
    mayHave,
  }: {
    key: Uint8Array;
    milliseconds: number;
    clock: Clock;
    signal: AbortSignal;
    /** The device was given a key before. */
    hasKey: boolean;
    /** The window is over, and the device may have the key. */
    mayHave(): void;
  },
): Promise<Paired> {
  assertNoSession(device, key);
  const over = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refused = () => reject(failure(device, hasKey));
  device.onPairing({
    paired: resolve,
    contested: refused,
    refused,
    keyed: () => reject(keepsItsKey(hasKey)),
  });
  device.beginPairing({ secure: 'pairing', key });
  try {
    const closed = clock.sleep(milliseconds, AbortSignal.any([signal, over.signal])).then(() => {
      throw failure(device, hasKey);
    });
    await Promise.race([promise, closed]);
    device.setPolicy({ kind: 'required', key });
  } catch (error) {
    // Whatever is wrong now, and also when the window was closed by hand: the KEYSET may have arrived.
    if (!device.session.state().gaveKey) throw error;
    mayHave();
    throw given(device.address, error);
  } finally {
    over.abort();
    device.onPairing(undefined);
    device.endPairing();
  }
  const hwId = device.state.hwId();
  if (hwId === undefined) throw new DriverError('BAD_REPLY', 'the device does not say who it is');
  return { hwId };
}

function given(address: number, cause: unknown): DriverError {
  return new DriverError(
    'OUTCOME_UNKNOWN',
    `the device at address ${address} was sent its key and has not proved it: the key is kept, and the device is tried under it from now on. If it stays without a key, put it into its install mode, and pair it again`,
    { cause },
  );
}

function failure(device: Device, hasKey: boolean): DriverError {
  const { address } = device;
  const advice = (code: 'ADDRESS_TWICE' | 'ADDRESS_UNREADABLE') => busWarning(code, { address }).message;
  const alarms = device.alarms();
  const has = (...names: (typeof alarms)[number][]) => names.some((name) => alarms.includes(name));
  if (has('duplicateAddress'))
    return new DriverError('REFUSED', `${advice('ADDRESS_TWICE')} No key was given to either`);
  if (has('keyRefused')) return new DriverError('REFUSED', 'the device does not take the key it was given');
  if (has('wrongKey', 'downgrade')) return keepsItsKey(hasKey);
  if (device.isGarbled())
    return new DriverError('NO_REPLY', `${advice('ADDRESS_UNREADABLE')} No key was given`);
  if (device.isGone())
    return new DriverError(
      'NO_REPLY',
      `no one answers at address ${address}: look at the address that is set at the device, its power and its wires`,
    );
  return new DriverError(
    'NO_REPLY',
    `the device at address ${address} did not take its key while the window was open`,
  );
}

function keepsItsKey(hasKey: boolean): DriverError {
  return new DriverError(
    'REFUSED',
    hasKey
      ? 'the device has a key already, and takes no other: if it works, leave it; else put it into its install mode, and pair it again'
      : 'the device has a key already that is not known here: put it into its install mode, and pair it again',
  );
}

/** Throws REFUSED: the window would end a session that works. */
function assertNoSession(device: Device, key: Uint8Array): void {
  const proven = provenKey(device.session.state());
  if (!proven || isSameKey(proven, key)) return;
  throw new DriverError(
    'REFUSED',
    `the device at address ${device.address} has a key and is in a secure session under it: nothing was changed. To give it another key, switch the device off, wait until it is shown as offline, pair it again, and switch it on in its install mode while the window is open`,
  );
}
