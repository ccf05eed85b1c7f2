/** What a bench stores before it measures: the doors of a large hotel, with a catalogue and RS-485 devices. */
import { randomUUID } from 'node:crypto';
import type { Daemon } from '../simulators/daemon.ts';

export const DOORS = 1_000;
const DEVICES = 32;
const GROUPS = 20;
/** Other doors whose keys open a door. */
const NEIGHBOURS = 4;

/** Configuration of a site that has it. */
export const WIRING = { links: [{ id: 'bus-1', protocol: 'loopback' as const }] };

/** Imports it; returns the paths of the doors. */
export async function bringEstate(daemon: Daemon): Promise<string[]> {
  const ids = Array.from({ length: DOORS }, () => randomUUID());
  const day = { days: ['mon', 'tue', 'wed', 'thu', 'fri'], start: '08:00', end: '18:30' };
  const document = {
    groups: Array.from({ length: GROUPS }, (_, index) => ({ id: `floor-${index}`, name: `Floor ${index}` })),
    schedules: [{ id: 'office', intervals: [day] }],
    templates: [{ id: 'room', version: 1, onlineEnabled: true, standOpenAllowed: true, type: 'room' }],
    doors: ids.map((id, index) => ({
      id,
      accessPointId: index + 1,
      name: `Room ${index + 1}`,
      number: index + 1,
      groupId: `floor-${index % GROUPS}`,
      pmsId: `${index + 1}`,
      mac: hex(index + 1, 16),
      scheduleId: 'office',
      templateId: 'room',
      connectionType: 'zigbee',
      options: {
        accessInternal: {
          doors: Array.from({ length: NEIGHBOURS }, (_, step) => ({
            id: ids[(index + step + 1) % DOORS],
            type: 'room',
          })),
          interval: { start: 360, end: 1_380 },
        },
      },
    })),
    rs485: Array.from({ length: DEVICES }, (_, index) => ({
      deviceId: randomUUID(),
      bus: 'bus-1',
      hwId: `io-${index}`,
      name: `Gate ${index}`,
      relayIndex: 0,
      unlockDurationMilliseconds: 3_000,
      ioPins: { input0: true, output0: true },
    })),
  };
  const { status, body } = await daemon.callLocally('POST', '/local/import', { document });
  if (status !== 200) throw new Error(`the estate was answered ${status}: ${JSON.stringify(body)}`);
  return ids.map((id) => `/access/doors/${id}`);
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
