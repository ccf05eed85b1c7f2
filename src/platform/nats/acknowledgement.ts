/** What a JetStream answers to a message (PubAck). Pure. */
import { z } from 'zod';
import { peersWords } from '../../../drivers/contract/connection-failure.ts';
import type { Received } from './wire.ts';

/** `none`: no stream takes the subject. */
export type Acknowledgement =
  | { kind: 'stored'; sequence: number }
  | { kind: 'error'; code: number; reason: string }
  | { kind: 'none' };

/** What is of another shape has stored nothing. */
const publishAck = z.object({
  stream: z.string().optional(),
  seq: z.int().optional(),
  error: z.object({ err_code: z.int().optional(), description: z.string().optional() }).optional(),
});
type PublishAck = z.output<typeof publishAck>;

/** An acknowledgement names the stream that has stored the message; whatever else answers has stored nothing. */
export function ackOf({ status, payload }: Pick<Received, 'status' | 'payload'>): Acknowledgement {
  if (status === 503) return { kind: 'none' };
  const { stream, seq, error } = parsed(payload);
  if (error) {
    const reason = peersWords(error.description ?? 'the stream refuses it');
    return { kind: 'error', code: error.err_code ?? 0, reason };
  }
  // A refusal has a seq of 0.
  if (stream !== undefined && stream !== '' && seq !== undefined && seq > 0)
    return { kind: 'stored', sequence: seq };
  return { kind: 'error', code: 0, reason: 'what answered is no stream' };
}

function parsed(payload: Uint8Array): PublishAck {
  try {
    return publishAck.parse(JSON.parse(Buffer.from(payload).toString()));
  } catch {
    return {};
  }
}
