/** What the OpenAPI document says of answers that are not a success: their body, and one example of it per operation. */
import { z } from '@hono/zod-openapi';
import { ERROR_STATUS, type ErrorCode, GatehouseError } from '../errors.ts';
import { EXAMPLES } from './openapi-examples.ts';
import { errorsOf, type Operation } from './operation.ts';
import { validate } from './validation.ts';

const codes = Object.keys(ERROR_STATUS);

/** Open: a later version may answer further codes and fields, and clients made from this document must take them. */
const errorBody = z
  .object({
    error: z.string().openapi({
      description: `What programs decide by. Take a code that you do not know by its status; today they are ${codes.join(', ')}.`,
      example: 'NOT_FOUND',
      'x-extensible-enum': codes,
    }),
    message: z.string().openapi({ description: 'What to do next, for a person' }),
    correlationId: z.string().openapi({ description: 'Finds the request in log, audit and events' }),
    details: z
      .array(
        z.object({
          path: z.string().openapi({
            description:
              'JSON pointer into the body ("" is all of it), {name} of a path parameter, ?name of a query parameter, or the name of a header',
          }),
          code: z.string(),
          message: z.string(),
          parameters: z
            .record(z.string(), z.union([z.string(), z.number()]))
            .optional()
            .openapi({
              description:
                'TOO_BIG and TOO_SMALL: `limit`, and what it counts as `unit`: string (characters), array (items), number. INVALID_VALUE: `values`',
            }),
        }),
      )
      .optional(),
  })
  .openapi('Error');

export type ErrorBody = Omit<z.infer<typeof errorBody>, 'error'> & { error: ErrorCode };

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait, where that is known', schema: { type: 'integer' } },
} as const;
const ERROR_HEADERS: Readonly<Record<number, typeof RETRY_AFTER>> = { 429: RETRY_AFTER, 503: RETRY_AFTER };

/** One response per status; its description names the codes it can carry. */
export function errorResponses(operation: Operation) {
  const byStatus = Map.groupBy(errorsOf(operation), (code) => ERROR_STATUS[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, carried]) => {
      const example = status === 400 ? invalidExample(operation) : undefined;
      const content = { 'application/json': { schema: errorBody, ...(example && { example }) } };
      const headers = ERROR_HEADERS[status];
      return [status, { description: carried.join(', '), ...(headers && { headers }), content }];
    }),
  );
}

/** No field of a body takes it. */
const NO_VALUE = 7.5;
/** No number, UUID, list of words or id that is checked. */
const NO_PARAMETER = ' - ';

/** What the operation really answers to one wrong field, else to one wrong parameter, else to one it does not have. */
function invalidExample(operation: Operation): ErrorBody | undefined {
  const { query, body, params } = operation;
  const example = EXAMPLES[operation.id]?.body ?? {};
  // Each part alone: the others are not asked.
  const { query: _query, body: _body, params: _params, ...bare } = operation;
  const nothing = { params: {}, query: {}, body: undefined };
  for (const name of namesOf(body)) {
    const refused = refusal(
      { ...bare, ...(body && { body }) },
      { ...nothing, body: { ...example, [name]: NO_VALUE } },
    );
    if (refused?.details?.every(({ path }) => path === `/${name}`)) return refused;
  }
  for (const name of namesOf(query)) {
    const refused = refusal(
      { ...bare, ...(query && { query }) },
      { ...nothing, query: { [name]: NO_PARAMETER } },
    );
    if (refused) return refused;
  }
  for (const name of namesOf(params)) {
    const refused = refusal(
      { ...bare, ...(params && { params }) },
      { ...nothing, params: { [name]: NO_PARAMETER } },
    );
    if (refused?.details?.length === 1) return refused;
  }
  return refusal(bare, { ...nothing, query: { verbose: '1' } });
}

function namesOf(schema: z.ZodType | undefined): string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

function refusal(operation: Operation, input: Parameters<typeof validate>[1]): ErrorBody | undefined {
  try {
    validate(operation, input);
    return undefined;
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error;
    const { code, message, details } = error;
    const correlationId = '2f6c0c1e-1b1e-4a3b-9d57-77b1f0a1b2c3';
    return { error: code, message, correlationId, ...(details && { details }) };
  }
}
