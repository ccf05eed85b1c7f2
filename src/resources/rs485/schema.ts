/** The RS-485 device as the interface shows it (interface specification 2.4) and the body of 4.5. */
import { z } from '@hono/zod-openapi';
import {
  type IoPins,
  PINS,
  type Pin,
  RELAY_FAULTS,
  RELAY_MAX,
  SESSION_FAULTS,
  UNLOCK_MAX_MS,
  UNLOCK_MIN_MS,
} from '../../../drivers/contract/settings.ts';
import { readOnlyFields } from '../../platform/http/editing.ts';
import {
  applyFailureOf,
  clearableName,
  DESCRIPTION_MAX,
  identifier,
  lines,
  looseId,
  NAME_MAX,
  pageLimit,
  pageOf,
  unknownReferences,
} from '../../platform/http/fields.ts';
import { pulseResult, wire } from './bus-schema.ts';

const IDENTIFIER_MAX = 64;

const description = lines.max(DESCRIPTION_MAX);

const dateTime = z.iso.datetime();
const nameVersion = z.object({ name: z.string(), version: z.string() });
const version = z.object({ version: z.string() });

/** Any id finds its device or none; case does not matter in a UUID. */
export const deviceId = looseId.openapi({ example: '1b6f4c0e-55d5-4a4c-8c5a-1f1f0d6a4a10' });

const pins = (pin: z.ZodType<boolean | undefined>) =>
  Object.fromEntries(PINS.map((name) => [name, pin])) as Record<Pin, z.ZodType<boolean | undefined>>;

const deviceFields = {
  deviceId: z.guid(),
  name: z.string().nullable(),
  description: z.string().nullable(),
  doorId: z.string().nullable(),
  groupId: z.string().nullable(),
  group: z.string().nullable().openapi({ description: 'Name of the group' }),
  hwId: z.string(),
  type: z.string().nullable(),
  relayIndex: z.int().nullable(),
  unlockDurationMilliseconds: z.int().nullable(),
  useInputPinMemory: z.boolean(),
  ioPins: z.object(pins(z.boolean())).openapi({ description: 'Which pins are in use; never their levels' }),
  reportedSettingsVersion: z
    .int()
    .openapi({ description: 'Of the settings in force; 0: none were ever put' }),
  settingsVersion: z.int().openapi({
    description:
      'Of the settings wanted: ioPins, relayIndex, unlockDurationMilliseconds, useInputPinMemory; each change has the next number of all devices, and so have settings that are sent again after a write without an answer. 0: none were ever wanted, and the device is left as it is',
  }),
  apps: z.array(nameVersion),
  platform: version.nullable(),
  connectionState: z.object({ changedOn: dateTime, connected: z.boolean() }),
  upgradeJobInfo: z.object({ app: z.array(nameVersion), id: z.string(), platform: version }).nullable(),
};
export const rs485Device = z.object(deviceFields).openapi('Rs485Device');
export type Rs485Device = Omit<z.infer<typeof rs485Device>, 'ioPins'> & { ioPins: IoPins };

/** What is wanted of a device, whole. */
export interface Wanted {
  name: string | null;
  description: string | null;
  doorId: string | null;
  groupId: string | null;
  ioPins: IoPins;
  relayIndex: number | null;
  unlockDurationMilliseconds: number | null;
  useInputPinMemory: boolean;
}

/** Absent: unchanged. Pins that are absent stay as they are; null takes all pins out of use. */
export type Edit = { [Field in Exclude<keyof Wanted, 'ioPins'>]?: Wanted[Field] | undefined } & {
  ioPins?: { [Name in Pin]?: boolean | undefined } | null | undefined;
};

const clears = { description: 'null clears it' };

const editable = {
  name: clearableName(NAME_MAX).optional(),
  description: description.nullable().optional().openapi(clears),
  doorId: looseId.nullable().optional().openapi({
    description:
      'The door this device’s relay opens: one device per door. A door that does not exist yet is fine; null clears it',
  }),
  groupId: identifier.nullable().optional().openapi(clears),
  ioPins: z
    .strictObject(pins(z.boolean().optional()))
    .nullable()
    .optional()
    .openapi({ description: 'Pins in use. A pin that is absent stays as it is; null takes all out of use' }),
  relayIndex: z.int().min(0).max(RELAY_MAX).nullable().optional().openapi(clears),
  unlockDurationMilliseconds: z
    .int()
    .min(UNLOCK_MIN_MS)
    .max(UNLOCK_MAX_MS)
    .nullable()
    .optional()
    .openapi({ description: 'null: the device’s own' }),
  useInputPinMemory: z.boolean().optional(),
};

export const updateBody = z
  .strictObject({
    deviceId: z.string().optional(),
    ...editable,
    ...readOnlyFields(deviceFields, ['deviceId', ...Object.keys(editable)]),
  })
  .openapi('Rs485DeviceUpdate');

const failure = applyFailureOf('The device refused it: only new settings are tried');

/** What the audit keeps of one; without an outcome nothing was fired, and of an intent nothing is known yet. */
export const lastPulseDetail = z.object({
  relay: z.int().nullable().default(null),
  outcome: pulseResult.shape.outcome.optional(),
  reason: z.string().nullable().default(null),
});

const lastPulse = z.object({
  at: dateTime.openapi({ description: 'When it was asked for' }),
  by: z.guid(),
  relay: z.int().nullable().openapi({ description: 'null: stored by a version that did not keep it' }),
  outcome: z
    .enum(['confirmed', 'unknown', 'failed'])
    .nullable()
    .openapi({ description: 'failed: nothing was fired · null: it is under way' }),
  reason: z.string().nullable(),
});
export type LastPulse = z.infer<typeof lastPulse>;

