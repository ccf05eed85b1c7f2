/**
 * What a driver must put in force, and what it reports of devices: the contract of the wanted → applied mechanism
 * (src/services/reconcile/reconcile.ts). Every driver that carries settings speaks it; the wire behind it is the driver's own.
 *
 * Commands (DriverCommand.kind, data → answer):
 *  - `applySettings`       Rs485Apply → Rs485Applied    an RS-485 device
 *  - `applyChannels`       ChannelsApply → ChannelsApplied    the Zigbee gateway of the link
 *  - `applyConfiguration`  LockApply → LockApplied    a lock
 *
 * Each carries all that is wanted, whole: the device puts it in force whole or not at all, and the same command again
 * is harmless. The answer comes once the device has it in force. A driver throws REFUSED when the device understood and
 * said no (that version is not tried again), NO_REPLY when it did not answer, and the other codes of driver.ts.
 *
 * State reports (StateReport.subject → state), each a whole, again whenever something of it changes:
 *  - `device:<hwId>`  Rs485Report on a bus, LockReport on a Zigbee network
 *  - `gateway`        GatewayReport
 */
import { z } from 'zod';

const TEXT_MAX = 128;
const APPS_MAX = 64;
/** An unsigned 32-bit number: what registers and attributes hold. */
const uint32 = z.int().min(0).max(0xff_ff_ff_ff);
const text = z.string().max(TEXT_MAX);

/** Names a device for good: a serial number on a bus, the IEEE address in lower-case hex on a Zigbee network. */
export const HW_ID_MAX = 64;
export const hwId = z.string().min(1).max(HW_ID_MAX);

export const INPUT_PINS = ['input0', 'input1', 'input2', 'input3'] as const;
export const OUTPUT_PINS = [
  'output0',
  'output1',
  'output2',
  'output3',
  'output4',
  'output5',
  'output6',
  'output7',
] as const;
export const PINS = [...INPUT_PINS, ...OUTPUT_PINS] as const;
export type Pin = (typeof PINS)[number];

/** true: the pin is in use. Settings never carry levels. */
const ioPins = z.record(z.enum(PINS), z.boolean());
export type IoPins = z.infer<typeof ioPins>;

/** Of relays, and of outputs. */
export const RELAY_MAX = 7;
/** What a strike or a motor takes, and ten minutes for a gate. */
export const UNLOCK_MIN_MS = 100;
export const UNLOCK_MAX_MS = 600_000;

export const rs485Settings = z.strictObject({
  ioPins,
  /** null: the device drives no relay. */
  relayIndex: z.int().min(0).max(RELAY_MAX).nullable(),
  /** null: the device's own. */
  unlockDurationMilliseconds: z.int().min(UNLOCK_MIN_MS).max(UNLOCK_MAX_MS).nullable(),
  /** Short activations of an input are remembered until they are read. */
  useInputPinMemory: z.boolean(),
});
export type Rs485Settings = z.infer<typeof rs485Settings>;

export const rs485Apply = z.strictObject({ hwId, settingsVersion: uint32, settings: rs485Settings });
export type Rs485Apply = z.infer<typeof rs485Apply>;
export const rs485Applied = z.object({ reportedSettingsVersion: uint32 });
export type Rs485Applied = z.infer<typeof rs485Applied>;

const reported = {
  connected: z.boolean(),
  hwId,
  type: text.nullable(),
  platform: z.object({ version: text }).nullable(),
  apps: z.array(z.object({ name: text, version: text })).max(APPS_MAX),
};

/** OSDP: why there is no session with a device that answers; of SECURITY_ALARMS (rs485.ts). */
export const SESSION_FAULTS = ['wrongKey', 'downgrade', 'securityRequired', 'duplicateAddress'] as const;
export type SessionFault = (typeof SESSION_FAULTS)[number];

export const RELAY_FAULTS = ['stillClosed', 'notRead', 'openedByGateway'] as const;

const rs485Carries = z.object({
  /** That it has. */
  pins: z.array(z.enum(PINS)),
  /** Outputs that can be fired, from 0 on. */
  relays: z.int().min(0).max(OUTPUT_PINS.length),
  pinMemory: z.boolean(),
  unlockMaxMilliseconds: z.int().min(1),
});
export type Rs485Carries = z.infer<typeof rs485Carries>;

