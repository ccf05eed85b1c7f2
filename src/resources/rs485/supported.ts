/** What a device that is known cannot carry is refused when it is asked for, not stored and refused by the device later. */
import { PINS, type Rs485Carries } from '../../../drivers/contract/settings.ts';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import type { Wanted } from './schema.ts';

/**
 * `carries`: as the device, or the profile of its product, says; undefined: not known yet, and anything may be wanted. What
 * is wanted already stays: only what this edit adds is refused. Throws NOT_SUPPORTED.
 */
export function refuseUnsupported(before: Wanted, after: Wanted, carries: Rs485Carries | undefined): void {
  if (!carries) return;
  const details = [...pinFaults(before, after, carries), ...fieldFaults(before, after, carries)].map(
    ([path, message]): ErrorDetail => ({ path, code: 'NOT_SUPPORTED', message }),
  );
  if (details.length === 0) return;
  const [first] = details;
  throw new GatehouseError(
    'NOT_SUPPORTED',
    `Nothing was changed: this device cannot carry ${details.map(({ path }) => path).join(', ')} (${first?.message}).`,
    { details },
  );
}

type Fault = readonly [path: string, message: string];

function pinFaults(before: Wanted, after: Wanted, { pins }: Rs485Carries): Fault[] {
  return PINS.filter((pin) => after.ioPins[pin] && !before.ioPins[pin] && !pins.includes(pin)).map((pin) => [
    `/ioPins/${pin}`,
    `the device has no ${pin}`,
  ]);
}

function fieldFaults(before: Wanted, after: Wanted, carries: Rs485Carries): Fault[] {
  const { relays, pinMemory, unlockMaxMilliseconds } = carries;
  const isNew = (field: 'relayIndex' | 'unlockDurationMilliseconds' | 'useInputPinMemory') =>
    after[field] !== before[field];
  const faults: Fault[] = [];
  const { relayIndex, unlockDurationMilliseconds: unlock } = after;
  if (isNew('relayIndex') && relayIndex !== null && relayIndex >= relays)
    faults.push(['/relayIndex', relays === 0 ? NO_RELAY : `expected ${relays - 1} at most, or null`]);
  if (
    isNew('unlockDurationMilliseconds') &&
    unlock !== null &&
    (relays === 0 || unlock > unlockMaxMilliseconds)
  )
    faults.push([
      '/unlockDurationMilliseconds',
      relays === 0 ? NO_RELAY : `expected ${unlockMaxMilliseconds} at most`,
    ]);
  if (isNew('useInputPinMemory') && after.useInputPinMemory && !pinMemory)
    faults.push(['/useInputPinMemory', 'the device does not remember activations of its inputs']);
  return faults;
}

const NO_RELAY = 'the device has no relay that it closes for a time';
