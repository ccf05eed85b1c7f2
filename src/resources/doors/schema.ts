/** The door as the interface shows it (interface specification 2.3) and the bodies of 4.4 and its extensions. */
import { z } from '@hono/zod-openapi';
import { readOnlyFields } from '../../platform/http/editing.ts';
import {
  applyFailureOf,
  clearableName,
  identifier,
  ieeeAddress,
  looseId,
  NAME_MAX,
  printable,
  unknownReferences,
} from '../../platform/http/fields.ts';
import { connectionType, lockConditions, relockState, standingOpen } from './openings-schema.ts';

/**
 * NO_GATEWAY: none is known for its lock, or not by the configuration · GATEWAY_LOST: the gateway is not connected ·
 * NOT_REPORTED: the gateway has not reported the lock yet · LOCK_LEFT: the lock left its network · STAYED_BEHIND: the network
 * is on another channel than the lock was heard on · BATTERY_LOW, WEAK_LINK: the lock is silent, and that is what it reported
 * last · NOT_ANSWERING: the lock or the device is silent · BUS_DOWN: the bus of the device is down
 */
const OFFLINE_CODES = [
  'NO_GATEWAY',
  'GATEWAY_LOST',
  'NOT_REPORTED',
  'LOCK_LEFT',
  'STAYED_BEHIND',
  'BATTERY_LOW',
  'WEAK_LINK',
  'NOT_ANSWERING',
  'BUS_DOWN',
] as const;

export interface OfflineReason {
  code: (typeof OFFLINE_CODES)[number];
  message: string;
}

/** Doors whose keys open another one: a floor, generously. */
const REFERENCES_MAX = 256;
/** Floors of a lift, or relays of a door. */
const OUTPUTS_MAX = 64;
const LAST_MINUTE = 24 * 60 - 1;
/** What every lock, database and client can hold. */
const NUMBER_MAX = 2_147_483_647;

const text = (max: number) => printable.min(1).max(max);

export const doorId = z.guid('expected a UUID').toLowerCase();
export const doorName = text(NAME_MAX);
const clearableDoorName = clearableName(NAME_MAX);
export const accessPointId = z.int().min(1).max(NUMBER_MAX);
const doorNumber = z.int().min(0).max(NUMBER_MAX);

const minute = z.int().min(0).max(LAST_MINUTE);
const interval = z.strictObject({ start: minute, end: minute }).openapi({
  description:
    'Minutes of the day in the site’s time, from `start` until before `end`. An `end` before `start` is on the next day, so 0 is midnight; where both are the same it lasts the whole day.',
});

/** Many systems write the end of the day as 1440; it is kept as 0, which means the same midnight. */
const intervalBody = z
  .strictObject({
    start: minute,
    end: z
      .int()
      .min(0)
      .max(LAST_MINUTE + 1)
      .overwrite((end) => (end > LAST_MINUTE ? 0 : end)),
  })
  .openapi({
    description:
      'Minutes of the day in the site’s time, from `start` until before `end`. An `end` before `start` is on the next day; 1440 is midnight, as 0 is, and is read back as 0. Where both are the same it lasts the whole day.',
  });

const doorReference = z.strictObject({ id: looseId, type: identifier.nullable().optional() });
const references = z.array(doorReference).max(REFERENCES_MAX);

const output = z.strictObject({
  doorId: looseId,
  access: z.strictObject({ doors: references.nullable().optional() }).nullable().optional(),
});

/** As a client may send it: absent stays, null is cleared, a list replaces the one before. */
const doorOptionsBody = z.strictObject({
  accessInternal: z
    .strictObject({
      doors: references.nullable().optional().openapi({ description: 'Keys of these doors open this one' }),
      interval: intervalBody.nullable().optional().openapi({ description: 'When they do; null: always' }),
    })
    .nullable()
    .optional(),
  outputs: z.array(output).max(OUTPUTS_MAX).nullable().optional().openapi({
    description: 'On a lift or relay door: which output opens for keys of which doors',
  }),
});
export type DoorOptionsBody = z.infer<typeof doorOptionsBody>;

