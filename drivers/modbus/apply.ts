/** Puts settings in force: the whole block in one write, then read back. */
import { isDeepStrictEqual } from 'node:util';
import type { Bus } from '../bus/bus.ts';
import { DriverError } from '../contract/driver.ts';
import type { Rs485Applied, Rs485Apply } from '../contract/settings.ts';
import type { Device } from './device.ts';
import { readRegisters, write } from './exchanges.ts';
import { blockOf, refusalOf, registersIn, registersOf } from './settings-block.ts';

/** The same block again is harmless. */
const ATTEMPTS = 3;

export async function applySettings(
  { settingsVersion, settings }: Rs485Apply,
  device: Device,
  bus: Pick<Bus, 'exchange'>,
  { deadline, signal }: { deadline: number; signal: AbortSignal },
): Promise<Rs485Applied> {
  const { unit, profile } = device;
  const refusal = refusalOf(profile, settings);
  if (refusal !== undefined) throw new DriverError('REFUSED', refusal);
  const block = blockOf(profile);
  if (!block) {
    device.applied(settings, settingsVersion, undefined);
    return { reportedSettingsVersion: settingsVersion };
  }
  const own = registersIn(device.image(), block);
  if (!own) throw new DriverError('DEVICE_OFFLINE', 'the settings of the device were not read yet');
  const values = registersOf(
    profile,
    { registers: own, image: device.image() },
    { settingsVersion, settings },
  );
  const order = { class: 'settings', deadline, attempts: ATTEMPTS } as const;
  await bus.exchange(write(unit, { functionCode: 16, address: block.address, values }), order, signal);
  const { address, quantity } = block;
  const read = await bus.exchange(readRegisters(unit, { functionCode: 3, address, quantity }), order, signal);
  if (!isDeepStrictEqual(read, values))
    throw new DriverError('BAD_REPLY', 'the device acknowledged the settings, and shows others');
  device.applied(settings, settingsVersion, read);
  return { reportedSettingsVersion: settingsVersion };
}
