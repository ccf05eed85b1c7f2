/** The network as the interface shows it (interface specification 2.6) and the body of 4.7. */
import { z } from '@hono/zod-openapi';
import { DESCRIPTION_MAX, lines, NAME_MAX, pageLimit, pageOf } from '../../platform/http/fields.ts';

/** Several certificates of an authority with its predecessors. */
const CERT_MAX = 32 * 1_024;

const dateTime = z.iso.datetime();

export const netId = z
  .guid('expected a UUID')
  .toLowerCase()
  .openapi({ example: '9a1d7f34-2b0e-4d0b-a7a5-2f8a4b1c6e50' });

const clears = { description: 'null clears it' };
const description = lines.max(DESCRIPTION_MAX).nullable();

export const network = z
  .object({
    id: netId,
    description: z.string().nullable(),
    cert: z.string().nullable().openapi({ description: 'PEM, as it was given' }),
  })
  .openapi('Network');
export type Network = z.infer<typeof network>;

export const updateBody = z
  .strictObject({
    id: z.string().optional(),
    description: description.optional().openapi(clears),
    cert: z.string().min(1).max(CERT_MAX).nullable().optional().openapi({
      description:
        'PEM of one or several certificates, of authorities or of the gateways themselves: what gateways of this network reached by TLS must show. A change connects them again; null clears it.',
    }),
  })
  .openapi('NetworkUpdate');

export interface Edit {
  id?: string | undefined;
  description?: string | null | undefined;
  cert?: string | null | undefined;
}

export const networkState = z
  .object({
    id: netId,
    declared: z.boolean().openapi({ description: 'The configuration names it' }),
    certificates: z.array(
      z.object({
        subject: z.string(),
        issuer: z.string(),
        notBefore: dateTime,
        notAfter: dateTime,
        authority: z.boolean(),
        fingerprint256: z.string(),
        note: z
          .enum(['expired', 'not yet valid'])
          .nullable()
          .openapi({ description: 'By the clock of this host; gateways that show it are refused' }),
      }),
    ),
  })
  .openapi('NetworkState');
export type NetworkState = z.infer<typeof networkState>;

export const networkPage = pageOf(network).openapi('NetworkPage');

export const listQuery = z.strictObject({
  cursor: netId.optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
  description: z
    .string()
    .max(NAME_MAX)
    .optional()
    .openapi({ description: 'Part of the description or the id, in any case' }),
});
export type ListQuery = z.output<typeof listQuery>;