export const rs485Report = z.object({
  ...reported,
  /** Of the settings in force; 0 for a device that never got any. */
  reportedSettingsVersion: uint32,
  /** The settings in force; null until they were read. A swapped device is known by these, not by its version. */
  settings: rs485Settings.nullable(),
  /** What the pins show now; pins the device does not have are absent, and all of them from its silence until they are read again. */
  levels: z.partialRecord(z.enum(PINS), z.boolean()),
  /**
   * When `levels` were asked for, at the earliest: monotonic milliseconds, as `heardAt` of a lock. A report that only this
   * would make new is not sent. Absent: no levels are shown.
   */
  readAt: z.number().optional(),
  /** Where it is on the bus, and what it is taken for. */
  address: z.int().min(0).max(255).optional(),
  profile: text.nullable().optional(),
  /** Activations of inputs seen since the driver began, and the last one's time (epoch milliseconds). */
  edges: z.partialRecord(z.enum(INPUT_PINS), z.object({ total: z.int().min(0), at: z.int() })).optional(),
  /** null: the product does not report it. */
  tamper: z.boolean().nullable().optional(),
  supplyFault: z.boolean().nullable().optional(),
  /** The relay pulse under way; null also from its silence until its pins are read again. */
  pulse: z
    .object({ relay: z.int().nullable(), remainingMilliseconds: z.int().min(0) })
    .nullable()
    .optional(),
  /**
   * Its relays are timed by the gateway, and opened by this watchdog where the gateway dies: fired only once a test has
   * proved it. `proof` names what was proved: another one is void. null: the device opens them by itself, or has none.
   */
  watchdog: z
    .object({
      proof: text,
      milliseconds: z.int().min(1),
      /** The product reports no serial number: another one in its place has the same hwId. */
      isNamedByPlace: z.boolean().optional(),
      /** It was not fed in time within the last ten minutes: nothing was answered for so long. `at`: epoch milliseconds. */
      unfed: z
        .object({ pauseMilliseconds: z.int().min(0), at: z.int() })
        .nullable()
        .optional(),
    })
    .nullable()
    .optional(),
  /**
   * A relay that did not open at the end of its pulse. stillClosed: it was read as closed, and is sent the command to open until it does ·
   * notRead: no one knows, for it cannot be read · openedByGateway: the device was to open it by itself, and the gateway had
   * to: nothing is fired any more. `at`: epoch milliseconds.
   */
  relayFault: z
    .object({ relay: z.int().min(0).max(RELAY_MAX), fault: z.enum(RELAY_FAULTS), at: z.int() })
    .nullable()
    .optional(),
  /** What unlockDurationMilliseconds becomes on this product, rounded up; null: the device's own. */
  effectiveUnlockMilliseconds: z.int().nullable().optional(),
  /** Fields of the settings, and pins, that the product cannot carry. */
  unsupported: z.array(text).max(APPS_MAX).optional(),
  /** What the product can carry of the settings; absent: not known, or not yet. */
  carries: rs485Carries.optional(),
  /**
   * OSDP: how it is spoken to. `unpaired`: it has no key yet, and is asked nothing but who it is; `none`: a secure channel
   * is required, and there is none.
   */
  security: z.enum(['secure', 'clear', 'unpaired', 'none']).optional(),
  /** OSDP: what is wrong between us, though it answers; null: nothing is, or it does not answer. */
  sessionFault: z.enum(SESSION_FAULTS).nullable().optional(),
  /** OSDP: the session stands under the `pending` key of `watch`; this is its fingerprint (osdp.ts). */
  provenKey: text.optional(),
});
export type Rs485Report = z.infer<typeof rs485Report>;

/** IEEE 802.15.4, 2.4 GHz. */
export const channel = z.int().min(11).max(26);

/** The network may be on these channels only. `moveChannel` (zgate.ts) moves a network, not this. */
export const channelsApply = z.strictObject({ allowedChannels: z.array(channel).min(1).max(16) });
export type ChannelsApply = z.infer<typeof channelsApply>;
export const channelsApplied = z.object({ zigbeeChannel: channel });
export type ChannelsApplied = z.infer<typeof channelsApplied>;

