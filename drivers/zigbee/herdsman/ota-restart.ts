/** The restart of a lock with its new firmware, which the library may miss. */
import type { Models } from 'zigbee-herdsman';
import type { Radio } from '../radio.ts';

type Progress = Parameters<Radio['update']>[2];

/**
 * The library begins to listen for the announcement of the lock once it has heard that its last answer was sent, and waits for 120 s. On a
 * busy machine the lock has restarted by then. So what was announced since the lock asked for that answer is said again when it listens.
 */
export async function hearingRestart<T>(
  device: Models.Device,
  progress: Progress,
  send: (progress: Progress) => Promise<T>,
): Promise<T> {
  let hasRestarted = false;
  const asked = ({ type }: { type: string }) => {
    if (type === 'commandUpgradeEndRequest') hasRestarted = false;
  };
  const announced = () => {
    hasRestarted = true;
  };
  device.on('message', asked);
  device.on('deviceAnnounce', announced);
  try {
    return await send((percent, left) => {
      progress(percent, left);
      // updateOta says so when its answer was sent, and listens in the same turn of the event loop (library-source.test.ts).
      if (percent === 100 && hasRestarted) queueMicrotask(() => device.emit('deviceAnnounce', { device }));
    });
  } finally {
    device.off('message', asked);
    device.off('deviceAnnounce', announced);
  }
}
