/**
 * Gives a device another address or baud rate (osdp_COMSET), and looks where it answers then. Its reply
 * still comes from the old place; when that is lost no one can know, so both places are asked.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Readdress, Readdressed } from '../contract/osdp.ts';
import type { Device } from './device.ts';

export interface ReaddressOptions {
  clock: Clock;
  /** Of the bus. */
  baudRate: number;
  signal: AbortSignal;
  /** Monotonic milliseconds. */
  deadline: number;
  device: Device;
  /** Whether anybody answers at an address. */
  isTaken(address: number): Promise<boolean>;
  /** Polls this address too, as the device is spoken to, until disposed. */
  hold(address: number): Disposable;
  /** Where the device is connected. */
  whereabouts(): number | undefined;
  /** It is expected there from now on. */
  settled(address: number): void;
}

const COMSET_MS = 5_000;
/** A device may restart for it; its handshake takes some exchanges more. */
const SEARCH_MS = 15_000;
/** One that says that it has another rate now may go on as before all the same. */
const SEARCH_LEFT_MS = 3_000;
const LOOK_MS = 50;
const HIGHEST_ADDRESS = 126;

/** Throws a DriverError, and nothing has changed then. */
export async function readdress(
  { address, baudRate }: Readdress,
  options: ReaddressOptions,
): Promise<Readdressed> {
  const { device, clock, deadline, signal } = options;
  const before = device.address;
  if (address !== before && (await options.isTaken(address)))
    throw new DriverError('REFUSED', `something answers at address ${address} already: nothing was changed`);
  const asking = { class: 'settings', deadline: clock.monotonic() + COMSET_MS, signal } as const;
  const answered = await sendComset(device, { address, baudRate }, asking);
  device.restart();
  using held = new DisposableStack();
  const places = new Set([address, answered?.address ?? address].filter((place) => place !== before));
  for (const place of places) if (place <= HIGHEST_ADDRESS) held.use(options.hold(place));
  const hasLeft = answered !== null && answered.baudRate !== options.baudRate;
  const end = Math.min(deadline, clock.monotonic() + (hasLeft ? SEARCH_LEFT_MS : SEARCH_MS));
  while (options.whereabouts() === undefined && clock.monotonic() < end) await clock.sleep(LOOK_MS, signal);
  const found = options.whereabouts() ?? null;
  if (found !== null) options.settled(found);
  return { answered, found };
}

/** null: it was sent, and its answer is lost. */
async function sendComset(
  device: Device,
  wanted: { address: number; baudRate: number },
  asking: Parameters<Device['session']['ask']>[1],
): Promise<Readdressed['answered']> {
  try {
    const reply = await device.session.ask({ kind: 'COMSET', ...wanted }, asking);
    return reply.kind === 'COM' ? { address: reply.address, baudRate: reply.baudRate } : null;
  } catch (error) {
    const isUnknown = error instanceof DriverError && ['OUTCOME_UNKNOWN', 'BAD_REPLY'].includes(error.code);
    if (isUnknown && !asking.signal.aborted) return null;
    throw error;
  }
}