export const gatewayReport = z.object({
  ...reported,
  /** null while no network is formed. */
  zigbeeChannel: channel.nullable(),
  /** The join window is open. */
  permitJoin: z.boolean(),
});
export type GatewayReport = z.infer<typeof gatewayReport>;

/** Minutes of the day. */
const minutes = z.int().min(0).max(1_440);

/**
 * What travels to a lock. What a lock cannot carry of it is named in `unsupported` of the answer and of its reports; the
 * rest is applied. `standOpenEnabled` is a permission: it opens nothing.
 */
const lockConfiguration = z.strictObject({
  name: z.string().nullable(),
  number: z.int().nullable(),
  type: z.string().nullable(),
  relaySetup: z.string().nullable(),
  standOpenEnabled: z.boolean(),
  onlineEnabled: z.boolean(),
  /** Keys of these doors open this one during the interval. */
  accessInternal: z
    .strictObject({
      doors: z.array(z.guid()),
      interval: z.strictObject({ start: minutes, end: minutes }).nullable(),
    })
    .nullable(),
  /** Which output opens for the keys of which doors. */
  outputs: z.array(z.strictObject({ doorId: z.string(), doors: z.array(z.guid()) })),
  /** Bit 0 of the mask is Monday. */
  schedule: z.array(z.strictObject({ weekdays: z.int().min(0).max(127), start: minutes, end: minutes })),
});
export type LockConfiguration = z.infer<typeof lockConfiguration>;

/** 0 stands for a schedule, template or system configuration that does not exist. */
const lockVersions = {
  configVersion: uint32,
  doorVersion: uint32,
  scheduleVersion: uint32,
  templateVersion: uint32,
  systemConfigVersion: uint32,
};

export const lockApply = z.strictObject({ hwId, ...lockVersions, configuration: lockConfiguration });
export type LockApply = z.infer<typeof lockApply>;
export const lockApplied = z.object({
  ...lockVersions,
  /** The frames as sent, base64, in order. */
  payloads: z.array(z.base64()),
  /** Fields of the configuration that hold something and that the lock cannot carry. */
  unsupported: z.array(text).max(APPS_MAX).optional(),
});
export type LockApplied = z.infer<typeof lockApplied>;

/** ZCL rev. 8, tables 7-10 and 7-11; each with the time it was read or reported (epoch milliseconds, the driver's clock). */
export const LOCK_STATES = ['notFullyLocked', 'locked', 'unlocked'] as const;
export const DOOR_STATES = ['open', 'closed', 'jammed', 'forcedOpen', 'error'] as const;
const epochMs = z.int().min(0);

/**
 * What locks the door again after an unlock. timedUnlock: the lock, by Unlock with Timeout · autoRelock: the lock, by
 * its own setting · gateway: the daemon, by a `lock` command
 */
export const relockWay = z.enum(['timedUnlock', 'autoRelock', 'gateway']);
export type RelockWay = z.infer<typeof relockWay>;

const count = z.int().min(0).max(0xff_fe);
const length = z.int().min(0).max(0xfe);
/** What a lock says that it can keep of users (lock-users.ts); absent: it has not said so. */
const userLimits = z.object({
  pins: count.optional(),
  cards: count.optional(),
  pinMin: length.optional(),
  pinMax: length.optional(),
  /** Bytes. */
  cardMin: length.optional(),
  cardMax: length.optional(),
  /** For each user. */
  weekDays: count.optional(),
  yearDays: count.optional(),
  holidays: count.optional(),
});
export type UserLimits = z.infer<typeof userLimits>;

/** Seconds since 2000-01-01 00:00 in the local time of the lock (ZCL rev. 8, 7.3.2.17.16). */
export const localTime = z.int().min(0).max(0xff_ff_ff_fe);

/** ZCL rev. 8, table 7-13, by their numbers. */
export const OPERATING_MODES = ['normal', 'vacation', 'privacy', 'noRf', 'passage'] as const;

/** A span in which the lock is in that operating mode, by its own clock (7.3.2.17.19). */
export const holiday = z.strictObject({ start: localTime, end: localTime, mode: z.enum(OPERATING_MODES) });
export type Holiday = z.infer<typeof holiday>;
/** More of them are neither written nor read, whatever the lock says that it keeps. */
export const HOLIDAYS_MAX = 32;

