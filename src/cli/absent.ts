/** Who is missing, by name: the status only counts, and its reader asks next which it is. */
import type { Status } from '../services/status/schema.ts';
import type { Client } from './client.ts';

/** Named at most; of more the list of the resource has the rest. */
const NAMED_MAX = 5;

export interface Absent {
  /** Ids. */
  encoders: readonly string[];
  /** Names, else ids. */
  zgates: readonly string[];
  /** Addresses by id of the bus. */
  buses: Readonly<Record<string, readonly number[]>>;
}

export const NONE_ABSENT: Absent = { encoders: [], zgates: [], buses: {} };

/** Asks only for the kinds of which some are missing. What cannot be read is left out: the counts stand without it. */
export async function absentOf({ encoders, zgates, buses }: Status, client: Client): Promise<Absent> {
  const list = async <Row>(path: string): Promise<Row[]> => {
    const answer = await client.call<{ items?: Row[] }>('GET', path).catch(() => undefined);
    return answer?.items ?? [];
  };
  const away = `connected=false&limit=${NAMED_MAX + 1}`;
  const lostEncoders =
    encoders.connected < encoders.registered
      ? await list<{ id: string }>(`/encoder?revoked=false&${away}`)
      : [];
  const lostGateways =
    zgates.connected < zgates.registered
      ? await list<{ deviceId: string; name: string | null }>(`/network/zgate?${away}`)
      : [];
  const polled = buses.some(({ silent }) => silent > 0) ? await list<Polled>('/network/rs485/buses') : [];
  return {
    encoders: lostEncoders.map(({ id }) => id),
    zgates: lostGateways.map(({ name, deviceId }) => name ?? deviceId),
    buses: Object.fromEntries(polled.map(({ id, devices }) => [id, silentOf(devices)])),
  };
}

interface Polled {
  id: string;
  devices: { address: number; alive: boolean }[];
}

export function silentOf(devices: Polled['devices']): number[] {
  return devices.filter(({ alive }) => !alive).map(({ address }) => address);
}

/** "; silent: 17, 20 and more", or nothing. */
export function named(what: string, who: readonly (string | number)[] = []): string {
  const more = who.length > NAMED_MAX ? ' and more' : '';
  return who.length === 0 ? '' : `; ${what}: ${who.slice(0, NAMED_MAX).join(', ')}${more}`;
}
