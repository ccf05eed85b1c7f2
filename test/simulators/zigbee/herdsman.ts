/** zigbee-herdsman as a host of a simulated gateway: unmodified, one at a time in a process. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Controller, setLogger } from 'zigbee-herdsman';

const quiet = { debug() {}, info() {}, warning() {}, error() {} };

export interface HostOptions {
  port: string;
  /** Where it keeps its database and its backup. */
  folder: string;
  channel?: number;
  accept?: (ieee: string) => boolean;
}

export type Host = Controller;
export const EXTENDED_PAN_ID = [1, 2, 3, 4, 5, 6, 7, 8];
export const NETWORK_KEY = [...Array(16).keys()].map((byte) => byte * 3 + 1);
export const PAN_ID = 0x1a62;

/** Not started yet. Stopped when the test ends. */
export function openHost({ port, folder, channel = 15, accept }: HostOptions): Host {
  setLogger(quiet);
  const host = new Controller({
    network: {
      ...{ panID: PAN_ID, extendedPanID: EXTENDED_PAN_ID, channelList: [channel] },
      networkKey: NETWORK_KEY,
    },
    serialPort: { path: port, adapter: 'zstack' },
    databasePath: join(folder, 'database.db'),
    databaseBackupPath: join(folder, 'database.db.backup'),
    backupPath: join(folder, 'coordinator_backup.json'),
    adapter: { disableLED: false },
    ...(accept && { acceptJoiningDeviceHandler: async (ieee: string) => accept(ieee) }),
  });
  onTestFinished(() => host.stop().catch(() => undefined));
  return host;
}

/** What the host tells, by the names of its events. */
export function listen(host: Host): { name: string; ieee: string | undefined; data: unknown }[] {
  const heard: { name: string; ieee: string | undefined; data: unknown }[] = [];
  const names = ['deviceJoined', 'deviceInterview', 'deviceAnnounce', 'deviceLeave', 'message'] as const;
  for (const name of names)
    host.on(name, (told: object) => {
      const { device, ieeeAddr, type, status, cluster, data } = told as {
        device?: { ieeeAddr: string };
        ieeeAddr?: string;
        type?: string;
        status?: string;
        cluster?: string;
        data?: unknown;
      };
      heard.push({
        name: type ?? (status === undefined ? name : `${name}:${status}`),
        ieee: (device?.ieeeAddr ?? ieeeAddr)?.slice(2),
        data: cluster === undefined ? undefined : { cluster, data },
      });
    });
  return heard;
}
