import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { Device } from './device.ts';
import { pairDevice } from './pairing.ts';

/** Takes no key, and knows whether its window is open. */
function silentDevice() {
  let isOpen = false;
  const device = {
    address: 0,
    session: { state: () => ({ stage: { kind: 'offline' }, options: { security: {} }, gaveKey: false }) },
    onPairing: () => {},
    alarms: () => [],
    isGarbled: () => false,
    isGone: () => true,
    beginPairing: () => {
      isOpen = true;
    },
    endPairing: () => {
      isOpen = false;
    },
  } as unknown as Device;
  return { device, isOpen: () => isOpen };
}

it.each([0, 90, -90, 27_000, -20_000])(
  'a pairing window lasts its time while the wall clock jumps by %d days',
  async (days) => {
    const clock = manualClock();
    const { device, isOpen } = silentDevice();
    const milliseconds = 20_000;
    const { signal } = new AbortController();
    const options = { key: new Uint8Array(16), milliseconds, clock, signal, hasKey: false };
    const outcome = pairDevice(device, { ...options, mayHave: () => {} }).catch((error: unknown) => error);
    clock.jumpWall(days * 86_400_000);
    await clock.advance(milliseconds - 1);
    expect(isOpen()).toBe(true);
    await clock.advance(1);
    expect(isOpen()).toBe(false);
    expect(await outcome).toMatchObject({ code: 'NO_REPLY' });
  },
);
