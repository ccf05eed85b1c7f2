/** What a simulated Zigbee network is made of, and what can be done to it. Everything from outside is checked here. */
import { z } from 'zod';
import { OPERATION_STYLES } from './clusters/door-lock/operations.ts';
import { CONFIRM_FAULTS, type ConfirmFault } from './mt/status.ts';
import { EZSP_VERSIONS, OTHER_VERSIONS } from './ncp/releases.ts';

const address = z.string().regex(/^[0-9a-f]{16}$/, 'expected 16 lower-case hex digits');
/** What the firmware of a stick is made with. Of 1.2 it has what it says it is, and not its memory. */
const stack = z.enum(['3.x.0', '1.2']);
const hex = (min: number, max: number) =>
  z
    .string()
    .regex(new RegExp(`^([0-9a-f]{2}){${min},${max}}$`), `expected ${min} to ${max} bytes in lower-case hex`);
const u8 = z.int().min(0).max(0xff);
const u16 = z.int().min(0).max(0xffff);
const u32 = z.int().min(0).max(0xffff_ffff);
const count = z.int().min(1).max(1_000_000);
const LONGEST_MS = 3_600_000;
const milliseconds = z.number().min(0).max(LONGEST_MS);
const energies = z.record(z.string().regex(/^(1[1-9]|2[0-6])$/), u8);
const confirmStatus = z.enum(Object.keys(CONFIRM_FAULTS) as [ConfirmFault, ...ConfirmFault[]]);
/**
 * What the next frames are confirmed with. They are not sent, or they are `delivered` and only the acknowledgement is
 * lost: a sender cannot separate the two (IEEE 802.15.4-2011, 5.1.6.4).
 */
const confirmFault = z.strictObject({
  status: confirmStatus,
  frames: count,
  delivered: z.boolean().optional(),
});
export type ConfirmFaults = z.infer<typeof confirmFault>;

/** What is wrong with a lock. An absent one is not there. */
const faultsSchema = z.strictObject({
  /** Hears nothing, says nothing. */
  offline: z.boolean(),
  /** The next so many answers and reports are lost: what was asked is done. */
  lostResponses: count,
  /** The next so many events are lost. A lock that asks for a default response sends them once more. */
  lostEvents: count,
  /** Its events are sent so much later than its reports and answers of the same movement. */
  lateEventsMs: milliseconds,
  /** The next so many frames to it are lost behind the first hop: confirmed, never heard. */
  lostRequests: count,
  /** Of the next frames to it. */
  confirm: confirmFault,
  /** The next so many frames that it sends arrive twice, with the same transaction. */
  duplicates: count,
  /** The next cluster commands are answered by a default response with this status of ZCL, and not done. */
  defaultResponse: z.strictObject({ status: u8, commands: count }),
  /** Cluster commands are done, and answered by a default response instead of their own. */
  answersByDefault: z.boolean(),
  /** The next door lock commands are answered with this status in their own response, and not done. */
  refuse: z.strictObject({ status: u8, commands: count }),
  /** Does what it is asked only so much later. */
  slowMs: milliseconds,
  /** The bolt does not move. */
  jammed: z.boolean(),
  /** Commands are answered with success, and nothing moves or is reported, but for what a hand turns. */
  stuck: z.boolean(),
  /** Commands are answered with success and their operation is reported, and nothing moves. */
  boasts: z.boolean(),
  /** Answers success to PINs and cards that are set, and keeps none. */
  forgetsCodes: z.boolean(),
  /** Takes each user for one that may open always, whatever its type. */
  ignoresUserTypes: z.boolean(),
  /** Answers success to schedules that are set, and keeps them with another end. */
  changesSchedules: z.boolean(),
  /** LockState as it is read and reported, whatever the bolt shows. */
  misreports: u8,
  /** Once unlocked it locks by itself so soon, whatever the command and its settings say. */
  relocksMs: milliseconds,
  /** What it sends arrives so much later, as when the routers between have no room for it. */
  lagMs: milliseconds,
  /** The next so many frames that it sends arrive once more, so much later, with the same transaction. */
  replays: z.strictObject({ frames: count, afterMs: milliseconds }),
  /** Reads and reports give the value that means `unknown`. */
  invalidValues: z.boolean(),
  /** Claims these endpoints too; they have no descriptor. */
  bogusEndpoints: z.array(z.int().min(1).max(240)).max(16),
  /** Strings are so long. */
  oversizedStrings: z.int().min(1).max(254),
  /** Claims these clusters too, and reports an attribute of each after every command. */
  foreignClusters: z.array(u16).max(16),
});
const faults = faultsSchema.partial();
export type Faults = z.infer<typeof faults>;
const faultChanges = z.strictObject(
  Object.fromEntries(
    Object.entries(faultsSchema.shape).map(([name, schema]) => [name, schema.nullable().optional()]),
  ),
);

