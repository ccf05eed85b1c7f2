/**
 * Commands and reports of a Zigbee gateway link, beside settings (settings.ts: `applyChannels`,
 * `applyConfiguration`, GatewayReport, LockReport). A lock is named by its IEEE address, 16 lower-case hex digits.
 *
 * Commands (DriverCommand.kind, data → answer):
 *  - `unlock`      Unlock → Unlocked         actuates at most once; OUTCOME_UNKNOWN when no one knows
 *  - `lock`        LockNow → Locked          actuates at most once; safe to send again
 *  - `standOpen`   StandOpen → StandingOpen  the lock stays unlocked until `endStandOpen`. Actuates at most once
 *  - `endStandOpen` LockNow → StandingEnded  the lock works as before, and is locked. Safe to send again
 *  - `readBolt`    ReadBolt → BoltRead       as the lock answers now; NO_REPLY when it does not
 *  - `removeLock`  {hwId} → LockRemoved     asks the lock to leave the network for good. Safe to send again
 *  - `permitJoin`  PermitJoin → null         opens the join window, or closes it (seconds 0)
 *  - `moveChannel` MoveChannel → ChannelsApplied   one attempt; locks follow
 *  - `energyScan`  {} → Energies            how busy each channel is; the coordinator hears nothing else for a second or two
 *  - `networkMap`  {} → NetworkMap           asks every router, one by one
 *  - `updateLock`  UpdateLock → null         begins; progress by `firmware:<hwId>` reports, the end by `lockUpdated`. The
 *      same again after an end goes on where the lock was
 *  - `cancelUpdate` CancelUpdate → null      ends it; harmless when there is none
 *
 * State reports: `gateway` · `energies` (Energies, of the network that was formed just now) · `device:<ieee>` (LockReport) ·
 * `firmware:<ieee>` (FirmwareProgress)
 * Events (DriverEvent.kind → data): `lockJoined` LockJoined · `joinFailed` JoinFailed · `lockLeft` LockLeft · `lockEvent` LockEvent ·
 *   `lockUpdated` LockUpdated · `snapshot` Snapshot: kept encrypted, and given back in the options of the next start
 */
import { z } from 'zod';
import { channel, LOCK_STATES, relockWay } from './settings.ts';

/**
 * A parent holds a frame for a sleeping lock for 7.68 s (Zigbee specification R22, nwkTransactionPersistenceTime): what
 * is sent later than this before its deadline could arrive after it.
 */
export const HELD_FRAME_MS = 8_000;

/**
 * So long a frame that was sent may still arrive: EmberZNet lets a parent hold frames for sleeping children up to 30 s, and
 * five more seconds cover the routes to it.
 */
export const HELD_AT_MOST_MS = 35_000;

const text = z.string().max(128);
/** Of the network of another gateway that a coordinator carries: PAN id and extended PAN id, in hex. */
const NETWORK_NAME = '[0-9a-f]{4}-[0-9a-f]{16}';
export const networkName = z.string().regex(new RegExp(`^${NETWORK_NAME}$`));
const CARRIED = new RegExp(`^the coordinator carries the network (${NETWORK_NAME}) `);
/** The network that a link which is down for this reason has found on its coordinator, and leaves there; undefined: none. */
export const carriedNetwork = (reason: string) => CARRIED.exec(reason)?.[1];

export const ieeeAddress = z.string().regex(/^[0-9a-f]{16}$/);

/** ASCII digits, as a lock takes them over the radio. A secret: never logged, never in an error. */
const PIN_MAX = 16;
const pin = z
  .string()
  .regex(/^[0-9]+$/)
  .max(PIN_MAX);

/**
 * When the first of the commands before this one that open the lock was begun whose frame or event may still come, monotonic
 * milliseconds; null: there is none. A driver knows more of the commands that it has sent itself.
 */
const earlierAt = z.number().nullable().default(null);

