import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { listen } from './listening.ts';

const IEEE = '00158d0001000001';

function open() {
  const device = {
    ieeeAddr: `0x${IEEE}`,
    linkquality: 100,
    interviewState: 'SUCCESSFUL',
    meta: {},
    save() {},
    _lastSeen: 5,
  };
  Object.defineProperty(device, 'lastSeen', { get: () => device._lastSeen });
  const controller = Object.assign(new EventEmitter(), {
    getDevicesIterator: () => [device],
  });
  const { begun } = listen(controller as never, { hear() {}, log() {} });
  begun();
  return {
    device,
    /** As the library does. */
    says(reason: string, at: number): void {
      device._lastSeen = at;
      controller.emit('lastSeenChanged', { device, reason });
    },
  };
}

it('keeps when a device spoke itself, also where others speak of it', () => {
  const { device, says } = open();
  for (const reason of ['networkAddress', 'deviceJoined']) says(reason, 10);
  expect(device._lastSeen).toBe(5);
  says('messageEmitted', 20);
  expect(device._lastSeen).toBe(20);
  says('networkAddress', 30);
  expect(device._lastSeen).toBe(20);
  says('deviceAnnounce', 40);
  says('deviceJoined', 50);
  expect(device._lastSeen).toBe(40);
});
