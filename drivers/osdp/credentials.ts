/** What a reader read, as it is passed on. */
import type { CredentialEvent } from '../contract/rs485.ts';
import type { Reply } from './protocol/messages.ts';

/** 7.11: 1 is P/data/P, as on a Wiegand interface; 0 is not said. */
const WIEGAND = 1;

export function credentialOf(
  reply: Reply & { kind: 'RAW' | 'KEYPAD' },
): Pick<CredentialEvent, 'reader' | 'format' | 'bits' | 'count'> {
  const { reader } = reply;
  if (reply.kind === 'KEYPAD') return { reader, format: 'keypad', bits: null, count: reply.digits.length };
  return {
    reader,
    format: reply.format === WIEGAND ? 'wiegand' : 'raw',
    bits: Buffer.from(reply.bits).toString('hex'),
    count: reply.bitCount,
  };
}