const storedReference = z.object({ id: z.string(), type: z.string().nullable() });
const storedReferences = z.array(storedReference);
export type DoorReference = z.infer<typeof storedReference>;

export const doorOptions = z
  .object({
    accessInternal: z.object({ doors: storedReferences, interval: interval.nullable() }),
    outputs: z.array(z.object({ doorId: z.string(), access: z.object({ doors: storedReferences }) })),
  })
  .openapi('DoorOptions');
/** As it is kept: nothing absent. */
export type DoorOptions = z.infer<typeof doorOptions>;

export const dateTime = z.iso.datetime();
const versionOf = z.object({ id: z.string(), version: z.int() });

export const doorFields = {
  id: doorId,
  name: z.string().nullable(),
  groupId: z.string().nullable(),
  accessPointId: accessPointId.openapi({ description: 'Unique on the site, given at creation' }),
  applied: z
    .object({
      appliedBy: z.guid().openapi({ description: 'Who asked for what is in force' }),
      appliedOn: dateTime,
      payloads: z.array(z.string()).openapi({ description: 'Base64 of the frames as sent' }),
      versions: z.object({
        doorVersion: z.int(),
        schedule: versionOf.nullable(),
        systemConfigVersion: z.int(),
        template: versionOf.nullable(),
      }),
    })
    .nullable()
    .openapi({
      description:
        'What the lock acknowledged last, also when it has lost it since (…/state says `inForce`); null until it did',
    }),
  bleFirmwareVersion: z.string().nullable(),
  capabilities: z.array(z.string()),
  configVersion: z.int().openapi({ description: 'Grows with each change of what travels to the lock' }),
  connectionState: z.object({
    evaluatedStates: z.object({
      lastReceivedEvent: z.boolean(),
      lqiOK: z.boolean(),
      recentlySeen: z.boolean(),
      rssiOK: z.boolean(),
    }),
    lastContact: dateTime.nullable(),
    lastEvent: dateTime.nullable(),
    lastSeen: z.int().nullable().openapi({ description: 'Epoch milliseconds' }),
    lqi: z.int().nullable(),
    rssi: z.int().nullable(),
  }),
  connectionType: z.string().nullable(),
  createdAt: dateTime,
  createdBy: z.guid(),
  updatedAt: dateTime,
  updatedBy: z.guid(),
  dueBatteryUnderLoad: z.int().nullable().openapi({ description: 'Millivolts' }),
  dueBatteryWithoutLoad: z.int().nullable().openapi({ description: 'Millivolts' }),
  gatewayId: z.string().nullable(),
  interval: interval.nullable().openapi({ description: 'options.accessInternal.interval' }),
  lccVersion: z.string().nullable(),
  lcuFirmwareVersion: z.string().nullable(),
  lockId: z.guid().nullable(),
  mac: z.string().nullable(),
  networkId: z.string().nullable(),
  onlineEnabled: z.boolean(),
  pmsId: z.string().nullable(),
  relaySetup: z.string().nullable(),
  samVersion: z.string().nullable(),
  scheduleId: z.string().nullable(),
  standOpenEnabled: z.boolean(),
  templateId: z.string().nullable(),
  type: z.string().nullable(),
  version: z.int().openapi({ description: 'Grows with each change; the ETag' }),
  zigbeeFirmwareVersion: z.string().nullable(),
};
export const door = z.object(doorFields).openapi('Door');
export type Door = z.infer<typeof door>;

/** What 4.4 can change. */
export const editableFields = {
  name: clearableDoorName.optional(),
  groupId: identifier.nullable().optional(),
  number: doorNumber.nullable().optional(),
  options: doorOptionsBody.nullable().optional(),
  standOpenEnabled: z.boolean().optional(),
  pmsId: identifier.nullable().optional(),
  scheduleId: identifier.nullable().optional(),
  templateId: identifier.nullable().optional(),
};
const editable = z.object(editableFields);
export type DoorEdit = z.infer<typeof editable>;

