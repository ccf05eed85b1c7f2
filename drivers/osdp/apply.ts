/**
 * Puts settings in force. A device of ours takes them whole by our own message. Of others the standard has no settings:
 * which relay is closed and for how long is said in each OUT, so the driver keeps that, and refuses the rest.
 */
import { isDeepStrictEqual } from 'node:util';
import { DriverError } from '../contract/driver.ts';
import type { Rs485Applied, Rs485Apply, Rs485Settings } from '../contract/settings.ts';
import type { Device } from './device.ts';
import { askVendor } from './vendor-requests.ts';

export async function applySettings(
  { settings, settingsVersion }: Rs485Apply,
  device: Device,
  { deadline, signal }: { deadline: number; signal: AbortSignal },
): Promise<Rs485Applied> {
  const { state, session } = device;
  const refusal = refusalOf(settings, state.outputCount() ?? 0, state.isOurs());
  if (refusal !== undefined) throw new DriverError('REFUSED', refusal);
  if (state.isOurs()) {
    const request = { kind: 'writeSettings', settings, settingsVersion } as const;
    const reported = await askVendor(session, request, 'settings', { class: 'settings', deadline, signal });
    if (reported.settingsVersion !== settingsVersion || !isDeepStrictEqual(reported.settings, settings))
      throw new DriverError('BAD_REPLY', 'the device acknowledged the settings, and shows others');
    state.madeKnown(reported);
  } else state.keep(settings, settingsVersion);
  device.report();
  return { reportedSettingsVersion: settingsVersion };
}

function refusalOf(settings: Rs485Settings, outputs: number, isOurs: boolean): string | undefined {
  const { relayIndex, useInputPinMemory } = settings;
  if (relayIndex !== null && relayIndex >= outputs)
    return `the device has ${outputs === 0 ? 'no outputs' : `outputs 0 to ${outputs - 1}`}: relayIndex cannot be ${relayIndex}`;
  if (useInputPinMemory && !isOurs)
    return 'the device cannot remember activations of its inputs: useInputPinMemory must be false';
  return undefined;
}
