/** The encoder as the interface shows it (interface specification 2.1, 2.2) and the bodies of 4.1 and 4.2. */
import { z } from '@hono/zod-openapi';
import { ENCODER_ID, ENCODER_ID_FORM } from '../../../drivers/encoder/link.ts';
import { readOnlyFields } from '../../platform/http/editing.ts';
import { clearableName, NAME_MAX, pageLimit, pageOf, printable } from '../../platform/http/fields.ts';

const METADATA_KEYS_MAX = 64;
const METADATA_VALUE_MAX = 1_024;
/** Four certificates of a chain, generously. */
const CERTIFICATES_MAX = 16 * 1_024;
const PUBLIC_KEY_MAX = 4_096;
const SIGNATURE_MAX = 2_048;

export const encoderId = z
  .string()
  .regex(ENCODER_ID, `expected ${ENCODER_ID_FORM}`)
  .openapi({ description: 'Equals the common name of the encoder’s factory certificate', example: 'desk-1' });

const nameVersion = z.object({ name: z.string(), version: z.string() });
const dateTime = z.iso.datetime();

const encoderFields = {
  id: encoderId,
  name: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
  ipAddress: z.string().nullable(),
  alarmState: z.object({ changedOn: dateTime, raised: z.boolean() }),
  connectionState: z.object({ changedOn: dateTime, connected: z.boolean() }),
  apps: z.array(nameVersion),
  platform: nameVersion.nullable(),
  upgradeJobInfo: z
    .object({
      apps: z.array(nameVersion),
      id: z.string(),
      platform: nameVersion,
      versions: z.array(nameVersion),
    })
    .nullable(),
  versions: z.array(nameVersion),
};

export const encoder = z.object(encoderFields).openapi('Encoder');
export type Encoder = z.infer<typeof encoder>;

/** What the registration returns besides the encoder, once. */
const registrationOnlyFields = {
  cert: z
    .string()
    .openapi({ description: 'PEM of the issued client certificate, then of the authority that issued it' }),
  configurations: z.record(z.string(), z.base64()).openapi({
    description: 'One field, named by encoders.vendorKey: base64 of a compact JWS of the site CA',
  }),
  credentials: z
    .base64()
    .openapi({ description: 'Base64 of a compact JWE that only the operational key opens' }),
  endpoint: z
    .string()
    .openapi({ description: 'Where the encoder connects', example: 'mqtts://gatehouse.example:8883' }),
  secrets: z.object({ 'iot-credentials': z.base64() }),
  systemId: z.array(z.int().min(0).max(255)).length(16),
  version: z.int().min(1).openapi({ description: 'Credential generation' }),
};
export const registeredEncoder = z
  .object({ ...encoderFields, ...registrationOnlyFields })
  .openapi('RegisteredEncoder');
export type RegisteredEncoder = z.infer<typeof registeredEncoder>;

const name = clearableName(NAME_MAX);
const metadata = z
  .record(printable.min(1).max(NAME_MAX), z.string().max(METADATA_VALUE_MAX))
  .refine(
    (value) => Object.keys(value).length <= METADATA_KEYS_MAX,
    `expected at most ${METADATA_KEYS_MAX} keys`,
  )
  .nullable()
  .openapi({ description: 'Replaces what was there; null clears it' });

const readOnly = readOnlyFields({ ...encoderFields, ...registrationOnlyFields }, ['id', 'name', 'metadata']);

export const updateBody = z
  .strictObject({
    id: z.string().optional(),
    name: name.optional(),
    metadata: metadata.optional(),
    ...readOnly,
  })
  .openapi('EncoderUpdate');

export const registrationBody = z
  .strictObject({
    id: z.string().optional(),
    deviceCert: z
      .string()
      .max(CERTIFICATES_MAX)
      .openapi({ description: 'PEM, the leaf first, then its intermediates' }),
    publicKey: z
      .string()
      .max(PUBLIC_KEY_MAX)
      .openapi({ description: 'The operational key: PEM SPKI, or base64 of its DER' }),
    signature: z.base64().min(1).max(SIGNATURE_MAX).openapi({
      description: 'Base64; by the key of deviceCert over the registration message',
    }),
    name: name.optional(),
    metadata: metadata.optional(),
    ...readOnly,
  })
  .openapi('EncoderRegistration');

export interface Editable {
  id?: string | undefined;
  name?: string | null | undefined;
  metadata?: Record<string, string> | null | undefined;
}
export interface RegistrationRequest extends Editable {
  deviceCert: string;
  publicKey: string;
  signature: string;
}

const openRequests = z.int().openapi({ description: 'Write requests accepted for it and not finished' });

export const encoderState = z
  .object({
    id: encoderId,
    generation: z.int(),
    credential: z.object({
      status: z.enum(['active', 'superseded', 'revoked']),
      fingerprint256: z.string(),
      notAfter: dateTime,
    }),
    journal: z.string().nullable(),
    connectedFor: z
      .int()
      .nullable()
      .openapi({ description: 'Milliseconds of the present connection, by the monotonic clock' }),
    lastMessageAge: z
      .int()
      .nullable()
      .openapi({ description: 'Milliseconds since the last message of the present connection' }),
    openRequests,
    messagesAhead: z.int().openapi({ description: 'Messages stored ahead of one that is missing' }),
  })
  .openapi('EncoderState');
export type EncoderState = z.infer<typeof encoderState>;

const listedEncoder = z.object({ ...encoderFields, openRequests }).openapi('ListedEncoder');
export type ListedEncoder = z.infer<typeof listedEncoder>;

export const encoderPage = pageOf(listedEncoder).openapi('EncoderPage');

export const listQuery = z.strictObject({
  cursor: encoderId.optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
  connected: z.enum(['true', 'false']).optional(),
  revoked: z.enum(['true', 'false']).optional().openapi({ description: 'Its credentials are revoked' }),
  name: z.string().max(NAME_MAX).optional().openapi({ description: 'Part of the name or id, in any case' }),
});