export const updateBody = z
  .strictObject({
    ...editableFields,
    id: z.guid('expected a UUID').optional().openapi({ description: 'Must be the one in the path' }),
    version: z
      .int()
      .min(1)
      .max(NUMBER_MAX)
      .optional()
      .openapi({ description: 'When given, must be the present one' }),
    // `state` is of the rows of a list.
    ...readOnlyFields({ ...doorFields, state: null }, [...Object.keys(editableFields), 'id', 'version']),
  })
  .openapi('DoorUpdate', { description: 'What is absent stays as it is; null clears.' });
export type DoorUpdate = DoorEdit & { id?: string | undefined; version?: number | undefined };

export const createBody = z
  .strictObject({
    name: clearableDoorName.optional(),
    accessPointId: accessPointId
      .optional()
      .openapi({ description: 'Unique on the site; by default the lowest that is free' }),
    mac: ieeeAddress.nullable().optional().openapi({ description: 'IEEE address of the lock' }),
    gatewayId: looseId.nullable().optional(),
    networkId: looseId.nullable().optional(),
    connectionType: connectionType.nullable().optional(),
  })
  .openapi('DoorCreation');
export type DoorCreation = z.infer<typeof createBody>;

export const doorOptionsResult = z
  .object({ id: doorId, number: z.int().nullable(), options: doorOptions })
  .openapi('DoorOptionsState', { description: 'Can be put to the door as it is.' });
export type DoorOptionsResult = z.infer<typeof doorOptionsResult>;

/** What travels to a lock, as it is stored when the lock has acknowledged it. */
export const travellingWanted = z.object({
  name: z.string().nullable(),
  number: z.int().nullable(),
  options: doorOptions,
  standOpenEnabled: z.boolean(),
  scheduleId: z.string().nullable(),
  templateId: z.string().nullable(),
});
export type TravellingWanted = z.output<typeof travellingWanted>;

export const applyFailure = applyFailureOf('Not tried again until it is changed');

export const UNLOCK_OUTCOMES = ['confirmed', 'accepted', 'jammed', 'refused', 'unknown'] as const;
/** What the audit keeps of one; without an outcome nothing was sent, and of an intent nothing is known yet. */
export const lastUnlockDetail = z.object({
  via: connectionType,
  /** Of the lock that was sent the command. */
  mac: z.string().optional(),
  outcome: z.enum(UNLOCK_OUTCOMES).optional(),
  reason: z.string().nullable().default(null),
  lateOutcome: z
    .object({ outcome: z.enum(['confirmed']), at: z.int() })
    .nullable()
    .default(null),
});

export const offlineReason = z
  .object({ code: z.enum(OFFLINE_CODES), message: z.string().openapi({ description: 'What to do' }) })
  .openapi('DoorOfflineReason');

const lastUnlock = z.object({
  at: dateTime.openapi({ description: 'When it was asked for' }),
  by: z.guid(),
  via: connectionType,
  outcome: z
    .enum([...UNLOCK_OUTCOMES, 'failed'])
    .nullable()
    .openapi({ description: 'failed: nothing was sent · null: it is under way' }),
  reason: z.string().nullable(),
  lateOutcome: z
    .object({
      outcome: z.enum(['confirmed']),
      at: dateTime.openapi({ description: 'When the lock reported it' }),
    })
    .nullable()
    .openapi({
      description:
        'What became known after `outcome` was answered: the lock reported an unlock by radio, and no other command can have caused it. `outcome` stays as it was answered',
    }),
});
export type LastUnlock = z.infer<typeof lastUnlock>;

export const LOCK_OUTCOMES = [...UNLOCK_OUTCOMES, 'waiting'] as const;
/** What the audit keeps of one, as lastUnlockDetail. */
export const lastLockDetail = lastUnlockDetail
  .pick({ via: true, reason: true })
  .extend({ outcome: z.enum(LOCK_OUTCOMES).optional() });

