/**
 * What a Zigbee gateway link is told and what it reports, beside settings (settings.ts: `applyChannels`,
 * `applyConfiguration`, GatewayReport, LockReport). A lock is named by its IEEE address, 16 lower-case hex digits.
 *
 * Commands (DriverCommand.kind, data → answer):
 *  - `unlock`      Unlock → Unlocked         actuates at most once; OUTCOME_UNKNOWN when nobody knows
 *  - `permitJoin`  PermitJoin → null         opens the join window, or closes it (seconds 0)
 *  - `removeLock`  RemoveLock → null         tells the lock to leave
 *  - `moveChannel` MoveChannel → ChannelsApplied   one attempt; locks follow
 *  - `networkMap`  {} → NetworkMap           asks every router, one by one
 *  - `updateLock`  UpdateLock → UpdatedLock  firmware from a file; progress by `firmware:<hwId>` reports. One that takes
 *      longer than a command may is given again while it gets on: the lock goes on where it was
 *
 * State reports: `gateway` · `device:<ieee>` (LockReport) · `firmware:<ieee>` (FirmwareProgress)
 * Events (DriverEvent.kind → data): `lockJoined` LockJoined · `lockLeft` LockLeft · `lockEvent` LockEvent ·
 *   `snapshot` Snapshot: kept encrypted, and given back in the options of the next start (ZgateStart)
 */
import { z } from 'zod';
import { channel } from './settings.ts';

const text = z.string().max(128);
export const ieeeAddress = z.string().regex(/^[0-9a-f]{16}$/);

export const unlock = z.strictObject({
  hwId: ieeeAddress,
  /** The lock relocks by itself after so long, where it can; null: as it is set. */
  relockSeconds: z.int().min(1).max(65_535).nullable(),
});
export type Unlock = z.infer<typeof unlock>;

export const unlocked = z.object({
  /**
   * confirmed: the lock reported that it is unlocked · accepted: it answered success, and no report came in time ·
   * jammed: it accepted, and reported that the bolt did not move
   */
  outcome: z.enum(['confirmed', 'accepted', 'jammed']),
});
export type Unlocked = z.infer<typeof unlocked>;

/** The longest a window can be by the standard (Zigbee 3.0, Mgmt_Permit_Joining_req: 0xFF would be for ever). */
export const PERMIT_JOIN_MAX_SECONDS = 254;
export const permitJoin = z.strictObject({
  seconds: z.int().min(0).max(PERMIT_JOIN_MAX_SECONDS),
  /** Who may join; empty: whoever asks. */
  allowed: z.array(ieeeAddress).max(256),
  /** Joiners with a key of their own (install code with its CRC, hex). */
  installCodes: z
    .array(z.strictObject({ hwId: ieeeAddress, code: z.string().regex(/^([0-9a-fA-F]{2}){8,18}$/) }))
    .max(256),
});
export type PermitJoin = z.infer<typeof permitJoin>;

export const removeLock = z.strictObject({ hwId: ieeeAddress });
export type RemoveLock = z.infer<typeof removeLock>;

export const moveChannel = z.strictObject({ channel });
export type MoveChannel = z.infer<typeof moveChannel>;

export const networkMap = z.object({
  nodes: z
    .array(z.object({ hwId: ieeeAddress, type: z.enum(['coordinator', 'router', 'endDevice', 'unknown']) }))
    .max(1_024),
  /** Who hears whom, and routes in use. */
  links: z
    .array(
      z.object({ from: ieeeAddress, to: ieeeAddress, lqi: z.int().min(0).max(255), isRoute: z.boolean() }),
    )
    .max(8_192),
  /** Routers that did not answer. */
  silent: z.array(ieeeAddress).max(1_024),
});
export type NetworkMap = z.infer<typeof networkMap>;

export const updateLock = z.strictObject({
  hwId: ieeeAddress,
  /** Absolute path of an OTA file on this host. */
  file: z.string().max(4_096),
});
export type UpdateLock = z.infer<typeof updateLock>;
export const updatedLock = z.object({ zigbeeFirmwareVersion: text.nullable() });
export type UpdatedLock = z.infer<typeof updatedLock>;

export const firmwareProgress = z.object({
  hwId: ieeeAddress,
  percent: z.number().min(0).max(100),
  remainingSeconds: z.number().min(0).nullable(),
});
export type FirmwareProgress = z.infer<typeof firmwareProgress>;

export const lockJoined = z.object({
  hwId: ieeeAddress,
  manufacturer: text.nullable(),
  model: text.nullable(),
  zigbeeFirmwareVersion: text.nullable(),
  capabilities: z.array(text).max(64),
});
export type LockJoined = z.infer<typeof lockJoined>;

export const lockLeft = z.object({ hwId: ieeeAddress });
export type LockLeft = z.infer<typeof lockLeft>;

/** A name, and never as many digits in a row as a PIN has. */
const word = z.string().regex(/^(?!.*[0-9]{4})[A-Za-z0-9]{1,64}$/);

/** Something a person would ask about. Never digits of a PIN. */
export const lockEvent = z.object({
  hwId: ieeeAddress,
  /** ZCL Door Lock: operation or programming event, alarm; door: its position sensor. */
  kind: z.enum(['operation', 'programming', 'alarm', 'door']),
  /** Such as unlocked, locked, unlockFailedPin, jammed, forcedOpen, doorOpen. */
  what: word,
  /** keypad, rf, manual, rfid; null: not told. */
  source: word.nullable(),
  userId: z.int().min(0).max(65_535).nullable(),
  /** Epoch milliseconds. */
  at: z.int(),
});
export type LockEvent = z.infer<typeof lockEvent>;

/** Below what one message of a host may hold (src/field/ipc.ts): some hundred locks, compressed. */
export const SNAPSHOT_MAX_BYTES = 200 * 1024;

/** Everything that is needed to carry the network on, also on another stick. Holds the network key. */
export const snapshot = z.object({
  /** gzip of the JSON of SnapshotContent. */
  data: z.instanceof(Uint8Array).refine(({ length }) => length <= SNAPSHOT_MAX_BYTES, 'too long'),
  /** Locks in it, for people who choose one. */
  locks: z.int().min(0),
});
export type Snapshot = z.infer<typeof snapshot>;
export interface SnapshotContent {
  /** The library's database, as it is on the disk. */
  database: string;
  /** The coordinator's backup (open-coordinator-backup); null: it has none yet. */
  backup: string | null;
}

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`));

/** What the daemon adds to the options of a gateway's link, as `zgate`; anew at each start of its host. */
export const zgateStart = z.strictObject({
  /** Drawn once for good at random; of a network that is formed. Secret. */
  networkKey: hex(16),
  panId: z.int().min(1).max(0xfffe),
  extendedPanId: hex(8),
  /** Where a network may be formed; one that is formed stays on its channel. Empty: any. */
  allowedChannels: z.array(channel).max(16),
  /** PEM of the certificates a gateway reached by TLS must show, or that must have issued it; null: none is trusted. */
  trust: z.string().nullable(),
  /** Absolute path of a folder for the driver's files alone (0700). They outlive the host. */
  directory: z.string().min(1).max(4_096),
  /** The latest, or the one to restore: for a driver whose files are gone or damaged. null: there never was one. */
  snapshot: snapshot.nullable(),
  /**
   * Somebody asked for `snapshot` to take the place of the driver's files. The same id again, as after a crash, is the
   * same wish: a driver that has fulfilled it keeps the id beside its files and does not do it again. null: nobody did.
   */
  restore: z.guid().nullable(),
});
export type ZgateStart = z.infer<typeof zgateStart>;
