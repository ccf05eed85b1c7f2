/** The data of each type of live event, as the OpenAPI document shows it; docs/asyncapi.yaml says the same (test/asyncapi.test.ts). */
import { z } from '@hono/zod-openapi';
import { ALARMS } from '../../../drivers/contract/rs485.ts';
import { DOOR_STATES, INPUT_PINS, LOCK_STATES } from '../../../drivers/contract/settings.ts';

const dateTime = z.iso.datetime();
const uuid = z.guid();
const changed = { changedOn: dateTime };
const doorId = uuid;
const deviceId = uuid;
const encoderId = z.string();
const reason = z.string().nullable();
const reported = <Words extends readonly [string, ...string[]]>(words: Words) =>
  z.object({ value: z.enum(words), at: dateTime }).nullable();

const WRITE_STATUSES = [
  'started',
  'cardRequested',
  'cardDetected',
  'writing',
  'written',
  'failed',
  'cancelled',
  'expired',
  'unknown',
] as const;

const writeProgress = {
  requestId: z.string(),
  keyId: uuid,
  entryIndex: z.int().min(0).openapi({ description: 'Place in the data of the request' }),
  entryCount: z.int().min(1),
  error: z.object({ code: z.string(), message: z.string().optional() }).optional(),
  totals: z.record(z.string(), z.int().min(0)).openapi({
    description: 'How many entries of the request are in which end; open counts those in none',
  }),
};