const lastLock = lastUnlock.pick({ at: true, by: true, via: true, reason: true }).extend({
  outcome: z
    .enum([...LOCK_OUTCOMES, 'failed'])
    .nullable()
    .openapi({
      description:
        'waiting: nothing was sent then, and `relock.pending` shows the outcome · failed: nothing was sent · null: it is under way',
    }),
});
export type LastLock = z.infer<typeof lastLock>;

export const doorState = z
  .object({
    id: doorId,
    group: z.string().nullable().openapi({ description: 'Name of the group' }),
    unknown: unknownReferences,
    relay: z
      .object({ deviceId: z.guid(), settled: z.boolean() })
      .nullable()
      .openapi({ description: 'The RS-485 device that opens this door, and whether it has its settings' }),
    offline: offlineReason
      .nullable()
      .openapi({ description: 'Why it is not reached; null: it is, or has neither a lock nor a relay' }),
    standingOpen,
    relock: relockState.nullable().openapi({
      description:
        'Who locks the door again after an unlock, and what the gateway has still to lock; null: the door has no lock',
    }),
    effective: z
      .object({
        standOpenEnabled: z.boolean(),
        schedule: versionOf.nullable(),
        template: versionOf.nullable(),
      })
      .openapi({ description: 'What goes to the lock: stand-open only where the template allows it' }),
    connection: z
      .object({
        status: z.enum(['connected', 'disconnected', 'unknown']).openapi({
          description:
            'unknown: its gateway is lost, has not reported the lock since it came back, or moves its network to another channel',
        }),
        since: dateTime,
        reportAge: z.int().nullable().openapi({
          description:
            'Milliseconds since the lock itself was heard last; null: not since the gateway started, what the door shows is older',
        }),
        leftAt: dateTime.nullable().openapi({
          description:
            'When the lock left its network; it is the lock of this door still, and may join again',
        }),
      })
      .nullable()
      .openapi({ description: 'null: the door has no lock' }),
    doubled: z
      .object({
        gatewayIds: z.array(z.string()).openapi({
          description:
            'That of the door, and the one through which another lock with its `mac` is heard; that of the door alone where two locks share a network address there',
        }),
        since: dateTime,
        message: z.string().openapi({ description: 'What to do' }),
      })
      .nullable()
      .openapi({
        description:
          'Two locks have one address. Two with the `mac` of this door are heard through two gateways: the door stays at the first until one of them is gone. Or the lock shares its network address with another device: until each has its own, what opens the door is refused (503 DEVICE_OFFLINE)',
      }),
    lastUnlock: lastUnlock.nullable().openapi({ description: 'null: it was never unlocked by the gateway' }),
    lastLock: lastLock
      .nullable()
      .openapi({ description: 'By POST …/lock; null: it was never locked that way' }),
    ...lockConditions,
    configuration: z.object({
      wanted: z.int().openapi({ description: 'configVersion' }),
      applied: z.int().nullable().openapi({ description: 'The configVersion acknowledged last' }),
      acknowledged: travellingWanted.nullable().openapi({
        description:
          'What was wanted of the door in that version; compare it with the door and …/options. Versions of schedule and template are in `applied` of the door. null: nothing was acknowledged',
      }),
      reported: z.int().nullable().openapi({ description: 'The configVersion the lock says it has' }),
      inForce: z.boolean().openapi({ description: 'What is wanted is what the lock has' }),
      waiting: z.boolean().openapi({ description: 'It is to be sent' }),
      failure: applyFailure.nullable(),
      nextAttempt: dateTime.nullable(),
      unsupported: z
        .array(z.string())
        .openapi({ description: 'What is wanted and the lock cannot carry; it stays wanted' }),
    }),
  })
  .openapi('DoorState');
export type DoorState = z.infer<typeof doorState>;
