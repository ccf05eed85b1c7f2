import { EventEmitter, once } from 'node:events';
import { expect, it } from 'vitest';
import type { Models } from 'zigbee-herdsman';
import { hearingRestart } from './ota-restart.ts';

/** A lock that announces itself as it is said, in an update by a library that listens as zigbee-herdsman does (updateOta). */
function openUpdate(...frames: ('end' | 'announce')[]) {
  const device = new EventEmitter();
  const progress: number[] = [];
  const updated = hearingRestart(
    device as unknown as Models.Device,
    (percent) => void progress.push(percent),
    async (onProgress) => {
      for (const frame of frames)
        if (frame === 'end') device.emit('message', { type: 'commandUpgradeEndRequest' });
        else device.emit('deviceAnnounce');
      // The answer was sent.
      await Promise.resolve();
      onProgress(100, 0);
      await once(device, 'deviceAnnounce');
      return 'updated';
    },
  );
  return { device, progress, updated };
}

it('is heard where the lock announces itself before the library listens for it', async () => {
  const { device, progress, updated } = openUpdate('end', 'announce');
  expect(await updated).toBe('updated');
  expect(progress).toEqual([100]);
  expect(device.eventNames()).toEqual([]);
});

it('is waited for where the lock has announced itself before it had all of the firmware', async () => {
  const { device, progress, updated } = openUpdate('announce', 'end');
  let isOver = false;
  void updated.then(() => {
    isOver = true;
  });
  await expect.poll(() => progress).toEqual([100]);
  expect(isOver).toBe(false);
  device.emit('deviceAnnounce');
  expect(await updated).toBe('updated');
});