/** By what follows `gatehouse.` and comes before `.v1`. Objects are open: a later version may add fields. */
const DATA = {
  ...Object.fromEntries(
    WRITE_STATUSES.map((status) => [
      `encoder.write.${status}`,
      z.object({ ...writeProgress, status: z.literal(status) }),
    ]),
  ),
  'encoder.connection': z.object({ encoderId, connected: z.boolean(), ...changed }),
  'encoder.alarm': z.object({ encoderId, raised: z.boolean(), ...changed }),
  'events.gap': z.object({
    encoderId,
    firstSequence: z.int().min(1),
    lastSequence: z.int().min(1),
    count: z.int().min(1),
    reason: z.enum(['AGE', 'SIZE', 'REJECTED', 'TOO_LARGE']),
  }),
  'rs485.connection': z.object({ deviceId, connected: z.boolean(), ...changed }),
  'rs485.input': z.object({
    deviceId,
    input: z.enum(INPUT_PINS),
    activations: z.int().min(1),
    total: z.int().min(0),
    at: dateTime,
  }),
  'rs485.alarm': z.object({ deviceId, alarm: z.enum(ALARMS), raised: z.boolean(), at: dateTime }),
  'rs485.credential': z.object({
    deviceId,
    doorId: z.guid().nullable().openapi({ description: 'The door of the device; null: it has none' }),
    reader: z.int().min(0).max(255),
    format: z.enum(['raw', 'wiegand', 'keypad']),
    bits: z.string().nullable().openapi({ description: 'Of a card, in hex; null for keys' }),
    count: z.int().min(0).openapi({ description: 'Bits of the card, or number of keys' }),
    at: dateTime,
  }),
  'door.connection': z.object({
    doorId,
    name: z.string().nullable(),
    accessPointId: z.int(),
    status: z.enum(['connected', 'disconnected', 'unknown']),
    since: dateTime,
    reason: z.object({ code: z.string(), message: z.string() }).nullable().openapi({
      description: 'Why it is not connected; null when it is, or when the door has lost its lock',
    }),
  }),
  'door.changed': z.object({
    doorId,
    change: z.enum(['created', 'edited']),
    fields: z.array(z.string()).openapi({ description: 'What was given, or is another one now' }),
  }),
  'door.applied': z.object({
    doorId,
    configVersion: z.int().min(1),
    outcome: z.enum(['applied', 'refused']),
    reason,
  }),
  'door.lock': z.object({
    doorId,
    change: z.enum(['joined', 'left', 'moved', 'replaced', 'merged', 'retired', 'removed']),
    mac: z.string().nullable(),
    gatewayId: z.string().nullable(),
  }),
  'door.standing-open': z.object({
    doorId,
    change: z.enum(['begun', 'lost', 'ending', 'ended', 'expired']),
    reason,
  }),
  'door.alarm': z.object({
    doorId,
    alarm: z.enum(['notLocked', 'batteryLow']),
    raised: z.boolean(),
    reason: z.string(),
  }),
  'door.state': z.object({ doorId, lockState: reported(LOCK_STATES), doorState: reported(DOOR_STATES) }),
  'door.late-outcome': z.object({
    doorId,
    outcome: z.enum(['confirmed']),
    isLate: z
      .boolean()
      .nullable()
      .openapi({ description: 'false: it opened by the deadline; null: not known' }),
    at: dateTime,
    delayMilliseconds: z.int().min(0).nullable(),
  }),
  'door.event': z.object({
    doorId,
    kind: z.enum(['operation', 'programming', 'alarm', 'door', 'bolt']),
    what: z.string(),
    source: z.string().nullable(),
    userId: z.int().min(0).max(65_535).nullable(),
    at: dateTime,
  }),
  'door.access': z.object({
    doorId,
    deviceId,
    by: z.enum(['card', 'requestToExit']),
    reader: z.int().min(0).max(255).nullable(),
    input: z.enum(INPUT_PINS).nullable(),
    isAllowed: z.boolean(),
    decidedBy: z.enum(['allowList', 'decisionService', 'rule']).nullable(),
    cardId: z.guid().nullable().openapi({ description: 'Of the allow-list' }),
    outcome: reason.openapi({ description: 'Of the unlock; null: nothing was sent' }),
    reason,
    at: dateTime,
  }),
  'zgate.connection': z.object({ deviceId, connected: z.boolean(), ...changed }),
  'zgate.join': z.object({
    deviceId,
    mac: z.string(),
    at: dateTime,
    reason: z.enum(['notAllowed', 'installCode', 'silent', 'noLock']),
    message: z.string(),
  }),
  'certificate.expiry': z.object({
    certificate: z.enum(['own']),
    notAfter: dateTime,
    daysLeft: z.int().openapi({ description: 'Whole days; negative after the end' }),
  }),
  'token.expiry': z.object({
    tokenId: z.string(),
    label: z.string(),
    expiresAt: dateTime,
    daysLeft: z.int().openapi({ description: 'Whole days; negative after the end' }),
  }),
  'backup.failed': z.object({
    reason: z.string(),
    newestAt: dateTime.nullable().openapi({ description: 'Of the newest archive that there is' }),
  }),
} satisfies Record<string, z.ZodObject>;

/** CloudEvents 1.0, structured JSON. */
const envelope = {
  specversion: z.literal('1.0'),
  id: uuid,
  source: z.string(),
  subject: z.string().openapi({ description: 'Id of what has changed' }),
  time: dateTime,
  datacontenttype: z.literal('application/json'),
  clocksynced: z.boolean().openapi({ description: 'Whether `time` can be believed' }),
  sequence: z.string().optional().openapi({ description: 'Of write progress: counts per encoder' }),
  sequencefrom: z.string().optional().openapi({
    description: 'After a restore or a takeover: where the count went on; no number before it was left out',
  }),
  correlationid: z.string().optional().openapi({ description: 'X-Request-Id of the request that caused it' }),
};

/** encoder.write.written → EncoderWriteWrittenEvent */
function componentName(type: string): string {
  const words = type.split(/[.-]/).map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
  return `${words.join('')}Event`;
}

const options = Object.entries(DATA).map(([type, data]) =>
  z.object({ ...envelope, type: z.literal(`gatehouse.${type}.v1`), data }).openapi(componentName(type)),
);

export const liveEvent = z.discriminatedUnion('type', options as [(typeof options)[0]]).openapi('LiveEvent', {
  description:
    'One of the types below by `type`. Ignore a type that you do not know: later versions add some.',
});
