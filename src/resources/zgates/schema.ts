/** The Zigbee gateway as the interface shows it (interface specification 2.5) and the body of 4.6. */
import { z } from '@hono/zod-openapi';
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
import { energies, failedJoin, joinWindow, neededMove, stayedBehind } from './action-schema.ts';

const IDENTIFIER_MAX = 64;
/** IEEE 802.15.4, 2.4 GHz. */
const CHANNEL_MIN = 11;
const CHANNEL_MAX = 26;
const CHANNELS_MAX = CHANNEL_MAX - CHANNEL_MIN + 1;

const dateTime = z.iso.datetime();
const nameVersion = z.object({ name: z.string(), version: z.string() });
const version = z.object({ version: z.string() });

/** Any id finds its gateway or none; case does not matter in a UUID. */
export const deviceId = looseId.openapi({ example: '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40' });

const zgateFields = {
  deviceId: z.guid(),
  name: z.string().nullable(),
  description: z.string().nullable(),
  groupId: z.string().nullable(),
  group: z.string().nullable().openapi({ description: 'Name of the group' }),
  hwId: z.string().nullable().openapi({ description: 'IEEE address of the coordinator' }),
  type: z.string().nullable().openapi({ description: 'The adapter' }),
  networkId: z.guid(),
  allowedChannels: z
    .array(z.int())
    .openapi({ description: 'Channels the network may be on, lowest first; none: any' }),
  zigbeeChannel: z.int().nullable().openapi({ description: 'The channel the network is on' }),
  permitJoin: z.boolean().openapi({ description: 'The join window is open' }),
  apps: z.array(nameVersion).openapi({ description: 'The Zigbee stack of the coordinator' }),
  platform: version.nullable().openapi({ description: 'Firmware of the coordinator' }),
  connectionState: z.object({ changedOn: dateTime, connected: z.boolean() }),
  upgradeJobInfo: z
    .object({ app: z.array(nameVersion), id: z.string(), platform: version })
    .nullable()
    .openapi({
      description:
        'What the gateway gives to one of its locks: `app` has the door and the file, `id` the job; `platform` is the firmware that the coordinator keeps. null when nothing is given',
    }),
};
export const zgate = z.object(zgateFields).openapi('ZigbeeGateway');
export type Zgate = z.infer<typeof zgate>;

/** What is wanted of a gateway, whole. */
export interface Wanted {
  name: string | null;
  description: string | null;
  groupId: string | null;
  /** Lowest first; none: any. */
  allowedChannels: number[];
}
/** Absent: unchanged. */
export type Edit = { [Field in keyof Wanted]?: Wanted[Field] | undefined };

const clears = { description: 'null clears it' };
const allowedChannels = z
  .array(z.int().min(CHANNEL_MIN).max(CHANNEL_MAX))
  .max(CHANNELS_MAX)
  .refine((channels) => new Set(channels).size === channels.length, 'expected each channel once')
  .nullable()
  .transform((channels) => (channels ?? []).toSorted((a, b) => a - b))
  .openapi({
    uniqueItems: true,
    description:
      'Channels the network may be on. If it is on another, it has to move: by itself, to the lowest of these and once, when each of its locks is connected and was seen lately; else `…/channel-move` is to confirm it (`move` in …/state). null or [] lifts the restriction: the network stays where it is.',
  });

const editable = {
  name: clearableName(NAME_MAX).optional(),
  description: lines.max(DESCRIPTION_MAX).nullable().optional().openapi(clears),
  groupId: identifier.nullable().optional().openapi(clears),
  allowedChannels: allowedChannels.optional(),
};

export const updateBody = z
  .strictObject({
    deviceId: z.string().optional(),
    ...editable,
    ...readOnlyFields(zgateFields, ['deviceId', ...Object.keys(editable)]),
  })
  .openapi('ZigbeeGatewayUpdate');

const failure = applyFailureOf('The gateway refused it: only another choice is tried');

export const zgateState = z
  .object({
    deviceId: z.guid(),
    link: z.string().openapi({ description: 'The link it is on' }),
    linkUp: z.boolean().nullable().openapi({ description: 'null: the configuration names it no more' }),
    linkError: z
      .string()
      .nullable()
      .openapi({ description: 'Why the link is down, as far as that is known' }),
    inForce: z.boolean().openapi({ description: 'The network is where allowedChannels wants it' }),
    failure: failure.nullable().openapi({ description: 'Why the last attempt to apply them failed' }),
    nextAttempt: dateTime.nullable(),
    restore: z
      .object({
        snapshot: z.int().nullable().openapi({ description: 'Null: a new network' }),
        newNetwork: z
          .string()
          .nullable()
          .openapi({ description: 'The network that the coordinator carried when it was asked for' }),
        until: dateTime,
      })
      .nullable()
      .openapi({
        description:
          'What somebody wants on the coordinator; until its link is up, and no longer than `until`',
      }),
    move: neededMove
      .nullable()
      .openapi({ description: 'allowedChannels exclude the present channel: the network has to move' }),
    stayedBehind: stayedBehind.nullable().openapi({
      description:
        'The network has moved, and these of its locks were last heard of on another channel; null: there are none',
    }),
    joinWindow: joinWindow
      .nullable()
      .openapi({ description: 'Who lets locks join, until when; `permitJoin` is what the gateway says' }),
    failedJoins: z.array(failedJoin).openapi({
      description: 'Who was to join and did not, the newest first; until it has joined, for a week at most',
    }),
    energies: energies
      .extend({
        warning: z.string().nullable().openapi({ description: 'That the present channel is busy' }),
      })
      .nullable()
      .openapi({
        description: 'How busy the channels were, measured last; null: not since Gatehouse started',
      }),
    firmwareWarning: z.string().nullable().openapi({
      description: 'What is known to be wrong with the firmware of the coordinator, and what mends it',
    }),
    unknown: unknownReferences,
    reportAge: z.int().nullable().openapi({
      description: 'Milliseconds since it was last heard of; null: not since the gateway started',
    }),
  })
  .openapi('ZigbeeGatewayState');
export type ZgateState = z.infer<typeof zgateState>;

export const zgatePage = pageOf(zgate).openapi('ZigbeeGatewayPage');

export const listQuery = z.strictObject({
  cursor: z.guid().toLowerCase().optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
  networkId: z.guid().toLowerCase().optional(),
  groupId: z.string().max(IDENTIFIER_MAX).optional(),
  connected: z.enum(['true', 'false']).optional(),
  name: z
    .string()
    .max(NAME_MAX)
    .optional()
    .openapi({ description: 'Part of the name, the hwId or the deviceId, in any case' }),
});
export type ListQuery = z.output<typeof listQuery>;
