/** The encoder operations of the interface: 4.1, 4.2 and their reads. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import type { Encoders } from './encoders.ts';
import type { Registration } from './registration.ts';
import {
  encoder,
  encoderId,
  encoderPage,
  encoderState,
  listQuery,
  registeredEncoder,
  registrationBody,
  updateBody,
} from './schema.ts';

const params = z.object({ encoderId });
const tag = 'Encoders';
const reading = { method: 'get', tag, access: ROLES } as const;

export function encoderOperations(encoders: Encoders, registration: Registration): Operation[] {
  return [...changes(encoders, registration), retirement(encoders), ...reads(encoders)];
}

function changes(encoders: Encoders, registration: Registration): Operation[] {
  return [
    operation({
      id: 'addEncoder',
      method: 'put',
      path: '/encoder/{encoderId}',
      tag,
      summary: 'Register an encoder',
      description:
        'Registers the encoder with the system, or registers it again: new credentials are made, and those before stop working at once. `signature` is made with the key of `deviceCert` over the registration message. The credentials are returned once; each registration makes a new generation, so the answer is not idempotent.',
      access: ['service-tool'],
      params,
      body: registrationBody,
      result: registeredEncoder,
      errors: [
        'ID_MISMATCH',
        'CERT_INVALID',
        'CERT_UNTRUSTED',
        'CERT_EXPIRED',
        'CN_MISMATCH',
        'SIGNATURE_INVALID',
        'PUBLIC_KEY_REUSED',
        'PRECONDITION_FAILED',
      ],
      async handler({ params, body, editor }) {
        const { encoder, revision } = await registration.register(params.encoderId, body, editor);
        return { body: encoder, etag: String(revision) };
      },
    }),
    operation({
      id: 'updateEncoder',
      method: 'post',
      path: '/encoder/{encoderId}',
      tag,
      summary: 'Update an encoder by id',
      description: 'Changes the editable information. A field that is absent stays as it is.',
      access: ['service-tool', 'front-desk-admin'],
      params,
      body: updateBody,
      result: encoder,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'PRECONDITION_FAILED'],
      async handler({ params, body, editor }) {
        const { encoder, revision } = await encoders.update(params.encoderId, body, editor);
        return { body: encoder, etag: String(revision) };
      },
    }),
    operation({
      id: 'revokeEncoder',
      method: 'post',
      path: '/encoder/{encoderId}/revoke',
      tag,
      summary: 'Revoke the credentials of an encoder',
      description:
        'The encoder is cut off at once and stays out until it is registered again with a new key. Repeating it changes nothing.',
      access: ['service-tool', 'front-desk-admin'],
      params,
      result: encoder,
      errors: ['NOT_FOUND'],
      async handler({ params, caller }) {
        const { encoder, revision } = await encoders.revoke(params.encoderId, caller);
        return { body: encoder, etag: String(revision) };
      },
    }),
  ];
}

function retirement(encoders: Encoders): Operation {
  return operation({
    id: 'retireEncoder',
    method: 'delete',
    path: '/encoder/{encoderId}',
    tag,
    summary: 'Remove an encoder for good',
    description:
      'Answered with what it was, which the audit keeps. IN_USE: it is connected, or has write requests that are not finished. Its credentials end, and its write requests are not shown any more. Registered again it is a new encoder: `version` and the sequence of its events go on, and a key that it had is not taken.',
    access: ['service-tool', 'front-desk-admin'],
    params,
    result: encoder,
    errors: ['NOT_FOUND', 'PRECONDITION_FAILED', 'IN_USE'],
    handler: async ({ params, editor }) => ({ body: await encoders.retire(params.encoderId, editor) }),
  });
}

function reads(encoders: Encoders): Operation[] {
  return [
    operation({
      ...reading,
      id: 'listEncoders',
      path: '/encoder',
      summary: 'List encoders',
      query: listQuery,
      result: encoderPage,
      handler: ({ query }) => ({ body: encoders.list(query) }),
    }),
    operation({
      ...reading,
      id: 'getEncoder',
      path: '/encoder/{encoderId}',
      summary: 'Read an encoder',
      params,
      result: encoder,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { encoder, revision } = encoders.get(params.encoderId);
        return { body: encoder, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'getEncoderState',
      path: '/encoder/{encoderId}/state',
      summary: 'Read what is known of an encoder beyond its resource',
      params,
      result: encoderState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: encoders.state(params.encoderId) }),
    }),
  ];
}
