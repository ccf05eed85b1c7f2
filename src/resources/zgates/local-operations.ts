/** Snapshots of networks and their return, over the admin socket alone: gatehouse zgate. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { deviceId } from './schema.ts';
import type { Zgates } from './zgates.ts';

const dateTime = z.iso.datetime();
const snapshotsResult = z
  .object({
    items: z.array(
      z.object({
        deviceId: z.guid(),
        name: z.string().nullable(),
        link: z.string(),
        linkUp: z.boolean().nullable(),
        hwId: z.string().nullable(),
        zigbeeChannel: z.int().nullable(),
        snapshots: z
          .array(
            z.object({
              number: z.int(),
              takenAt: dateTime,
              locks: z.int(),
              hwId: z.string().openapi({ description: 'Of the coordinator it was taken of' }),
              zigbeeChannel: z.int().nullable(),
              bytes: z.int(),
            }),
          )
          .openapi({ description: 'Newest first' }),
      }),
    ),
  })
  .openapi('ZigbeeSnapshots');
export type ZigbeeSnapshots = z.infer<typeof snapshotsResult>;

const restoreBody = z
  .strictObject({
    snapshot: z.int().min(1).optional().openapi({ description: 'Its number; by default the newest' }),
    withoutKeys: z.boolean().optional().openapi({
      description:
        'Of a snapshot that was made with a coordinator of the other make, leave out the link keys of locks',
    }),
    newNetwork: z.literal(true).optional().openapi({
      description:
        'In the place of a snapshot, of a gateway that has none: form a new network, also where the coordinator carries that of another gateway',
    }),
  })
  .refine(({ newNetwork, ...snapshot }) => !newNetwork || Object.keys(snapshot).length === 0, {
    message: 'a new network has no snapshot and no keys of one',
    path: ['newNetwork'],
  })
  .openapi('ZigbeeRestore');

const restoreResult = z
  .object({
    deviceId: z.guid(),
    snapshot: z.int().nullable().openapi({ description: 'Null: a new network' }),
    takenAt: dateTime.nullable(),
    locks: z.int(),
  })
  .openapi('ZigbeeRestored');
export type ZigbeeRestored = z.infer<typeof restoreResult>;

const withdrawResult = z
  .object({ deviceId: z.guid(), withdrawn: z.boolean() })
  .openapi('ZigbeeRestoreWithdrawn');
export type ZigbeeRestoreWithdrawn = z.infer<typeof withdrawResult>;

export function zgateLocalOperations(zgates: Zgates): Operation[] {
  const common = { tag: 'Local', access: 'local' } as const;
  return [
    operation({
      ...common,
      id: 'listZigbeeSnapshots',
      method: 'get',
      path: '/local/zgates',
      summary: 'List the Zigbee gateways with the snapshots of their networks',
      result: snapshotsResult,
      handler: () => ({ body: { items: zgates.snapshots() } }),
    }),
    operation({
      ...common,
      id: 'restoreZigbeeNetwork',
      method: 'post',
      path: '/local/zgate/{deviceId}/restore',
      summary: 'Put the network of a snapshot on the coordinator of a gateway',
      description:
        'Its link starts again with the snapshot, which takes the place of what the coordinator and the driver have. Until it is up the order stands, also across restarts, for 15 minutes at most, and no longer than the gateway is in the configuration. An order for a new network is for the network that the coordinator carries now.',
      params: z.object({ deviceId }),
      body: restoreBody,
      result: restoreResult,
      errors: ['NOT_FOUND', 'ALREADY_EXISTS', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await zgates.restore(params.deviceId, body, caller),
      }),
    }),
    operation({
      ...common,
      id: 'withdrawZigbeeRestore',
      method: 'delete',
      path: '/local/zgate/{deviceId}/restore',
      summary: 'Withdraw what is to be put on the coordinator of a gateway',
      description: 'Its link starts again without. `withdrawn` false: nothing was wanted.',
      params: z.object({ deviceId }),
      result: withdrawResult,
      errors: ['NOT_FOUND'],
      handler: async ({ params, caller }) => ({
        body: await zgates.withdrawRestore(params.deviceId, caller),
      }),
    }),
  ];
}