const pin = z.string().regex(/^\d{4,8}$/, 'expected 4 to 8 digits');
const batterySchema = z.strictObject({
  percent: z.number().min(0).max(100).default(87),
  withoutLoadMv: u16.default(6_050),
  underLoadMv: u16.default(5_720),
});
const versionsSchema = z.strictObject({
  lcu: z.string().default('4.2.0'),
  ble: z.string().default('2.0.7'),
  lcc: z.string().default('1.9.3'),
  sam: z.string().default('3.1.1'),
});

const sleep = z.strictObject({
  pollMs: z.number().min(1).max(LONGEST_MS).default(250),
  /** It polls often for so long after it spoke. 0: whatever comes next waits for its next poll at its parent. */
  awakeMs: milliseconds.default(500),
});

export const lockSchema = z.strictObject({
  ieee: address,
  manufacturer: z.string().max(32).default('Gatehouse'),
  model: z.string().max(32).default('GH-Lock'),
  /** The one with its clusters. */
  endpoint: z.int().min(1).max(240).default(1),
  /** Clusters that it has, and does not name in its simple descriptor. */
  unlisted: z.array(u16).max(8).default([]),
  /** How it reports what happens at it (clusters/door-lock/operations.ts). */
  operations: z.enum(OPERATION_STYLES).default('standard'),
  /** BatteryPercentageRemaining is in percent, in place of half percent. */
  wholePercent: z.boolean().default(false),
  /** Attributes of the door lock cluster that it does not have. */
  lacksAttributes: z.array(u16).max(64).default([]),
  /**
   * What it answers when it is asked for a schedule beyond those it keeps: INVALID_FIELD by the standard (ZCL rev. 8, 7.3.2.17.14),
   * FAILURE (0x01) in earlier door lock servers of EmberZNet.
   */
  scheduleEnd: u8.default(0x85),
  /** It never reports LockState. */
  keepsLockState: z.boolean().default(false),
  /** Of its node descriptor, its vendor cluster and its firmware. */
  manufacturerCode: u16.default(0x1234),
  firmware: z
    .strictObject({
      version: u32.default(0x0102_0300),
      build: z.string().default('1.2.3'),
      imageType: u16.default(1),
    })
    .prefault({}),
  /** Sleeps, and asks its parent for frames so often. */
  sleepy: sleep.optional(),
  /** Is wired to the mains, and relays. */
  mains: z.boolean().default(false),
  /** Has poll control, and checks in so often. */
  checkInSeconds: z.number().min(0.25).max(86_400).optional(),
  /** Has the manufacturer-specific cluster 0xFC11. */
  vendorCluster: z.boolean().default(true),
  /** Bits of its capabilities attribute. */
  capabilities: u32.default(0x3f),
  versions: versionsSchema.prefault({}),
  pins: z
    .array(z.strictObject({ user: u16, code: pin }))
    .max(250)
    .default([]),
  rfids: z
    .array(z.strictObject({ user: u16, code: hex(4, 10) }))
    .max(250)
    .default([]),
  /** Users that fit its memory, of each kind, whatever their numbers. */
  codesMax: z.int().min(0).max(250).default(250),
  /** SendPINOverTheAir: false masks the digits in what it answers. */
  sendsPins: z.boolean().default(true),
  /** Clearing a schedule makes the PIN of its user unrestricted, as Silicon Labs' Zigbee door lock server does (door-lock-server-schedule.c). */
  clearingUnlimitsPins: z.boolean().default(false),
  battery: batterySchema.prefault({}),
  supportedOperatingModes: u16.default(0x1f),
  /** All event masks and the alarm mask, until they are written. The default of ZCL (07-5123-08, 7.3.2.14) is 0. */
  eventMasks: u16.default(0),
  /** Commands of the door lock cluster that it does not have, such as 3: Unlock with Timeout. */
  lacksCommands: z.array(u8).max(32).default([]),
  /** AutoRelockTime as it comes; 0: it does not lock again by itself. null: it has no such attribute. */
  autoRelockSeconds: u32.nullable().default(0),
  /** RequirePINforRFOperation. */
  requirePin: z.boolean().default(false),
  /** Rows of its binding table. */
  bindingsMax: z.int().min(0).max(32).default(32),
  hasDoorSensor: z.boolean().default(true),
  /** Of its link to its parent. */
  lqi: u8.default(180),
  rssi: z.int().min(-128).max(0).default(-60),
  /** IEEE address of its router; absent: the coordinator. */
  parent: address.optional(),
  /** Of a network from the beginning: that of the stick, once it has one. */
  joined: z.boolean().default(false),
  nwk: z.int().min(1).max(0xfff7).optional(),
  /** With its CRC, as printed on it. */
  installCode: hex(8, 18).optional(),
  /** false: misses every change of the channel. */
  followsChannel: z.boolean().default(true),
  /** Looks for its network so long after it missed a change of the channel, and rejoins; absent: after 60 s when it sleeps, else never. */
  rejoinMs: milliseconds.optional(),
  /**
   * Its events and alarms ask for a default response, and are sent once more when there is none. Locks of both kinds are
   * sold: the sender chooses the disable default response sub-field of its commands (ZCL rev. 8, 2.4.1.1.4). Absent: a
   * lock with an odd address does so.
   */
  asksDefaultResponse: z.boolean().optional(),
  /** false: is older than Zigbee 3.0, and exchanges no link key with the trust center. */
  keyExchange: z.boolean().default(true),
  /** What the bolt takes. */
  boltMs: milliseconds.default(20),
  faults: faults.default({}),
});
export type LockPlan = z.infer<typeof lockSchema>;

