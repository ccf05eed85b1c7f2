/** The Zigbee gateway operations of the interface: 4.6 and its reads. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { WIRING_READERS } from '../../platform/principal.ts';
import { gatewayActions } from './action-operations.ts';
import { deviceId, listQuery, updateBody, zgate, zgatePage, zgateState } from './schema.ts';
import type { Zgates } from './zgates.ts';

const params = z.object({ deviceId });
const tag = 'Zigbee gateways';
const reading = { method: 'get', tag, access: WIRING_READERS } as const;
const path = '/network/zgate/{deviceId}';
export function zgateOperations(zgates: Zgates): Operation[] {
  return [...resource(zgates), ...gatewayActions(zgates, path)];
}

function resource(zgates: Zgates): Operation[] {
  return [
    operation({
      id: 'updateZigbeeGateway',
      method: 'put',
      path,
      tag,
      summary: 'Update a Zigbee gateway',
      description:
        'A field that is absent stays as it is. Gateways come from the configuration. `zigbeeChannel` follows `allowedChannels`; `…/state` says what keeps it.',
      access: ['front-desk-admin', 'service-tool'],
      params,
      body: updateBody,
      result: zgate,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'PRECONDITION_FAILED'],
      async handler({ params, body, editor }) {
        const { zgate, revision } = await zgates.update(params.deviceId, body, editor);
        return { body: zgate, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'listZigbeeGateways',
      path: '/network/zgate',
      summary: 'List Zigbee gateways',
      query: listQuery,
      result: zgatePage,
      handler: ({ query }) => ({ body: zgates.list(query) }),
    }),
    operation({
      ...reading,
      id: 'getZigbeeGateway',
      path,
      summary: 'Read a Zigbee gateway',
      params,
      result: zgate,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { zgate, revision } = zgates.get(params.deviceId);
        return { body: zgate, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'getZigbeeGatewayState',
      path: `${path}/state`,
      summary: 'Read what is known of a Zigbee gateway beyond its resource',
      params,
      result: zgateState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: zgates.state(params.deviceId) }),
    }),
  ];
}
