/** What a reader of live events asks for: types, and what they are about. Pure. */
import { z } from '@hono/zod-openapi';
import type { LiveRow } from './table.ts';

/** Names of one list. A query parameter has 256 characters (src/platform/http/validation.ts). */
const NAMES_MAX = 16;

const TYPE = '[a-z0-9.-]+[*]?';
const ID = '[^ ,]+';

const list = (item: RegExp, expected: string) =>
  z
    .string()
    .min(1)
    .transform((text) => text.split(','))
    .pipe(z.array(z.string().regex(item, expected)).max(NAMES_MAX))
    .optional();

export const filterQuery = {
  types: list(new RegExp(`^${TYPE}$`), 'expected types of events, separated by commas').openapi({
    type: 'string',
    pattern: `^${TYPE}(,${TYPE})*$`,
    description:
      'Only events of these types, separated by commas; `*` at the end of one stands for any rest, as in `gatehouse.door.*`',
    example: 'gatehouse.door.*,gatehouse.encoder.connection.v1',
  }),
  subject: list(new RegExp(`^${ID}$`), 'expected ids, separated by commas').openapi({
    type: 'string',
    pattern: `^${ID}(,${ID})*$`,
    description:
      'Only events about these, separated by commas: the `subject` of the event (of write progress the keyId), or the last part of its `source` (the id of the encoder, door, device or gateway)',
    example: 'desk-1',
  }),
};

export interface LiveFilter {
  types?: readonly string[] | undefined;
  subject?: readonly string[] | undefined;
}

export function passes(
  { type, body }: Pick<LiveRow, 'type' | 'body'>,
  { types, subject }: LiveFilter,
): boolean {
  if (types && !types.some((wanted) => isOfType(type, wanted))) return false;
  if (!subject) return true;
  const event = JSON.parse(body) as { subject?: string; source: string };
  const own = event.source.slice(event.source.lastIndexOf('/') + 1);
  return subject.some((wanted) => wanted === event.subject || wanted === own);
}

function isOfType(type: string, wanted: string): boolean {
  return wanted.endsWith('*') ? type.startsWith(wanted.slice(0, -1)) : type === wanted;
}