export const unlock = z.strictObject({
  hwId: ieeeAddress,
  /** The door is locked again after so long: by the lock where it supports Unlock with Timeout. */
  relockSeconds: z.int().min(1).max(65_535),
  /** For a lock that requires one for operations by radio (ZCL rev. 8, 7.3.2.14.10); null: none is stored. */
  pin: pin.nullable(),
  /**
   * The daemon has stored that it locks the door again after `relockSeconds`. Without it a lock that does not lock again
   * by itself is not sent anything: REFUSED.
   */
  gatewayRelocks: z.boolean(),
  earlierAt,
});
export type Unlock = z.infer<typeof unlock>;

export const unlocked = z.object({
  /** Who locks the door again. */
  relock: relockWay,
  /**
   * confirmed: the lock reported that it is unlocked · accepted: it answered success, and no report came in time ·
   * jammed: it accepted, and reported that the bolt did not move
   */
  outcome: z.enum(['confirmed', 'accepted', 'jammed']),
});
export type Unlocked = z.infer<typeof unlocked>;

export const lockNow = z.strictObject({
  hwId: ieeeAddress,
  pin: pin.nullable(),
  /** An event of the lock that says that it was locked by radio can be of no other command, and confirms this one. */
  eventConfirms: z.boolean().optional(),
});
export type LockNow = z.infer<typeof lockNow>;
/** confirmed: the lock reported that it is locked · accepted and jammed: as of an unlock */
export const locked = z.object({ outcome: z.enum(['confirmed', 'accepted', 'jammed']) });
export type Locked = z.infer<typeof locked>;

export const standingEnded = locked.extend({
  /** So long a write of that standing open may still reach the lock and change it: `endStandOpen` is to be sent again then. */
  settlesMs: z.number().positive().optional(),
});
export type StandingEnded = z.infer<typeof standingEnded>;

export const standOpen = z.strictObject({ hwId: ieeeAddress, pin: pin.nullable(), earlierAt });
/** confirmed: the lock reported that it is unlocked, and that it stays so · accepted and jammed: as of an unlock */
const standingOpen = z.object({ outcome: z.enum(['confirmed', 'accepted', 'jammed']) });
export type StandingOpen = z.infer<typeof standingOpen>;

export const readBolt = z.strictObject({ hwId: ieeeAddress });
export const boltRead = z.object({ lockState: z.enum(LOCK_STATES) });
export type BoltRead = z.infer<typeof boltRead>;

export const removeLock = z.strictObject({ hwId: ieeeAddress });
/** left: the lock confirmed that it leaves, or is not in this network · unanswered: it did not, and stays known */
export const lockRemoved = z.object({ outcome: z.enum(['left', 'unanswered']) });
export type LockRemoved = z.infer<typeof lockRemoved>;

/** The longest a window can be by the standard (Zigbee 3.0, Mgmt_Permit_Joining_req: 0xFF would be for ever). */
export const PERMIT_JOIN_MAX_SECONDS = 254;
export const permitJoin = z.strictObject({
  seconds: z.int().min(0).max(PERMIT_JOIN_MAX_SECONDS),
  /** Who may join; empty: anyone who asks. */
  allowed: z.array(ieeeAddress).max(256),
  /** Joiners with a key of their own (install code with its CRC, hex). */
  installCodes: z
    .array(z.strictObject({ hwId: ieeeAddress, code: z.string().regex(/^([0-9a-fA-F]{2}){8,18}$/) }))
    .max(256),
});
export type PermitJoin = z.infer<typeof permitJoin>;

export const moveChannel = z.strictObject({ channel });
export type MoveChannel = z.infer<typeof moveChannel>;

export const energies = z.object({
  channels: z
    .array(z.object({ channel, energy: z.int().min(0).max(0xff) }))
    .min(1)
    .max(16),
});
export type Energies = z.infer<typeof energies>;

export const networkMap = z.object({
  nodes: z
    .array(z.object({ hwId: ieeeAddress, type: z.enum(['coordinator', 'router', 'endDevice', 'unknown']) }))
    .max(1_024),
  /** Radio links between devices, and routes in use. */
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
  /** It was begun before, and how that ended is not known: a lock that has this firmware is updated. */
  isResumed: z.boolean().default(false),
});
export type UpdateLock = z.infer<typeof updateLock>;

