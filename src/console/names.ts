/** What doors, encoders, devices and gateways are called, for pages that would else show their ids. */
import { signal } from '@preact/signals';
import type { Encoder } from '../resources/encoders/schema.ts';
import type { Rs485Device } from '../resources/rs485/schema.ts';
import type { Zgate } from '../resources/zgates/schema.ts';
import type { Token } from '../services/auth/schema.ts';
import { mayDo, readAll } from './api.ts';
import { doorName, readAllDoors, WIRING_READERS } from './doors-list.ts';
import { useRead } from './use-read.ts';

/** By kind and id, as the audit names its objects, such as door/ID. */
const names = signal<ReadonlyMap<string, string>>(new Map());
/** Names change rarely. */
const READ_MS = 120_000;

export function useNames(): void {
  useRead(readNames, { everyMs: READ_MS });
}

async function readNames(): Promise<void> {
  const seesWiring = mayDo(...WIRING_READERS);
  const [listed, encoders, devices, gateways, tokens] = await Promise.all([
    readAllDoors(),
    readAll<Encoder>('/encoder'),
    seesWiring ? readAll<Rs485Device>('/network/rs485') : [],
    seesWiring ? readAll<Zgate>('/network/zgate') : [],
    mayDo('service-tool') ? readAll<Token>('/tokens') : [],
  ]);
  names.value = new Map([
    ...listed.map((door) => [`door/${door.id}`, doorName(door)] as const),
    ...encoders.map(({ id, name }) => [`encoder/${id}`, name ?? id] as const),
    ...devices.map(({ deviceId, name, hwId }) => [`rs485/${deviceId}`, name ?? hwId] as const),
    ...gateways.map(({ deviceId, name, hwId }) => [`zgate/${deviceId}`, name ?? hwId ?? deviceId] as const),
    ...tokens.map(({ id, label }) => [`token/${id}`, label] as const),
  ]);
}

export const nameOfDoor = (id: string): string => names.value.get(`door/${id}`) ?? id;

/** An object of the audit (door/ID) or the source of an event (doors/ID) by its name, where it has one. */
export function named(reference: string): string {
  const [kind = '', id = '', ...rest] = reference.split('/');
  const singular = kind === 'rs485' ? kind : kind.replace(/s$/, '');
  const name = names.value.get(`${singular}/${id}`);
  return name === undefined ? reference : [name, ...rest].join(' · ');
}
