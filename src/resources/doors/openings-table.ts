/** The only SQL over doors that stand open, locks that have to be locked, and the PINs for that. Part of table.ts. */
import type { Prepare } from '../../platform/database/database.ts';

/** Who wanted it. */
interface ActorColumns {
  actor_id: string;
  actor: string;
  correlation_id: string;
}

export type StandOpenPhase = 'waiting' | 'sent' | 'open' | 'lost';

/** What is left of the time, and by which clocks that was known (stand-open-time.ts). */
export interface KeptTime {
  /** Epoch milliseconds, as is `kept_at`. */
  until_at: number;
  left_ms: number;
  kept_at: number;
  kept_synchronised: number;
  /** Milliseconds. */
  kept_monotonic: number;
  boot_id: string | null;
}

export interface StandOpenRow extends ActorColumns, KeptTime {
  door_id: string;
  mac: string | null;
  gateway_id: string | null;
  network_id: string | null;
  device_id: string | null;
  /** The relay of device_id that is held, and its hardware, as they were when it was ordered. */
  bus: string | null;
  hw_id: string | null;
  relay_index: number | null;
  phase: StandOpenPhase;
  /** Epoch milliseconds, as are the next. */
  requested_at: number;
  since: number | null;
}

export type ClosingPurpose = 'unlock' | 'standOpen';

export interface ClosingRow extends ActorColumns {
  mac: string;
  door_id: string;
  gateway_id: string | null;
  network_id: string | null;
  purpose: ClosingPurpose;
  reason: string;
  openings: number;
  uncertain: number;
  raised: number;
  /** Epoch milliseconds. */
  since: number;
}

type Value = string | number | null;
const STAND_OPEN_COLUMNS = [
  'door_id',
  'mac',
  'gateway_id',
  'network_id',
  'device_id',
  'bus',
  'hw_id',
  'relay_index',
  'phase',
  'requested_at',
  'actor_id',
  'actor',
  'correlation_id',
  'since',
  'until_at',
  'left_ms',
  'kept_at',
  'kept_synchronised',
  'kept_monotonic',
  'boot_id',
] as const satisfies (keyof StandOpenRow)[];
const CLOSING_COLUMNS = [
  'mac',
  'door_id',
  'gateway_id',
  'network_id',
  'purpose',
  'reason',
  'uncertain',
  'since',
  'actor_id',
  'actor',
  'correlation_id',
] as const satisfies (keyof ClosingRow)[];
const WHO = ['actor_id', 'actor', 'correlation_id'] as const satisfies (keyof ActorColumns)[];
const marks = (columns: readonly string[]) => columns.map(() => '?').join(', ');

export function openingStatements(prepare: Prepare['prepare']) {
  return { ...standOpenStatements(prepare), ...closingStatements(prepare), ...pinStatements(prepare) };
}

function standOpenStatements(prepare: Prepare['prepare']) {
  const replaced = STAND_OPEN_COLUMNS.filter((column) => column !== 'door_id');
  const store = prepare<Value[]>(
    `INSERT INTO stand_open (${STAND_OPEN_COLUMNS.join(', ')}) VALUES (${marks(STAND_OPEN_COLUMNS)})
     ON CONFLICT (door_id) DO UPDATE SET ${replaced.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  );
  return {
    standOpens: prepare<[], StandOpenRow>('SELECT * FROM stand_open'),
    standOpen: prepare<[string], StandOpenRow>('SELECT * FROM stand_open WHERE door_id = ?'),
    storeStandOpen(row: StandOpenRow): void {
      store.run(...STAND_OPEN_COLUMNS.map((column) => row[column]));
    },
    deleteStandOpen: prepare<[string]>('DELETE FROM stand_open WHERE door_id = ?'),
    /** By the former meaning of standOpenEnabled. */
    stoodOpenBySetting: prepare<
      [],
      { id: string; mac: string | null; gateway_id: string | null; network_id: string | null }
    >('SELECT id, mac, gateway_id, network_id FROM door WHERE stood_open_by_setting = 1'),
    forgetStoodOpen: prepare<[string]>('UPDATE door SET stood_open_by_setting = 0 WHERE id = ?'),
  };
}

function closingStatements(prepare: Prepare['prepare']) {
  /** A lock that stands open stays one: a plain lock command would lock it, and not end that. Who wanted it is of the purpose that is kept. */
  const store = prepare<Value[]>(
    `INSERT INTO lock_closing (${CLOSING_COLUMNS.join(', ')}) VALUES (${marks(CLOSING_COLUMNS)})
     ON CONFLICT (mac) DO UPDATE SET door_id = excluded.door_id, gateway_id = excluded.gateway_id,
       network_id = excluded.network_id, purpose = iif(purpose = 'standOpen', purpose, excluded.purpose),
       reason = excluded.reason, openings = openings + 1, uncertain = max(uncertain, excluded.uncertain),
       ${WHO.map((column) => `${column} = iif(purpose = 'standOpen' AND excluded.purpose <> 'standOpen', ${column}, excluded.${column})`).join(', ')}`,
  );
  return {
    closings: prepare<[], ClosingRow>('SELECT * FROM lock_closing'),
    closing: prepare<[string], ClosingRow>('SELECT * FROM lock_closing WHERE mac = ?'),
    storeClosing(row: Omit<ClosingRow, 'openings' | 'raised'>): void {
      store.run(...CLOSING_COLUMNS.map((column) => row[column]));
    },
    setClosingCertain: prepare<[string]>('UPDATE lock_closing SET uncertain = 0 WHERE mac = ?'),
    setClosingRaised: prepare<[string]>('UPDATE lock_closing SET raised = 1 WHERE mac = ?'),
    /** As it was when the lock command was sent. */
    deleteClosing: prepare<[string, number]>('DELETE FROM lock_closing WHERE mac = ? AND openings = ?'),
  };
}

function pinStatements(prepare: Prepare['prepare']) {
  return {
    pin: prepare<[string], { sealed: Uint8Array }>('SELECT sealed FROM lock_pin WHERE mac = ?'),
    pins: prepare<[], { mac: string; sealed: Uint8Array }>('SELECT mac, sealed FROM lock_pin'),
    setPin: prepare<[string, Uint8Array]>(
      'INSERT INTO lock_pin (mac, sealed) VALUES (?, ?) ON CONFLICT (mac) DO UPDATE SET sealed = excluded.sealed',
    ),
    deletePin: prepare<[string]>('DELETE FROM lock_pin WHERE mac = ?'),
    /** Of locks that are at no door and need not be locked any more. */
    forgetPins: prepare<[]>(
      `DELETE FROM lock_pin WHERE NOT EXISTS (SELECT 1 FROM door WHERE door.mac = lock_pin.mac)
         AND NOT EXISTS (SELECT 1 FROM lock_closing WHERE lock_closing.mac = lock_pin.mac)
         AND NOT EXISTS (SELECT 1 FROM stand_open WHERE stand_open.mac = lock_pin.mac)`,
    ),
  };
}