const routerSchema = z.strictObject({
  ieee: address,
  /** Keeps a frame for a child that sleeps so long; EmberZNet allows 30 s. */
  holdMs: milliseconds.default(7_000),
  lqi: u8.default(200),
  joined: z.boolean().default(false),
  nwk: z.int().min(1).max(0xfff7).optional(),
});
export type RouterPlan = z.infer<typeof routerSchema>;

export const planSchema = z
  .strictObject({
    transport: z.enum(['tcp', 'pty']).default('tcp'),
    /** Where it listens without a pty; 0 takes a free one. */
    tcpPort: z.int().min(0).max(65_535).default(0),
    /** Path of a symlink to the pty, so that it comes back at the same path. */
    link: z.string().min(1).optional(),
    /** IEEE address of the stick. */
    ieee: address.default('00124b0014d9a001'),
    /** File with the memory of the stick, made when it is not there: it comes back as it was. Locks join again. */
    memory: z.string().min(1).optional(),
    stack: stack.default('3.x.0'),
    /** What it speaks, and of EmberZNet the version of EZSP. `stack` and `revision` are of Z-Stack. */
    adapter: z.enum(['zstack', 'ember']).default('zstack'),
    ezspVersion: z.literal([...EZSP_VERSIONS, ...OTHER_VERSIONS]).default(13),
    /** Rows of an EmberZNet stick for link keys. */
    keyTable: z.int().min(0).max(127).default(12),
    /** Build date of its firmware. */
    revision: u32.default(20_230_507),
    /** What a frame takes, one way. */
    airMs: milliseconds.default(0),
    /** This share of the frames is lost; the same seed loses the same ones. */
    lossRate: z.number().min(0).max(1).default(0),
    seed: z.int().default(1),
    /** The LQI of a frame is up to so much better or worse than that of its link; 0: where a test reads exact values. */
    lqiSpread: u8.default(10),
    energies: energies.optional(),
    /** Sleeping and listening children of the coordinator: NWK_MAX_DEVICE_LIST of the common images for a CC2652. */
    children: z.int().min(0).max(256).default(50),
    /**
     * Share of the time that real hardware takes to start (1 s) and to send a byte over its serial port (87 µs). 0 by
     * default, since every test starts a stick several times and reads its memory over that port.
     */
    pace: z.number().min(0).max(1).default(0),
    /** After power-up and each reset it says nothing for so long; absent: what its pace makes it. */
    bootMs: milliseconds.optional(),
    /**
     * Who has joined and does not exchange its link key within the time is sent away (bdbTrustCenterRequireKeyExchange,
     * bdbTrustCenterNodeJoinTimeout; TRUE by default, Base Device Behavior 3.0, 5.3.9). Hosts that take devices older
     * than Zigbee 3.0 set it to false.
     */
    requireKeyExchange: z.boolean().default(true),
    joinTimeoutMs: milliseconds.default(15_000),
    /** Says nothing at all from the beginning. */
    silent: z.boolean().default(false),
    locks: z.array(lockSchema).max(256).default([]),
    routers: z.array(routerSchema).max(32).default([]),
  })
  .superRefine((plan, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (plan.transport === 'tcp' && plan.link !== undefined) refuse('a link is for a pty');
    const seen = new Set([plan.ieee]);
    for (const { ieee } of [...plan.locks, ...plan.routers]) {
      if (seen.has(ieee)) refuse(`two nodes with the address ${ieee}`);
      seen.add(ieee);
    }
    for (const { ieee, parent } of plan.locks)
      if (parent !== undefined && !plan.routers.some((router) => router.ieee === parent))
        refuse(`${ieee} has ${parent} for its parent, which is no router`);
  });
