/** Access rules of doors, and the allow-list of cards. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ADMINISTRATORS } from '../../platform/principal.ts';
import type { Access } from './access.ts';
import { accessCard, cardBody, cardPage, cardParams, cardQuery, rulesBody, rulesResult } from './schema.ts';

/** `segment` is the <product> segment of the paths. */
export function accessOperations(access: Access, segment: string): Operation[] {
  return [...ofRules(access, segment), ...ofCards(access, segment)];
}

function ofRules(access: Access, segment: string): Operation[] {
  const common = {
    path: `/${segment}/doors/{doorId}/access-rules`,
    params: z.object({ doorId: z.guid().toLowerCase() }),
    tag: 'Access',
    access: ADMINISTRATORS,
    result: rulesResult,
  } as const;
  return [
    operation({
      ...common,
      id: 'getAccessRules',
      method: 'get',
      summary: 'Read which inputs and readers open a door',
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: access.rules(params.doorId) }),
    }),
    operation({
      ...common,
      id: 'setAccessRules',
      method: 'put',
      summary: 'Set which inputs and readers open a door, and who decides about cards',
      description:
        'A field that is absent stays as it is; nothing opens a door until it is set. An input that becomes active, and a card that is allowed, open the door as POST …/unlock does: within its deadline or not at all. IN_USE: the input or the reader is one of another door.',
      body: rulesBody,
      errors: ['NOT_FOUND', 'IN_USE'],
      handler: async ({ params: { doorId }, body, caller }) => ({
        body: await access.setRules(doorId, body, caller),
      }),
    }),
  ];
}

function ofCards(access: Access, segment: string): Operation[] {
  const common = { tag: 'Access', access: ['front-desk-admin'] } as const;
  const path = `/${segment}/cards`;
  const ofOne = { ...common, path: `${path}/{cardId}`, params: cardParams, result: accessCard } as const;
  return [
    operation({
      ...common,
      path,
      id: 'listAccessCards',
      method: 'get',
      summary: 'List the cards of the allow-list, without their numbers',
      query: cardQuery,
      result: cardPage,
      handler: ({ query }) => ({ body: access.cards.list(query) }),
    }),
    operation({
      ...ofOne,
      id: 'setAccessCard',
      method: 'put',
      summary: 'Put a card on the allow-list, or change it',
      description:
        'A field that is absent stays as it is; null clears it. ALREADY_EXISTS: another card has this number. A card with a schedule, `validFrom` or `validUntil` opens nothing while the clock of the gateway is not synchronised.',
      body: cardBody,
      errors: ['ALREADY_EXISTS'],
      handler: async ({ params: { cardId }, body, caller }) => ({
        body: await access.cards.set(cardId, body, caller),
      }),
    }),
    operation({
      ...ofOne,
      id: 'removeAccessCard',
      method: 'delete',
      summary: 'Take a card off the allow-list',
      errors: ['NOT_FOUND'],
      handler: async ({ params: { cardId }, caller }) => ({
        body: await access.cards.remove(cardId, caller),
      }),
    }),
  ];
}
