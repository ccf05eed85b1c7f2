/** What is done with a Zigbee gateway beside its settings, as the interface shows it. */
import { z } from '@hono/zod-openapi';
import { joinFailure, PERMIT_JOIN_MAX_SECONDS } from '../../../drivers/contract/zgate.ts';
import { ieeeAddress } from '../../platform/http/fields.ts';
import { UNREACHABLE } from './gateway-locks.ts';

/** One delivery of locks, generously; what drivers take (drivers/contract/zgate.ts). */
const JOINERS_MAX = 256;
/** IEEE 802.15.4, 2.4 GHz. */
const channel = z.int().min(11).max(26);
const dateTime = z.iso.datetime();

export const permitJoinBody = z
  .strictObject({
    seconds: z
      .int()
      .min(0)
      .max(PERMIT_JOIN_MAX_SECONDS)
      .openapi({ description: 'How long locks may join; 0 closes the window' }),
    allowed: z.array(ieeeAddress).max(JOINERS_MAX).optional().openapi({
      description:
        'IEEE addresses of those who may. Without it: anyone who asks, or those with an install code alone where there are any. A list that names no one is refused',
    }),
    installCodes: z
      .array(
        z.strictObject({
          mac: ieeeAddress,
          code: z
            .string()
            .regex(
              /^[0-9a-fA-F]{2}(([ :-]?[0-9a-fA-F]{2}){7}|([ :-]?[0-9a-fA-F]{2}){9}|([ :-]?[0-9a-fA-F]{2}){13}|([ :-]?[0-9a-fA-F]{2}){17})$/,
              'expected 6, 8, 12 or 16 bytes and the 2 of their CRC, in hex',
            )
            .overwrite((code) => code.replaceAll(/[ :-]/g, ''))
            .openapi({
              description:
                'As printed on the lock: 6, 8, 12 or 16 bytes and their CRC; blanks, - and : are left out',
            }),
        }),
      )
      .max(JOINERS_MAX)
      .default([])
      .openapi({ description: 'Of locks that join with a key of their own, one each' }),
  })
  .superRefine(({ seconds, allowed, installCodes }, context) => {
    const refuse = (path: PropertyKey[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    if (seconds > 0 && allowed?.length === 0 && installCodes.length === 0)
      refuse(['allowed'], 'names no one: leave it out to let in anyone who asks, or name those who may join');
    for (const [index, { mac }] of installCodes.entries())
      if (installCodes.findIndex((one) => one.mac === mac) < index)
        refuse(['installCodes', index, 'mac'], 'is in the list already: a lock has one install code');
  })
  .openapi('PermitJoin');
export type PermitJoinBody = z.output<typeof permitJoinBody>;

export const joinWindow = z
  .object({
    openedAt: dateTime,
    until: dateTime,
    openedBy: z.guid(),
    allowed: z.array(z.string()).openapi({ description: 'None: anyone who asks' }),
  })
  .openapi('JoinWindow');
export type ShownJoinWindow = z.infer<typeof joinWindow>;

export const failedJoin = z
  .object({
    mac: z.string(),
    at: dateTime,
    reason: z.enum(joinFailure.options).openapi({
      description:
        'notAllowed: it asked, and the window was open for others · installCode: it did not come with the code entered for it by the end of the window · silent: it joined, and did not say what it is · noLock: it joined, and is none',
    }),
    message: z.string().openapi({ description: 'What to do' }),
  })
  .openapi('FailedJoin');
export type ShownFailedJoin = z.infer<typeof failedJoin>;

export const permitJoinResult = z
  .object({ deviceId: z.guid(), joinWindow: joinWindow.nullable() })
  .openapi('PermitJoinResult');

export const energies = z
  .object({
    at: dateTime,
    channels: z.array(
      z.object({
        channel,
        energy: z
          .int()
          .min(0)
          .max(255)
          .openapi({ description: 'As the coordinator hears it; 255 is the most' }),
        isBusy: z.boolean().openapi({ description: 'From three quarters on' }),
      }),
    ),
  })
  .openapi('ChannelEnergies');
export type ShownEnergies = z.infer<typeof energies>;

export const channelMoveBody = z
  .strictObject({
    channel: channel.optional().openapi({
      description:
        'Where to; one of allowedChannels, if there are any. By default the lowest of those, when the network is on none of them',
    }),
    confirm: z.boolean().default(false).openapi({
      description: 'Also when locks are disconnected or were not seen lately, and may be lost by it',
    }),
  })
  .openapi('ChannelMove');
export type ChannelMoveBody = z.output<typeof channelMoveBody>;

const gatewayLock = z.object({
  doorId: z.guid(),
  name: z.string().nullable(),
  mac: z.string(),
  lastSeen: z.int().nullable().openapi({ description: 'Epoch milliseconds' }),
  heardOn: z
    .int()
    .nullable()
    .openapi({ description: 'The channel of the network when it was last heard of; null: not known' }),
});

export const stayedBehind = z
  .object({
    locks: z.array(gatewayLock),
    message: z.string().openapi({ description: 'What to do' }),
  })
  .openapi('LocksLeftBehind');
export type ShownStayedBehind = z.infer<typeof stayedBehind>;

export const neededMove = z.object({
  from: z.int(),
  to: z.int(),
  unseen: z
    .array(
      gatewayLock.extend({
        reason: z.enum(UNREACHABLE).openapi({
          description:
            'STAYED_BEHIND: it did not follow an earlier move · DISCONNECTED: it does not answer · UNKNOWN: its gateway has not reported it since it started',
        }),
      }),
    )
    .openapi({
      description:
        'Locks that are not known to be there. With none the network moves by itself, once; else `channel-move` is to confirm',
    }),
});
