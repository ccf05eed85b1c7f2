/**
 * Doubts about the network address of a device. Any device can ask to join in the name of another one, without a key and
 * with an address of its choice, and the library takes that address over. The doubt is kept with the device, and stored
 * before the address is: a process that is killed meanwhile, or later, forgets no doubt of an address that it has stored.
 */
import type { MetaEntry } from './device-meta.ts';
import type { AddressClaim } from './handlers.ts';

const DOUBT = 'unlocated';

/** Of the library's Controller. */
interface Devices<Device> {
  getDevicesIterator(predicate: (device: Device) => boolean): Iterable<Device>;
}

/**
 * A device says, or another says of it, that it has this network address: known or not, and also one that is turned away, which
 * hears what is sent there until it has left. Any other device that is taken to be there is not certain to be.
 */
export function doubtOthersAt<Device extends MetaEntry & { ieeeAddr: string; networkAddress: number }>(
  controller: Devices<Device>,
  { ieee, nwk }: AddressClaim,
): Device[] {
  const others = [
    ...controller.getDevicesIterator((other) => other.networkAddress === nwk && other.ieeeAddr !== ieee),
  ];
  for (const other of others) doubt(other);
  return others;
}

/** It asks to join, or somebody does in its name. Undefined: it is not known, and is asked what it is. */
export function doubt(device: MetaEntry | undefined): void {
  if (!device || isDoubted(device)) return;
  device.meta[DOUBT] = true;
  device.save();
}

/**
 * Something that comes under the key of the network names its IEEE address beside its network address. The library says
 * so first, and takes that address over then.
 */
export function located(device: MetaEntry): void {
  if (!isDoubted(device)) return;
  queueMicrotask(() => {
    delete device.meta[DOUBT];
    device.save();
  });
}

export const isDoubted = ({ meta }: Pick<MetaEntry, 'meta'>): boolean => meta[DOUBT] === true;
