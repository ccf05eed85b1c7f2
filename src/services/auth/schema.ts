/** Local tokens, login codes and sessions as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { pageLimit, printable } from '../../platform/http/fields.ts';
import { isReserved, ROLES } from '../../platform/principal.ts';

export const EXPIRES_IN_DAYS_DEFAULT = 90;
const EXPIRES_IN_DAYS_MAX = 400;
const LABEL_MAX = 64;

export const tokenId = z
  .string()
  .regex(/^[0-9a-f]{12}$/, 'expected 12 hexadecimal digits')
  .openapi({ description: 'The part of the token after gwt_ or gws_', example: '0f3a9c51d2e7' });

const roles = z
  .array(z.enum(ROLES))
  .min(1)
  .max(ROLES.length)
  .refine((list) => new Set(list).size === list.length, 'expected each role once')
  .openapi({ uniqueItems: true });

const label = printable
  .min(1)
  .max(LABEL_MAX)
  .refine((text) => !isReserved(text), 'expected a label that is not one of the gateway itself')
  .openapi({
    description: 'Who or what holds it; goes into log and audit',
    example: 'PMS of the front office',
  });

export const tokenBody = z
  .strictObject({
    label,
    roles,
    expiresInDays: z.int().min(1).max(EXPIRES_IN_DAYS_MAX).default(EXPIRES_IN_DAYS_DEFAULT),
  })
  .openapi('TokenRequest');
export type TokenRequest = z.input<typeof tokenBody>;

export const OVERLAP_HOURS_DEFAULT = 24;
const OVERLAP_HOURS_MAX = 14 * 24;

export const renewalBody = z
  .strictObject({
    expiresInDays: z.int().min(1).max(EXPIRES_IN_DAYS_MAX).default(EXPIRES_IN_DAYS_DEFAULT),
    overlapHours: z
      .int()
      .min(0)
      .max(OVERLAP_HOURS_MAX)
      .default(OVERLAP_HOURS_DEFAULT)
      .openapi({ description: 'How long the old secret is good besides; never longer than it was anyway' }),
  })
  .openapi('TokenRenewal');
export type RenewalRequest = z.input<typeof renewalBody>;

const fields = {
  id: tokenId,
  kind: z.enum(['api', 'session']).openapi({
    description: 'api: a program sends it as a bearer token. session: the console sends it as a cookie',
  }),
  principalId: z.guid().openapi({ description: 'What createdBy, updatedBy and the audit call its holder' }),
  label: z.string(),
  roles,
  status: z.enum(['active', 'expired', 'revoked']),
  createdAt: z.iso.datetime(),
  createdBy: z.string(),
  expiresAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime().nullable().openapi({ description: 'To the minute' }),
  revokedAt: z.iso.datetime().nullable(),
};

export const token = z.strictObject(fields).openapi('Token');
export type Token = z.infer<typeof token>;

export const createdToken = z
  .strictObject({ ...fields, token: z.string().openapi({ description: 'The credential; shown this once' }) })
  .openapi('CreatedToken');
export type CreatedToken = z.infer<typeof createdToken>;

export const renewedToken = z
  .strictObject({
    ...fields,
    token: z.string().openapi({ description: 'The credential; shown this once' }),
    previousUntil: z.iso.datetime().openapi({ description: 'Until when the old secret is good' }),
  })
  .openapi('RenewedToken');
export type RenewedToken = z.infer<typeof renewedToken>;

export const revocationQuery = z.strictObject({
  confirm: z.enum(['true', 'false']).default('false').openapi({
    description: 'true: also the last token with the role service-tool (CONFIRMATION_NEEDED)',
  }),
});

export const tokenQuery = z.strictObject({
  cursor: z
    .string()
    .regex(/^\d{1,16}-[0-9a-f]{12}$/, 'expected the `next` of the page before')
    .optional(),
  limit: pageLimit,
});
export type TokenQuery = z.infer<typeof tokenQuery>;

export const tokenPage = z
  .strictObject({
    items: z.array(token),
    next: z.string().nullable().openapi({ description: 'The cursor of the next page; null at the end' }),
  })
  .openapi('TokenPage');
export type TokenPage = z.infer<typeof tokenPage>;

export const loginCodeBody = z.strictObject({ label, roles }).openapi('LoginCodeRequest');
export type LoginCodeRequest = z.input<typeof loginCodeBody>;

export const loginCode = z
  .strictObject({
    code: z.string().openapi({ description: 'XXXX-XXXX-XXXX; shown this once', example: '4F7K-Q2ZD-9MXT' }),
    expiresAt: z.iso.datetime(),
  })
  .openapi('LoginCode');
export type LoginCode = z.infer<typeof loginCode>;

/** Room for the spaces and hyphens people put in. */
const TYPED_CODE_MAX = 32;

export const signInBody = z
  .strictObject({ code: z.string().max(TYPED_CODE_MAX).openapi({ example: '4F7K-Q2ZD-9MXT' }) })
  .openapi('SignIn');

export const session = z
  .strictObject({
    principalId: z.string(),
    label: z.string(),
    roles: z.array(z.enum(ROLES)),
    via: z.enum(['token', 'jwt', 'session', 'local', 'system']).openapi({
      description:
        'What was shown: a local token, a token of the identity provider, or the cookie of the console',
    }),
    expiresAt: z.iso.datetime().nullable(),
  })
  .openapi('Session');
export type Session = z.infer<typeof session>;

export const signedOut = z.strictObject({}).openapi('SignedOut');
