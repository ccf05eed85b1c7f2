/**
 * Commands of OSDP links beyond those of all RS-485 links (rs485.ts). Commands (DriverCommand.kind, data → answer):
 *  - `sendFile`  SendFile → FileSent       some of a file, as far as that gets in a second or two. REFUSED, BAD_REPLY: the
 *                                          device takes no more of it
 *  - `abortFile` AbortFile → null          the device is to forget what it has of a file
 *  - `readdress` Readdress → Readdressed   another address or baud rate, and who answers where then. REFUSED,
 *                                          INVALID_COMMAND: nothing has changed
 *  - `showOnReader` ShowOnReader → ReaderShown   a text, a light and beeps, for a time. Again is harmless
 */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { hwId } from './settings.ts';

const FINGERPRINT_HEX = 16;

/** Names a key without revealing it (Rs485Report.provenKey): 64 bits that are derived from 128 random ones. */
export function keyFingerprint(key: Uint8Array): string {
  return createHmac('sha256', key).update('OSDP SCBK').digest('hex').slice(0, FINGERPRINT_HEX);
}

/** What OSDP can say is 4 GB; firmware of a reader is some hundred kilobytes. */
export const FILE_MAX = 16 * 1_024 * 1_024;
/** More than any bus carries in the time of one command, and well below what a message between processes may have. */
export const FILE_PIECE_MAX = 32 * 1_024;
const offset = z.int().min(0).max(FILE_MAX);
export const sendFile = z.strictObject({
  hwId,
  /** FtType of SIA OSDP 2.2, 6.26: 1 is a file as it is, from 128 on the maker's own. */
  type: z.int().min(1).max(255),
  total: z.int().min(1).max(FILE_MAX),
  /** Bytes that the device has confirmed; `data` are the next ones. */
  offset,
  data: z.instanceof(Uint8Array).refine(({ length }) => length <= FILE_PIECE_MAX, 'expected a smaller piece'),
  /** As the answer before said; absent: no one has asked it. */
  messageMax: z.int().min(0).max(65_535).optional(),
});
export type SendFile = z.infer<typeof sendFile>;
export const fileSent = z.object({
  /** Bytes confirmed now; 0 where there were some: the device knows nothing of them. */
  offset,
  messageMax: z.int(),
  /** `interrupted`: the device was lost, for `reason` · `restarting`: it has all, and comes back as a new one. */
  stage: z.enum(['sending', 'interrupted', 'done', 'restarting']),
  reason: z.string().max(512).nullable(),
});
export type FileSent = z.infer<typeof fileSent>;
export const abortFile = z.strictObject({ hwId });
export type AbortFile = z.infer<typeof abortFile>;

/** 127 is everybody's (SIA OSDP 2.2, 5.4). */
const address = z.int().min(0).max(126);

export const readdress = z.strictObject({
  hwId,
  address,
  baudRate: z.int().min(1_200).max(230_400),
});
export type Readdress = z.infer<typeof readdress>;
export const readdressed = z.object({
  /** As the device said it would have them; null: its answer was lost. */
  answered: z.object({ address: z.int(), baudRate: z.int() }).nullable(),
  /** Where it answers now, at the rate of the bus; null: nowhere. */
  found: address.nullable(),
});
export type Readdressed = z.infer<typeof readdressed>;

const READER_COLOURS = ['off', 'red', 'green', 'amber'] as const;
/** osdp_TEXT has one byte each for seconds, row and column, and devices at most four rows of 16 (SIA OSDP 2.2, annex B.7). */
export const readerText = z.strictObject({
  text: z.string().regex(/^[ -~]{1,32}$/, 'expected 1 to 32 printable ASCII characters'),
  row: z.int().min(1).max(4).default(1),
  column: z.int().min(1).max(32).default(1),
  seconds: z.int().min(1).max(255).default(5),
});
export const readerLed = z.strictObject({
  led: z.int().min(0).max(255).default(0),
  colour: z.enum(READER_COLOURS),
  milliseconds: z.int().min(100).max(600_000).default(2_000),
});
export const readerBuzzer = z.strictObject({
  beeps: z.int().min(1).max(10).default(1),
  onMilliseconds: z.int().min(100).max(5_000).default(100),
  offMilliseconds: z.int().min(100).max(5_000).default(100),
});
export const showOnReader = z.strictObject({
  hwId,
  reader: z.int().min(0).max(255),
  text: readerText.optional(),
  led: readerLed.optional(),
  buzzer: readerBuzzer.optional(),
});
export type ShowOnReader = z.infer<typeof showOnReader>;
const readerPart = z.enum(['reader', 'text', 'led', 'buzzer']);
export const readerShown = z.object({
  /** What the device has acknowledged. */
  shown: z.array(readerPart).max(3),
  /** The first part that it cannot do, as its capabilities or its answer say; then nothing after it was sent. */
  refused: z.object({ part: readerPart, reason: z.string().max(512) }).nullable(),
});
export type ReaderShown = z.infer<typeof readerShown>;