const watchdogState = z.object({
  milliseconds: z.int().openapi({ description: 'Without a request, until it opens the relay' }),
  proven: z.boolean().openapi({
    description:
      'A test has shown it, for this device, the relay in force and its profile as it is now. false: the relay is not fired (WATCHDOG_NOT_PROVEN)',
  }),
  provenAt: dateTime.nullable(),
  provenBy: z.guid().nullable(),
  awaitsWitness: z.boolean().openapi({
    description: 'A test has ended well, and somebody is to say whether the relay opened by itself',
  }),
  unfed: z.object({ pauseMilliseconds: z.int(), at: dateTime }).nullable().openapi({
    description:
      'The last time within ten minutes that it was not fed in time: nothing was answered for so long, as the gateway was held up or the bus is too slow. After three such pauses within two minutes the relay is not fired. null: none',
  }),
});
export type WatchdogState = z.infer<typeof watchdogState>;

export const rs485DeviceState = z
  .object({
    deviceId: z.guid(),
    bus: z.string().openapi({ description: 'The link it is on' }),
    busUp: z.boolean().nullable().openapi({ description: 'null: the configuration has no such link' }),
    inForce: z.boolean().openapi({ description: 'The device has the settings that are wanted' }),
    failure: failure
      .nullable()
      .openapi({ description: 'Why the settings wanted were not put in force at the last attempt' }),
    nextAttempt: dateTime.nullable(),
    unknown: unknownReferences,
    reportAge: z.int().nullable().openapi({
      description: 'Milliseconds since the device was last heard of; null: not since the gateway started',
    }),
    readAge: z.int().nullable().openapi({
      description: 'Levels are as of so many milliseconds ago at the earliest; null: none are shown',
    }),
    address: z.int().nullable().openapi({ description: 'On its bus; null: not heard of yet' }),
    profile: z.string().nullable().openapi({ description: 'What product its driver takes it for' }),
    levels: z.record(z.string(), z.boolean()).openapi({
      description:
        'What the pins showed (`readAge`); empty from when the device falls silent until they are read again',
    }),
    edges: z
      .record(z.string(), z.object({ total: z.int(), at: dateTime }))
      .openapi({ description: 'Activations of inputs since the driver began, and the last one' }),
    tamper: z
      .boolean()
      .nullable()
      .openapi({ description: 'null: the product does not report it, as the next' }),
    supplyFault: z.boolean().nullable(),
    security: z.enum(['secure', 'clear', 'unpaired', 'none']).nullable().openapi({
      description:
        'OSDP: `secure` channel, `clear` text as configured, `unpaired` (it has no key yet), or `none` where one is required. null: another protocol',
    }),
    sessionFault: z.enum(SESSION_FAULTS).nullable().openapi({
      description:
        'OSDP: why there is no session with a device that answers. `wrongKey`: it refuses the key that is stored for it; `downgrade`: it wants less security than is required, as after a reset; `securityRequired`: it wants a secure channel, and none is configured; `duplicateAddress`: two devices answer at its address',
    }),
    lastCredential: z
      .object({
        at: dateTime,
        reader: z.int(),
        format: z.enum(['raw', 'wiegand', 'keypad']),
        count: z.int().openapi({ description: 'Bits of the card, or number of keys' }),
        doorId: z.guid().nullable().openapi({ description: 'The door of the device then' }),
      })
      .nullable()
      .openapi({
        description:
          'OSDP: the card or the keys that were presented last; their bits are in the event alone. null: none since the gateway started',
      }),
    lastPulse: lastPulse.nullable().openapi({ description: 'null: the gateway never fired its relay' }),
    pulse: z
      .object({ relay: z.int().nullable(), remainingMilliseconds: z.int() })
      .nullable()
      .openapi({ description: 'The relay pulse under way' }),
    relayFault: z
      .object({ relay: z.int(), fault: z.enum(RELAY_FAULTS), at: dateTime })
      .nullable()
      .openapi({
        description:
          'A relay that did not open at the end of its pulse. `stillClosed`: it was read as closed, and is switched off until it opens; `notRead`: it cannot be read, and no one knows; `openedByGateway`: the device was to open it by itself and did not, so the gateway opened it, and nothing is fired any more. Compare the pulse of its profile with the manual, mend it or exchange the device, and restart the gateway',
      }),
    effectiveUnlockMilliseconds: z.int().nullable().openapi({
      description: 'What unlockDurationMilliseconds becomes on this product; null: the device’s own',
    }),
    watchdog: watchdogState.nullable().openapi({
      description:
        'The gateway times the relay, and this watchdog of the device opens it when the gateway dies. null: the device opens it by itself, or was not heard of',
    }),
    unsupported: z
      .array(z.string())
      .openapi({ description: 'Settings and pins that the product cannot carry' }),
    wire: wire.nullable().openapi({ description: 'How well it is heard; null: no one asks it' }),
  })
  .openapi('Rs485DeviceState');
export type Rs485DeviceState = z.infer<typeof rs485DeviceState>;

export const rs485Page = pageOf(rs485Device).openapi('Rs485DevicePage');

export const listQuery = z.strictObject({
  cursor: z.guid().toLowerCase().optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
  bus: z.string().max(IDENTIFIER_MAX).optional(),
  groupId: z.string().max(IDENTIFIER_MAX).optional(),
  doorId: looseId.optional(),
  connected: z.enum(['true', 'false']).optional(),
  name: z
    .string()
    .max(NAME_MAX)
    .optional()
    .openapi({ description: 'Part of the name, the hwId or the deviceId, in any case' }),
});
export type ListQuery = z.output<typeof listQuery>;
