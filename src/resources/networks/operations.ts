/** The network operations of the interface: 4.7 and its reads. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { WIRING_READERS } from '../../platform/principal.ts';
import type { Networks } from './networks.ts';
import { listQuery, netId, network, networkPage, networkState, updateBody } from './schema.ts';

const params = z.object({ netId });
const tag = 'Networks';
const reading = { method: 'get', tag, access: WIRING_READERS } as const;
const path = '/network/{netId}';
export function networkOperations(networks: Networks): Operation[] {
  return [
    operation({
      id: 'updateNetwork',
      method: 'put',
      path,
      tag,
      summary: 'Update a network',
      description:
        'A field that is absent stays as it is. Networks come from the configuration. An expired certificate is taken, with a note in `…/state`.',
      access: ['front-desk-admin'],
      params,
      body: updateBody,
      result: network,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'CERT_INVALID', 'PRECONDITION_FAILED'],
      async handler({ params, body, editor }) {
        const { network, revision } = await networks.update(params.netId, body, editor);
        return { body: network, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'listNetworks',
      path: '/network',
      summary: 'List networks',
      query: listQuery,
      result: networkPage,
      handler: ({ query }) => ({ body: networks.list(query) }),
    }),
    operation({
      ...reading,
      id: 'getNetwork',
      path,
      summary: 'Read a network',
      params,
      result: network,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { network, revision } = networks.get(params.netId);
        return { body: network, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'getNetworkState',
      // Not /network/{netId}/state, which could not be distinguished from /network/rs485/{deviceId}.
      path: '/network/state/{netId}',
      summary: 'Read what is known of a network beyond its resource',
      params,
      result: networkState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: networks.state(params.netId) }),
    }),
  ];
}