export const cancelUpdate = z.strictObject({ hwId: ieeeAddress });
export type CancelUpdate = z.infer<typeof cancelUpdate>;

export const lockUpdated = z.object({
  hwId: ieeeAddress,
  /** refused: the lock has this firmware or a newer one, or the file is not for it · failed: it can be tried again */
  outcome: z.enum(['updated', 'refused', 'failed', 'cancelled']),
  reason: text.nullable(),
  /** As the lock reports it after the update. */
  zigbeeFirmwareVersion: text.nullable(),
});
export type LockUpdated = z.infer<typeof lockUpdated>;

export const firmwareProgress = z.object({
  hwId: ieeeAddress,
  percent: z.number().min(0).max(100),
  remainingSeconds: z.number().min(0).nullable(),
});
export type FirmwareProgress = z.infer<typeof firmwareProgress>;

/** After its interview; not when it merely comes back to the network it is in. It is configured again. */
export const lockJoined = z.object({
  hwId: ieeeAddress,
  manufacturer: text.nullable(),
  model: text.nullable(),
  zigbeeFirmwareVersion: text.nullable(),
  capabilities: z.array(text).max(64),
});
export type LockJoined = z.infer<typeof lockJoined>;

/**
 * notAllowed: it asked, and the open window is not for it · installCode: its window is over, and it did not join with the
 * code that was entered for it, which the coordinator has forgotten · silent: it joined, and did not say what it is ·
 * noLock: it joined, and is none
 */
export const joinFailure = z.enum(['notAllowed', 'installCode', 'silent', 'noLock']);
export type JoinFailure = z.infer<typeof joinFailure>;
/** Somebody wanted a lock to join, or it wanted to itself, and no door comes of it. */
export const joinFailed = z.object({ hwId: ieeeAddress, reason: joinFailure });

export const lockLeft = z.object({ hwId: ieeeAddress });

/** A name, and never as many digits in a row as a PIN has. */
const word = z.string().regex(/^(?!.*[0-9]{4})[A-Za-z0-9]{1,64}$/);

/** Something a person would ask about. Never digits of a PIN. */
export const lockEvent = z.object({
  hwId: ieeeAddress,
  /**
   * ZCL Door Lock: operation or programming event, alarm; door: its position sensor; bolt: lockState changed and no
   * operation event said so, or none that is a proof.
   */
  kind: z.enum(['operation', 'programming', 'alarm', 'door', 'bolt']),
  /** Such as unlocked, locked, unlockFailedPin, jammed, forcedOpen, doorOpen. */
  what: word,
  /** keypad, rf, manual, rfid; null: not reported. */
  source: word.nullable(),
  userId: z.int().min(0).max(65_535).nullable(),
  /** Epoch milliseconds, up to the last that a date can show (ECMA-262, 21.4.1.1). */
  at: z.int().min(0).max(8.64e15),
  /** Monotonic milliseconds, which all processes of a host share; null: not reported. */
  heardAt: z.number().nullable().default(null),
});
export type LockEvent = z.infer<typeof lockEvent>;

/**
 * An archive is one event: a thousand locks take about half of this, for their records are much alike. The library's
 * database and the coordinator's backup (open-coordinator-backup), compressed; the driver makes it and reads it.
 */
export const ARCHIVE_MAX_BYTES = 200_000;
export const archive = z.instanceof(Uint8Array).refine(({ length }) => length <= ARCHIVE_MAX_BYTES);

/** Everything that is needed to carry the network on, also on another stick. Holds the network key. */
export const snapshot = z.object({
  archive,
  /** Locks that are in it. */
  locks: z.int().min(0),
  /** Of the coordinator; with another one at the same port it must not be put back unasked. */
  hwId: ieeeAddress,
  zigbeeChannel: channel.nullable(),
});
export type Snapshot = z.infer<typeof snapshot>;
