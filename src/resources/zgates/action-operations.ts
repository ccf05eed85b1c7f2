/** What a technician does with a Zigbee gateway. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { TECHNICIANS } from '../../platform/principal.ts';
import { startsJob } from '../../services/jobs/schema.ts';
import { channelMoveBody, permitJoinBody, permitJoinResult } from './action-schema.ts';
import { deviceId } from './schema.ts';
import type { Zgates } from './zgates.ts';

const params = z.object({ deviceId });
const common = { method: 'post', tag: 'Zigbee gateways', access: TECHNICIANS, params } as const;

/** `path` is that of one gateway. */
export function gatewayActions(zgates: Zgates, path: string): Operation[] {
  return [
    operation({
      ...common,
      id: 'permitJoin',
      path: `${path}/permit-join`,
      summary: 'Let locks join for a time',
      description:
        'Opens the join window for `seconds`, or closes it with 0. It closes at its end, and when the gateway or Gatehouse is started again; who opened it is in the audit. With a list only those may join; a lock with an install code gets a key of its own. Who was to join and did not is in `failedJoins` of …/state. 503 DEVICE_OFFLINE: should it be open nevertheless, it is closed within seconds.',
      body: permitJoinBody,
      result: permitJoinResult,
      errors: ['NOT_FOUND', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await zgates.permitJoin(params.deviceId, body, caller),
      }),
    }),
    operation({
      ...common,
      id: 'moveChannel',
      path: `${path}/channel-move`,
      summary: 'Move a network to another channel',
      description:
        'As a job: orders the network to move, once, then counts for 15 minutes at most which locks are heard of again. `result` of the finished job: {channel, before, locks, followed, stragglers [{doorId, name, mac, lastSeen}], energies, warning: that the new channel was busy; both null when it could not be measured}. Locks that were not seen lately may be lost by it: CONFIRMATION_NEEDED names them, unless the body has `confirm`. To move back, name the channel before; allowedChannels have to allow it.',
      body: channelMoveBody,
      ...startsJob,
      errors: ['NOT_FOUND', 'CONFIRMATION_NEEDED', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await zgates.moveChannel(params.deviceId, body, caller),
      }),
    }),
    operation({
      ...common,
      id: 'scanEnergies',
      path: `${path}/energy-scan`,
      summary: 'Measure how busy each channel is',
      description:
        'As a job: the coordinator listens on each channel for a moment and hears nothing of its network for a second or two. `result` of the finished job: {at, channels [{channel, energy, isBusy}]}, also in `energies` of …/state. It is done before each channel move, and once a network was formed.',
      ...startsJob,
      errors: ['NOT_FOUND', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, caller }) => ({ body: await zgates.scanEnergies(params.deviceId, caller) }),
    }),
    operation({
      ...common,
      id: 'mapNetwork',
      path: `${path}/map`,
      summary: 'Ask every router of a network which devices it hears',
      description:
        'As a job, for it takes seconds for each. `result` of the finished job: {nodes [{hwId, type}], links [{from, to, lqi, isRoute}], silent: routers that did not answer}.',
      ...startsJob,
      errors: ['NOT_FOUND', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, caller }) => ({ body: await zgates.map(params.deviceId, caller) }),
    }),
  ];
}