export type GatewayPlan = z.input<typeof planSchema>;
export type CheckedPlan = z.output<typeof planSchema>;

export const lockChange = z.strictObject({
  faults: faultChanges.nullable().optional(),
  /** A card is held to it. */
  card: hex(4, 10).optional(),
  /** A PIN is typed. */
  pin: pin.optional(),
  /** A PIN is set at its keypad; null: removed. */
  program: z.strictObject({ user: u16, pin: pin.nullable() }).optional(),
  /** Of a user, or a holiday: stored by another system, in the fields of the standard; null: cleared. */
  schedule: z
    .strictObject({
      kind: z.enum(['weekDays', 'yearDays', 'holidays']),
      id: u8,
      user: u16.optional(),
      fields: z.array(u32).nullable(),
    })
    .optional(),
  /** Turned by hand from the inside. */
  manual: z.enum(['lock', 'unlock']).optional(),
  /** Says its last operation once more, which is none. */
  repeatOperation: z.literal(true).optional(),
  /** Set at the lock, by its menu; 0: it does not lock again by itself. */
  autoRelockSeconds: u32.optional(),
  /** DoorState of the door lock cluster. */
  door: z.enum(['open', 'closed', 'jammed', 'forcedOpen']).optional(),
  /** Code of an alarm of the door lock cluster, such as 4: wrong code entry limit. */
  alarm: u8.optional(),
  battery: batterySchema.partial().optional(),
  lqi: u8.optional(),
  rssi: z.int().min(-128).max(0).optional(),
  sleepy: sleep.nullable().optional(),
  followsChannel: z.boolean().optional(),
  /** Checks in now. */
  checkIn: z.literal(true).optional(),
  /** Asks for a new firmware now. */
  queryFirmware: z.literal(true).optional(),
  /** Finds the network again, on whatever channel it is; withoutKey: and asks the trust center for its key. */
  rejoin: z.literal([true, 'withoutKey']).optional(),
  /** Gets another network address, and announces it or not. */
  readdress: z.enum(['announced', 'silently']).optional(),
  announce: z.literal(true).optional(),
  /** Says that its network address is that of the device with this IEEE address. */
  announceAs: address.optional(),
  /** Leaves by itself, as after a reset to factory defaults. */
  leave: z.literal(true).optional(),
  /** Off and on again: what it has in its memory stays. */
  restart: z.literal(true).optional(),
  /** Moves to another router, or to the coordinator. */
  parent: address.nullable().optional(),
  /** Moves to this router, and the coordinator misses its announcement: it takes it for its child still. */
  missedParent: address.optional(),
  clearLog: z.literal(true).optional(),
});
export type LockChange = Omit<z.input<typeof lockChange>, 'faults'> & {
  faults?: { [Name in keyof Faults]?: Faults[Name] | null } | null;
};

