/**
 * A device is given its key within a window of time that a technician opened. An eavesdropper on the wire learns the key then (annex
 * D.1.1), because it is sent under the default key SCBK-D, which is public.
 */
import { busWarning } from '../contract/bus-warnings.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Paired } from '../contract/rs485.ts';
import type { Device } from './device.ts';
import { isSameKey, provenKey } from './policy.ts';

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
  if (has('keyRefused'))
    return new DriverError(
      'REFUSED',
      'the device does not take the key it was given: put it into its install mode, and pair it again',
    );
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
    `the device at address ${address} did not take its key while the window was open: put it into its install mode, and pair it again`,
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
