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

export interface StoredSiteOptions {
  doors?: number;
  /** Of the first of the doors, whose access points follow each other. */
  accessPointId?: number;
  /** RS-485 devices; they are the same ones in each import. */
  devices?: number;
}

/** Imports it; returns the paths of the doors. */
export async function storeSite(daemon: Daemon, options: StoredSiteOptions = {}): Promise<string[]> {
  const { doors: ids, document } = drawSite(options);
  await daemon.importSite(document);
  return ids.map((id) => `/access/doors/${id}`);
}

/** The document of its import, and the ids of its doors. */
export function drawSite(options: StoredSiteOptions) {
  const { doors: count = DOORS, accessPointId = 1, devices = DEVICES } = options;
  const ids = Array.from({ length: count }, () => randomUUID());
  const day = { days: ['mon', 'tue', 'wed', 'thu', 'fri'], start: '08:00', end: '18:30' };
  const document = {
    groups: Array.from({ length: GROUPS }, (_, index) => ({ id: `floor-${index}`, name: `Floor ${index}` })),
    schedules: [{ id: 'office', intervals: [day] }],
    templates: [{ id: 'room', version: 1, onlineEnabled: true, standOpenAllowed: true, type: 'room' }],
    doors: ids.map((id, index) => ({
      id,
      accessPointId: accessPointId + index,
      name: `Room ${accessPointId + index}`,
      number: accessPointId + index,
      groupId: `floor-${index % GROUPS}`,
      pmsId: `${accessPointId + index}`,
      mac: hex(accessPointId + index, 16),
      scheduleId: 'office',
      templateId: 'room',
      connectionType: 'zigbee',
      options: {
        accessInternal: {
          doors: Array.from({ length: NEIGHBOURS }, (_, step) => ({
            id: ids[(index + step + 1) % count],
            type: 'room',
          })),
          interval: { start: 360, end: 1_380 },
        },
      },
    })),
    rs485: Array.from({ length: devices }, (_, index) => ({
      deviceId: randomUUID(),
      bus: 'bus-1',
      hwId: `io-${index}`,
      name: `Gate ${index}`,
      relayIndex: 0,
      unlockDurationMilliseconds: 3_000,
      ioPins: { input0: true, output0: true },
    })),
  };
  return { doors: ids, document };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
