/** Tokens and login codes, which the command line asks for over the admin socket; sessions for the console. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES, TECHNICIANS } from '../../platform/principal.ts';
import type { Auth } from './auth.ts';
import {
  createdToken,
  loginCode,
  loginCodeBody,
  renewalBody,
  renewedToken,
  revocationQuery,
  session,
  signedOut,
  signInBody,
  token,
  tokenBody,
  tokenId,
  tokenPage,
  tokenQuery,
} from './schema.ts';
import { sessionOf } from './sign-in.ts';

const tag = 'Tokens';
const access = TECHNICIANS;

type Issuing = Pick<Auth, 'create' | 'renew' | 'list' | 'revoke' | 'createCode'>;
type SigningIn = Pick<Auth, 'signIn' | 'signOut'>;

export function authOperations(auth: Issuing & SigningIn): Operation[] {
  return [...tokenOperations(auth), loginCodeOperation(auth), ...sessionOperations(auth)];
}

function tokenOperations(auth: Issuing): Operation[] {
  return [
    operation({
      id: 'createToken',
      method: 'post',
      path: '/tokens',
      tag,
      summary: 'Create a token',
      description:
        'The answer holds the only copy of the token, and is not kept: sent again, it makes another token. FORBIDDEN also: a role that the caller has not itself.',
      access,
      answersSecret: true,
      body: tokenBody,
      result: createdToken,
      handler: async ({ body, caller }) => ({ body: await auth.create(body, caller) }),
    }),
    operation({
      id: 'listTokens',
      method: 'get',
      path: '/tokens',
      tag,
      summary: 'List tokens and sessions, oldest first',
      access,
      query: tokenQuery,
      result: tokenPage,
      handler: ({ query }) => ({ body: auth.list(query) }),
    }),
    operation({
      id: 'renewToken',
      method: 'post',
      path: '/local/tokens/{tokenId}/renewal',
      tag,
      summary: 'Renew a token',
      description:
        'A new secret and a new life under the same id and principal. The old secret stays good for `overlapHours`, so that its program can be given the new one meanwhile. Former secrets keep the end that was stated, four at once (then 409 IN_USE); with `overlapHours` 0 all of them end at once.',
      // On the controller alone: its holder would act under another one's name.
      access: 'local',
      params: z.object({ tokenId }),
      body: renewalBody,
      result: renewedToken,
      errors: ['NOT_FOUND', 'IN_USE'],
      handler: async ({ params, body, caller }) => ({ body: await auth.renew(params.tokenId, body, caller) }),
    }),
    operation({
      id: 'revokeToken',
      method: 'delete',
      path: '/tokens/{tokenId}',
      tag,
      summary: 'Revoke a token, or end a session',
      description:
        'It is refused from now on. Repeating it changes nothing. CONFIRMATION_NEEDED: no other token with the role service-tool is left then.',
      access,
      params: z.object({ tokenId }),
      query: revocationQuery,
      result: token,
      errors: ['NOT_FOUND', 'CONFIRMATION_NEEDED'],
      handler: async ({ params, query, caller }) => ({
        body: await auth.revoke(params.tokenId, caller, query.confirm === 'true'),
      }),
    }),
  ];
}

function loginCodeOperation(auth: Issuing): Operation {
  return operation({
    id: 'createLoginCode',
    method: 'post',
    path: '/login-codes',
    tag,
    summary: 'Create a login code',
    description:
      'For one sign-in to the console, within ten minutes. FORBIDDEN also: a role that the caller has not itself.',
    access,
    answersSecret: true,
    body: loginCodeBody,
    result: loginCode,
    handler: async ({ body, caller }) => ({ body: await auth.createCode(body, caller) }),
  });
}

function sessionOperations(auth: SigningIn): Operation[] {
  return [
    operation({
      id: 'signIn',
      method: 'post',
      path: '/session',
      tag: 'Session',
      summary: 'Redeem a login code for a session of the console',
      description:
        'Sets the cookie `__Host-gatehouse` for twelve hours. A code is good once, in either case of its letters.',
      access: 'public',
      body: signInBody,
      result: session,
      errors: ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'STORAGE_UNAVAILABLE'],
      async handler({ body, address, caller: { correlationId } }) {
        const { session, setCookie } = await auth.signIn(body.code, { address, correlationId });
        return { body: session, setCookie };
      },
    }),
    operation({
      id: 'getSession',
      method: 'get',
      path: '/session',
      tag: 'Session',
      summary: 'Who am I?',
      access: ROLES,
      result: session,
      handler: ({ principal }) => ({ body: sessionOf(principal) }),
    }),
    operation({
      id: 'signOut',
      method: 'delete',
      path: '/session',
      tag: 'Session',
      summary: 'End the session of the console',
      access: ROLES,
      result: signedOut,
      handler: async ({ caller }) => ({
        body: {},
        setCookie: await auth.signOut(caller),
      }),
    }),
  ];
}