export const gatewayChange = z.strictObject({
  /** false: pulls the adapter, or drops the connection and takes no other; true: it is back. */
  plugged: z.boolean().optional(),
  /** Drops the connection, and takes another at once. TCP only. */
  drop: z.literal(true).optional(),
  /** Hears nothing and says nothing, as firmware that hangs. Also while a host connects. */
  silent: z.boolean().optional(),
  /** The stick resets itself, and says so (SYS_RESET_IND). */
  selfReset: z.literal(true).optional(),
  /** Another stick, fresh, in its place. */
  newStick: z
    .strictObject({
      ieee: address,
      /** Absent: of the make of the one before. */
      adapter: z.enum(['zstack', 'ember']).optional(),
      stack: stack.optional(),
      keyTable: z.int().min(0).max(127).optional(),
      /** EmberZNet: stores the IEEE address that it is given, and goes on with its own. */
      keepsIeee: z.boolean().optional(),
    })
    .optional(),
  /** As after so many more frames of the coordinator, which all have heard: a backup that was made before is too old. */
  frames: count.optional(),
  /** Of its port, from the next byte on. Forming a network at the pace of real hardware takes ten seconds. */
  pace: z.number().min(0).max(1).optional(),
  airMs: milliseconds.optional(),
  lossRate: z.number().min(0).max(1).optional(),
  seed: z.int().optional(),
  lqiSpread: u8.optional(),
  /** By channel, as an energy scan hears them; the others are quiet. */
  energies: energies.optional(),
  /** Takes nothing from the port until it is true again. */
  reading: z.boolean().optional(),
  /** Of the next frames of the coordinator. */
  confirm: confirmFault.nullable().optional(),
  /** A forged frame arrives from this network address, also where a device has it. */
  forged: z
    .strictObject({
      source: u16,
      profile: u16.default(0x0104),
      cluster: u16,
      endpoint: u8.default(1),
      sourceEndpoint: u8.default(1),
      destination: u16.default(0),
      data: hex(1, 82),
    })
    .optional(),
  /** A device with this IEEE address joins at this network address, as the coordinator sees it. */
  forgedJoin: z.strictObject({ ieee: address, nwk: u16 }).optional(),
  /** The next requests to send are refused for want of memory, in the answer to AF_DATA_REQUEST; 0: from now on none. */
  full: z.union([z.literal(0), count]).optional(),
  /** Of the serial line of an EmberZNet stick: the next DATA frames (ash/link.ts). */
  ash: z.strictObject({ nak: count, lost: count, damaged: count }).partial().optional(),
});
export type GatewayChange = z.input<typeof gatewayChange>;
