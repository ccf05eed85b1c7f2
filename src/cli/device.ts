/** An RS-485 device as people name it on the command line. */
import type { Client } from './client.ts';
import { CommandFailed } from './shell.ts';

export interface Found {
  deviceId: string;
  hwId: string;
}

/** By its deviceId or hwId. Throws CommandFailed. */
export async function deviceNamed(device: string, client: Client): Promise<Found> {
  const { items } = await client.call<{ items: Found[] }>(
    'GET',
    `/network/rs485?limit=100&name=${encodeURIComponent(device)}`,
  );
  const exact = items.filter(({ deviceId, hwId }) => deviceId === device.toLowerCase() || hwId === device);
  const [one, other] = exact;
  if (one && !other) return one;
  throw new CommandFailed(
    one
      ? `More than one device has the hwId ${plain(device)}: name its deviceId.`
      : `There is no device ${plain(device)}: gatehouse bus scan BUS shows the hwIds of a bus.`,
  );
}

/** What a device says of itself may be anything. */
export const plain = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '?');
