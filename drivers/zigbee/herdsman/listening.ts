/**
 * What the library says of its network, as events of the radio. It takes what others say of a device for a sign of it, too:
 * that it asked to join, or its address as its parent knows it.
 */
import type { Controller, Events } from 'zigbee-herdsman';
import type { RadioEvent } from '../radio.ts';
import { integer } from '../values.ts';
import { ieeeOf } from './device-of.ts';
import { located } from './doubts.ts';

interface Hearing {
  hear(event: RadioEvent): void;
  log(level: 'error', line: string): void;
}

/** `begun` is called once the library has read its database. */
export function listen(controller: Controller, { hear, log }: Hearing): { begun(): void } {
  const spoken = openSpoken();
  /** A listener that throws ends the process, or the handling of the frame. */
  const pass = (event: () => RadioEvent) => {
    try {
      hear(event());
    } catch (error) {
      log('error', `an event could not be taken in: ${error instanceof Error ? error.message : 'no reason'}`);
    }
  };
  controller.on('message', ({ device, endpoint, cluster, type, data, meta }: Events.MessagePayload) =>
    pass(() => ({
      kind: 'heard',
      ieee: ieeeOf(device.ieeeAddr),
      endpoint: endpoint.ID,
      cluster,
      type,
      tsn: meta.zclTransactionSequenceNumber,
      data,
    })),
  );
  controller.on('lastSeenChanged', ({ device, reason }: Events.LastSeenChangedPayload) => {
    const ieee = ieeeOf(device.ieeeAddr);
    if (reason === 'networkAddress' || reason === 'deviceAnnounce') located(device);
    const spoke = reason !== 'deviceJoined' && reason !== 'networkAddress';
    spoken.noted(device, spoke);
    // Its parent may have answered for it, or the coordinator itself.
    if (reason === 'networkAddress') return;
    pass(() => ({ kind: 'seen', ieee, lqi: integer(device.linkquality, 0, 255), spoke }));
    // The library emits `deviceJoined` for new devices only.
    if (reason === 'deviceJoined' && device.interviewState === 'SUCCESSFUL')
      pass(() => ({ kind: 'joinedAgain', ieee }));
  });
  controller.on('deviceNetworkAddressChanged', ({ device }: Events.DeviceNetworkAddressChangedPayload) =>
    pass(() => ({ kind: 'readdressed', ieee: ieeeOf(device.ieeeAddr) })),
  );
  controller.on('deviceInterview', ({ device, status }: Events.DeviceInterviewPayload) => {
    if (status === 'started') return;
    pass(() => ({ kind: 'interviewed', ieee: ieeeOf(device.ieeeAddr), successful: status === 'successful' }));
  });
  controller.on('deviceLeave', ({ ieeeAddr }: Events.DeviceLeavePayload) =>
    pass(() => ({ kind: 'left', ieee: ieeeOf(ieeeAddr) })),
  );
  controller.on('adapterDisconnected', () => pass(() => ({ kind: 'disconnected' })));
  return {
    begun() {
      for (const device of controller.getDevicesIterator()) spoken.noted(device, true);
    },
  };
}

/** When each device spoke last, which the library stores, is what it was before somebody spoke of it. */
function openSpoken() {
  const times = new WeakMap<object, number | undefined>();
  return {
    noted(device: { lastSeen?: number | undefined }, spoke: boolean): void {
      if (spoke) times.set(device, device.lastSeen);
      else (device as { _lastSeen?: number | undefined })._lastSeen = times.get(device);
    },
  };
}
