/** Opens a relay before its pulse is over. The relay is watched to the end of its time all the same (relay-watch.ts). */
import type { Bus } from '../bus/bus.ts';
import { DriverError } from '../contract/driver.ts';
import type { Mutex } from '../rs485/mutex.ts';
import type { Device } from './device.ts';
import { write } from './exchanges.ts';
import type { LivePulses } from './live-pulses.ts';
import { sent } from './orders.ts';
import type { RelayWatch } from './relay-watch.ts';

const OFF_ATTEMPTS = 3;

export interface EndPulseOptions {
  device: Device;
  bus: Pick<Bus, 'exchange'>;
  live: LivePulses;
  relays: Pick<RelayWatch, 'settled'>;
  mutex: Mutex;
}

/** Throws a DriverError; REFUSED: the product has no way to do so. */
export type EndPulse = (relay: number, deadline: number, signal: AbortSignal) => Promise<void>;

export function openEndPulse({ device, bus, live, relays, mutex }: EndPulseOptions): EndPulse {
  const { unit, profile } = device;
  const { outputs, pulse, product } = profile;
  return (relay, deadline, signal) =>
    mutex(async () => {
      if (outputs?.table !== 'coil' || pulse?.way === 'block')
        throw new DriverError('REFUSED', `${product} has no way to open a relay before its pulse is over`);
      if (!device.connected()) throw new DriverError('DEVICE_OFFLINE', device.absence());
      const off = write(unit, { functionCode: 5, address: outputs.address + relay, value: false });
      const failure = await sent(bus, off, { class: 'off', deadline, attempts: OFF_ATTEMPTS, signal });
      if (failure) throw failure;
      live.ended(relay);
      relays.settled(relay);
    }, signal);
}