const byte = z.int().min(0).max(0xfe);
/** What a standard lock lets be set (lock-settings.ts), and has; absent: it is left as it is, or was not reported. */
export const lockSettings = z.strictObject({
  /** It locks again by itself after so long. 0 is not to be set: the lock would stay open after an unlock at its keypad. */
  autoRelockSeconds: z.int().min(0).max(0xff_ff_ff_fe).optional(),
  /** 0 silent, 1 low, 2 high. */
  soundVolume: byte.optional(),
  oneTouchLocking: z.boolean().optional(),
  /** Wrong codes before it takes none for a while. */
  wrongCodeLimit: byte.optional(),
  wrongCodeLockoutSeconds: byte.optional(),
  /** All that it has: no other beside them. Reported once they were written or read (lock-settings.ts). */
  holidays: z.array(holiday).max(HOLIDAYS_MAX).optional(),
});
export type LockSettings = z.infer<typeof lockSettings>;

/** Absent: the lock has not reported it yet, or cannot. */
export const lockReport = z.object({
  connected: z.boolean(),
  hwId,
  /** Versions in force. */
  ...z.object(lockVersions).partial().shape,
  /** Epoch milliseconds, of the driver's clock: any frame; a two-way exchange; an event of the lock. */
  lastSeen: z.int().optional(),
  lastContact: z.int().optional(),
  lastEvent: z.int().optional(),
  /**
   * As lastSeen, in monotonic milliseconds, which all processes of a host share and no clock step changes; absent until the
   * lock was heard in this run of the driver.
   */
  heardAt: z.number().optional(),
  /** The channel of the network when the last frame of the lock came. */
  heardOn: channel.optional(),
  /** 0 to 255. */
  lqi: z.int().min(0).max(255).optional(),
  /** dBm. */
  rssi: z.int().min(-128).max(127).optional(),
  /** Millivolts. */
  dueBatteryUnderLoad: z.int().min(0).max(65_535).optional(),
  dueBatteryWithoutLoad: z.int().min(0).max(65_535).optional(),
  bleFirmwareVersion: text.optional(),
  lccVersion: text.optional(),
  lcuFirmwareVersion: text.optional(),
  samVersion: text.optional(),
  zigbeeFirmwareVersion: text.optional(),
  capabilities: z.array(text).max(APPS_MAX).optional(),
  /** Percent, of a standard lock. */
  battery: z.int().min(0).max(100).optional(),
  /** When `battery` was read or reported. */
  batteryAt: epochMs.optional(),
  /** The same as `heardAt` above, as in lockState and doorState. */
  batteryHeardAt: z.number().optional(),
  /** BatteryAlarmState (0x003e) has a bit set, or the lock raised a low-battery alarm. */
  batteryLow: z.boolean().optional(),
  /** When the lock reported `batteryLow`. */
  batteryLowAt: epochMs.optional(),
  /** `heardAt`: as above. */
  lockState: z.object({ value: z.enum(LOCK_STATES), at: epochMs, heardAt: z.number().optional() }).optional(),
  doorState: z.object({ value: z.enum(DOOR_STATES), at: epochMs, heardAt: z.number().optional() }).optional(),
  /** Decided from what the lock offers. */
  relock: z.object({ by: relockWay, seconds: z.int().min(1).nullable() }).optional(),
  /** How it can stand open: by passage mode, by staying unlocked, or not at all. */
  standOpen: z.enum(['passage', 'unlocked', 'none']).optional(),
  /** RequirePINforRFOperation (0x0033). */
  requiresPin: z.boolean().optional(),
  /** Steps of its first configuration (bindings, reports, masks) that failed, and are tried again. */
  setupFaults: z
    .array(z.object({ step: text, reason: text, at: epochMs }))
    .max(32)
    .optional(),
  /** Of standard locks that deviate in the same way (drivers/zigbee/locks), by what the lock claims to be. */
  family: text.optional(),
  users: userLimits.optional(),
  settings: lockSettings.optional(),
  /** Of the configuration it took last (lockApplied). */
  unsupported: z.array(text).max(APPS_MAX).optional(),
  /** Other devices that are taken to have its network address: nothing that opens a door is sent to it. */
  sharesAddressWith: z.array(hwId).max(8).optional(),
});
export type LockReport = z.infer<typeof lockReport>;
