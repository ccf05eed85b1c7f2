/** Tokens over the admin socket, for the command line. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../http/operation.ts';
import type { Auth } from './auth.ts';
import { createdToken, token, tokenBody, tokenId, tokenPage, tokenQuery } from './schema.ts';

const tag = 'Tokens';
const access = 'local';

export function authOperations(auth: Pick<Auth, 'create' | 'list' | 'revoke'>): Operation[] {
  return [
    operation({
      id: 'createToken',
      method: 'post',
      path: '/local/tokens',
      tag,
      summary: 'Create a token',
      description: 'The answer holds the only copy of the token.',
      access,
      body: tokenBody,
      status: 200,
      result: createdToken,
      errors: [],
      handler: async ({ body, principal, correlationId }) => ({
        body: await auth.create(body, { principal, correlationId }),
      }),
    }),
    operation({
      id: 'listTokens',
      method: 'get',
      path: '/local/tokens',
      tag,
      summary: 'List tokens, oldest first',
      access,
      query: tokenQuery,
      status: 200,
      result: tokenPage,
      errors: [],
      handler: ({ query }) => ({ body: auth.list(query) }),
    }),
    operation({
      id: 'revokeToken',
      method: 'delete',
      path: '/local/tokens/{tokenId}',
      tag,
      summary: 'Revoke a token',
      description: 'It is refused from now on. Repeating it changes nothing.',
      access,
      params: z.object({ tokenId }),
      status: 200,
      result: token,
      errors: ['NOT_FOUND'],
      handler: async ({ params, principal, correlationId }) => ({
        body: await auth.revoke(params.tokenId, { principal, correlationId }),
      }),
    }),
  ];
}
