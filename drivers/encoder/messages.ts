/** The messages of the encoder protocol as schemas and pure functions (docs/encoder-protocol.md, Messages). */
import { z } from 'zod';
import { DriverError } from '../contract/driver.ts';
import { BadMessage, type DownChannel } from './link.ts';

/** A lone surrogate or NUL would not come back from the database or a log as it went in. */
const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'expected well-formed text');
const uuid = z.guid().transform((id) => id.toLowerCase());
const seq = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/** As many as a write request may have. */
const JOB_ENTRIES_MAX = 10;
const nameVersion = z.object({ name: text(128), version: text(128) });

export const ENTRY_STATUSES = [
  'started',
  'cardRequested',
  'cardDetected',
  'writing',
  'written',
  'failed',
  'unknown',
] as const;
export type EncoderEntryStatus = (typeof ENTRY_STATUSES)[number];

/** Codes an encoder may give; anything else is kept as INTERNAL with the code in the message. */
export const ENCODER_ERROR_CODES = [
  'NO_CARD',
  'CARD_REMOVED',
  'CARD_INCOMPATIBLE',
  'CARD_DAMAGED',
  'CARD_LOCKED',
  'VERIFY_FAILED',
  'ENCODER_BUSY',
  'ENCODER_ALARM',
  'CANCELLED',
  'EXPIRED',
  'INTERNAL',
] as const;
export type EncoderErrorCode = (typeof ENCODER_ERROR_CODES)[number];

const entryError = z
  .object({ code: text(64), message: text(1_024).optional() })
  .transform(({ code, message }): { code: EncoderErrorCode; message?: string } => {
    const known = ENCODER_ERROR_CODES.find((candidate) => candidate === code);
    if (known) return message === undefined ? { code: known } : { code: known, message };
    return { code: 'INTERNAL', message: message === undefined ? code : `${code}: ${message}` };
  });

const birth = z.object({
  boot: uuid,
  seq,
  session: uuid,
  online: z.literal(true),
  journal: uuid,
  ipAddress: z.union([z.ipv4(), z.ipv6()]).optional(),
  apps: z.array(nameVersion).max(64).optional(),
  platform: nameVersion.optional(),
  versions: z.array(nameVersion).max(64).optional(),
  alarm: z.object({ raised: z.boolean() }).optional(),
  upgradeJobInfo: z
    .object({
      id: text(128),
      apps: z.array(nameVersion).max(64),
      platform: nameVersion,
      versions: z.array(nameVersion).max(64),
    })
    .nullable()
    .optional(),
});
const will = z.object({ online: z.literal(false), session: uuid });
const status = z.discriminatedUnion('online', [birth, will]);

const progress = z.object({
  boot: uuid,
  seq,
  jobId: uuid,
  keyId: uuid,
  status: z.enum(ENTRY_STATUSES),
  error: entryError.optional(),
});
const job = z.object({
  boot: uuid,
  seq,
  jobId: uuid,
  known: z.boolean(),
  entries: z
    .array(z.object({ keyId: uuid, status: z.enum(ENTRY_STATUSES), error: entryError.optional() }))
    .max(JOB_ENTRIES_MAX)
    .refine(
      (entries) => new Set(entries.map(({ keyId }) => keyId)).size === entries.length,
      'a keyId is named twice',
    ),
});

export type Birth = z.output<typeof birth>;
export type Will = z.output<typeof will>;
export type ProgressReport = z.output<typeof progress>;
export type JobReport = z.output<typeof job>;

export const parseStatus = (payload: Uint8Array): Birth | Will => parse(status, payload);
export const parseProgress = (payload: Uint8Array): ProgressReport => parse(progress, payload);
export const parseJob = (payload: Uint8Array): JobReport => parse(job, payload);

/** Through an external broker: the question whether an encoder is there, and its answer. */
const probe = z.object({ probe: uuid, birth: z.boolean() });
const presence = z.object({ probe: uuid, session: uuid });
export type PresenceReport = z.output<typeof presence>;
export const parsePresence = (payload: Uint8Array): PresenceReport => parse(presence, payload);
export const encodeProbe = (message: z.output<typeof probe>): Buffer => Buffer.from(JSON.stringify(message));

const epoch = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const write = z.object({
  epoch,
  jobId: uuid,
  requestId: text(128),
  /** Milliseconds left, counted on the encoder's monotonic clock from receipt. */
  ttlMs: z.int().min(0).max(Number.MAX_SAFE_INTEGER),
  description: text(1_024).optional(),
  data: z
    .array(z.object({ keyId: uuid, blocks: z.array(text(1_024)).min(1).max(256) }))
    .min(1)
    .max(JOB_ENTRIES_MAX),
});

/** By their names in docs/asyncapi.yaml. What goes down is made by us and not checked again. */
export const MESSAGES = {
  birth,
  will,
  progress,
  job,
  hello: z.object({ epoch }),
  ack: z.object({ epoch, boot: uuid, seq }),
  write,
  cancel: z.object({ epoch, jobId: uuid }),
  probe,
  presence,
};

export type DownMessages = { [Channel in DownChannel]: z.output<(typeof MESSAGES)[Channel]> };

/**
 * Longest payload by channel, in bytes. A write carries what came in a request of at most 256 KiB, and our ids and times
 * around it.
 */
export const MAX_DOWN_BYTES: Record<DownChannel, number> = {
  hello: 64 * 1024,
  ack: 64 * 1024,
  cancel: 64 * 1024,
  write: 260 * 1024,
};

/** Throws DriverError INVALID_COMMAND when the message is too long for its channel. */
export function encodeDown<Channel extends DownChannel>(
  channel: Channel,
  message: DownMessages[Channel],
): Buffer {
  const payload = Buffer.from(JSON.stringify(message));
  if (payload.length <= MAX_DOWN_BYTES[channel]) return payload;
  throw new DriverError(
    'INVALID_COMMAND',
    `a ${channel} message of ${payload.length} bytes is too long for an encoder`,
  );
}

function parse<Schema extends z.ZodType>(schema: Schema, payload: Uint8Array): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch (error) {
    throw new BadMessage('not JSON in UTF-8', { cause: error });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new BadMessage(`${issue?.path.join('.') || 'message'}: ${issue?.message ?? 'invalid'}`);
}
