/**
 * What the daemon and its hosts say to each other. Each side checks every message of the other: a host that speaks
 * nonsense is ended, and a host that hears nonsense ends itself.
 */
import { z } from 'zod';
import { DRIVER_ERROR_CODES, type Plain } from '../../../drivers/contract/driver.ts';

/** Either side sends one, so that the other knows it alive. */
export const HEARTBEAT_MS = 500;
/**
 * Beats missed in a row before a host counts as dead: 3 s, for its buses stand still meanwhile. Counted in beats, not in
 * elapsed time, so that a process that was itself held up does not blame the other for it.
 */
export const HOST_BEATS_MISSED_MAX = 6;
/**
 * The same of the daemon: 15 s. A disk that keeps it waiting for seconds must not end a bus, which works without it. A
 * daemon that is gone closes the channel, which ends a host at once; this is for one that hangs, before systemd's
 * watchdog of 30 s ends it too.
 */
export const DAEMON_BEATS_MISSED_MAX = 30;
/** For all links of a host to close when the daemon asks. */
export const CLOSING_DEADLINE_MS = 8_000;
/** The same when no one is there to wait: the next daemon wants the links soon. */
export const ORPHAN_CLOSING_DEADLINE_MS = 1_500;
/** Events of one link that are sent and not yet durable. Enough to fill a group commit, few enough to keep in memory. */
export const EVENT_CREDITS = 32;
/** Subjects of one link: some hundred devices with some reports each. */
export const SUBJECTS_MAX = 4_096;
/** Commands of one host that are not settled. */
export const COMMANDS_MAX = 256;
/** Longest a command may take: a firmware step over a slow radio. */
export const COMMAND_TIMEOUT_MAX_MS = 600_000;
/** Characters of an error message or log line. */
export const TEXT_MAX = 4_096;
/** Characters of what a driver names: the subject of a report, the id of an event. */
export const NAME_MAX = 256;
/** Characters of the kind of an event or a command. */
export const KIND_MAX = 64;
/** Rough size of plain data in one message: bytes, and 8 per value. */
const PLAIN_MAX_BYTES = 256 * 1024;
const PLAIN_MAX_DEPTH = 16;

/** Is it data as `Plain` says, finite numbers only, and within bounds? Ends early on anything that is too large. */
export function isPlain(value: unknown): value is Plain {
  return spend(value, { bytes: PLAIN_MAX_BYTES }, PLAIN_MAX_DEPTH);
}

/** The budget is shared by the whole value: a value that contains another many times cannot take long. */
function spend(value: unknown, budget: { bytes: number }, depth: number): boolean {
  budget.bytes -= 8 + (typeof value === 'string' ? value.length * 2 : 0);
  if (budget.bytes < 0) return false;
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return false;
  if (value instanceof Uint8Array) {
    budget.bytes -= value.byteLength;
    return budget.bytes >= 0;
  }
  if (depth === 0) return false;
  if (Array.isArray(value)) {
    // A sparse array claims a length it does not have; its holes are undefined, and so refused.
    if (value.length > budget.bytes / 8) return false;
    for (const item of value) if (!spend(item, budget, depth - 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.entries(value).every(([key, item]) => {
    budget.bytes -= key.length * 2;
    return key !== '__proto__' && spend(item, budget, depth - 1);
  });
}

const plain = z.custom<Plain>(isPlain, 'expected plain data within bounds');
const linkId = z.string().min(1).max(64);
const kind = z.string().min(1).max(KIND_MAX);
const name = z.string().min(1).max(NAME_MAX);
const id = z.int().min(1);
const text = z.string().max(TEXT_MAX);

const failure = z.strictObject({ code: z.enum(DRIVER_ERROR_CODES), message: text });

const linkStart = z.strictObject({ id: linkId, protocol: kind, options: plain });

const fromDaemon = z.discriminatedUnion('type', [
  /** The first message, and only once. */
  z.strictObject({ type: z.literal('start'), links: z.array(linkStart).max(64) }),
  /** One more link, or one that was closed before. */
  z.strictObject({ type: z.literal('open'), link: linkStart }),
  z.strictObject({ type: z.literal('close'), linkId }),
  /** `actsUntil`: monotonic milliseconds; then the host ends by itself, for another gateway may have its links. Absent: never. */
  z.strictObject({ type: z.literal('heartbeat'), actsUntil: z.number().optional() }),
  /**
   * Ids only rise; one that does not is not executed. `deadline` is monotonic milliseconds, which all processes of a
   * machine share: a command that lay in the channel while the host was held up is not executed late.
   */
  z.strictObject({
    type: z.literal('command'),
    id,
    linkId,
    kind,
    data: plain,
    deadline: z.number(),
    /** Nothing of it reaches a device before its `release`. */
    held: z.literal(true).optional(),
  }),
  z.strictObject({ type: z.literal('release'), id }),
  z.strictObject({ type: z.literal('cancel'), id }),
  z.strictObject({ type: z.literal('durable'), seq: id }),
  /** The event could not be stored now; it is to be sent again. */
  z.strictObject({ type: z.literal('refused'), seq: id }),
]);

const fromHost = z.discriminatedUnion('type', [
  /** The first one comes when the code of all drivers is loaded. */
  z.strictObject({ type: z.literal('heartbeat') }),
  z.strictObject({ type: z.literal('link'), linkId, up: z.boolean(), error: failure.optional() }),
  z.strictObject({ type: z.literal('report'), linkId, subject: name, state: plain }),
  /** `seq` numbers the emission, for its answer; `id` is the driver's and survives a crash. */
  z.strictObject({
    type: z.literal('event'),
    linkId,
    seq: id,
    id: name,
    kind,
    data: plain,
  }),
  z.strictObject({ type: z.literal('done'), id, data: plain }),
  z.strictObject({ type: z.literal('failed'), id, error: failure }),
  z.strictObject({
    type: z.literal('log'),
    level: z.enum(['debug', 'info', 'warn', 'error']),
    fields: z.record(z.string().max(64), plain),
    message: text,
  }),
]);

export type LinkStart = z.output<typeof linkStart>;
export type DaemonMessage = z.output<typeof fromDaemon>;
export type HostMessage = z.output<typeof fromHost>;
export type Failure = z.output<typeof failure>;

/** Throw on nonsense. */
export const parseDaemonMessage = (value: unknown): DaemonMessage => parse(fromDaemon, value);
export const parseHostMessage = (value: unknown): HostMessage => parse(fromHost, value);

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new Error(`message not understood: ${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'invalid'}`);
}
