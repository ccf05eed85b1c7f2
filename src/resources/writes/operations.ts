/** The write request operations of the interface: 4.3, its reads and its cancellation. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES, type Role } from '../../platform/principal.ts';
import {
  BODY_LIMIT_BYTES,
  encoderParams,
  listQuery,
  requestParams,
  writeRequestBody,
  writeRequestPage,
  writeRequestStatus,
} from './schema.ts';
import type { Writes } from './writes.ts';

const tag = 'Write requests';
const path = '/encoder/{encoderId}/write-request/{requestId}';
/** Interface specification, 4.3. */
const writers: readonly [Role, ...Role[]] = ['front-desk', 'front-desk-admin', 'pms'];

export function writeOperations(writes: Writes): Operation[] {
  return [
    operation({
      id: 'sendWriteRequest',
      method: 'put',
      path,
      tag,
      summary: 'Send an encoder write request',
      description:
        'Accepts keys to be written on cards at a connected encoder, one card per entry of `data`, in order. Progress is reported as events, each with the keyId of its entry. The same request sent again, even while the encoder is offline, is answered with its current status and nothing is written twice; a requestId is remembered for 30 days after its request has finished. A key whose outcome cannot be known ends `unknown` and is never written again: send it as a new request after a look at the card.',
      access: writers,
      params: requestParams,
      body: writeRequestBody,
      bodyLimit: BODY_LIMIT_BYTES,
      status: 202,
      result: writeRequestStatus,
      location: ({ encoderId, requestId }) => `/encoder/${encoderId}/write-request/${requestId}`,
      errors: [
        'DUPLICATE_KEY_ID',
        'NOT_FOUND',
        'REQUEST_ID_REUSED',
        'NOT_CONNECTED',
        'ENCODER_UPGRADING',
        'QUEUE_FULL',
      ],
      handler: async ({ params, body, caller }) => ({ body: await writes.accept(params, body, caller) }),
    }),
    operation({
      id: 'getWriteRequest',
      method: 'get',
      path,
      tag,
      summary: 'Read the status of a write request',
      access: ROLES,
      params: requestParams,
      result: writeRequestStatus,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: writes.get(params) }),
    }),
    operation({
      id: 'cancelWriteRequest',
      method: 'delete',
      path,
      tag,
      summary: 'Cancel a write request',
      description:
        'A request that was not sent yet ends at once. Otherwise the encoder is asked to stop: the card in hand is finished, and the status stays as it is until the encoder has said what became of each key. Cancelling a finished request changes nothing.',
      access: writers,
      params: requestParams,
      result: writeRequestStatus,
      errors: ['NOT_FOUND'],
      handler: async ({ params, caller }) => ({ body: await writes.cancel(params, caller) }),
    }),
    operation({
      id: 'listWriteRequests',
      method: 'get',
      path: '/encoder/{encoderId}/write-request',
      tag,
      summary: 'List the write requests of an encoder, newest first',
      access: ROLES,
      params: encoderParams,
      query: listQuery,
      result: writeRequestPage,
      errors: ['NOT_FOUND'],
      handler: ({ params, query }) => ({ body: writes.list(params.encoderId, query) }),
    }),
  ];
}
