/** Doors and their relays as they were read last: what closes a door is carried out also while the database cannot be read. */
import { openLastRead } from '../../platform/database/last-read.ts';
import type { Relay } from '../rs485/relays.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** Both throw when it was never read and cannot be. */
export interface LastReadDoors {
  door(doorId: string): DoorRow | undefined;
  relay(doorId: string): Relay | undefined;
}

export function openLastReadDoors(table: DoorTable, rs485: Pick<Rs485, 'relay'>): LastReadDoors {
  return {
    door: openLastRead((doorId) => table.door.get(doorId)),
    relay: openLastRead((doorId) => rs485.relay(doorId)),
  };
}
