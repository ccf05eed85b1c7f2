/** Asks a device for what only ours tell (protocol/maker-messages.ts). */
import { DriverError } from '../contract/driver.ts';
import {
  decodeMakerReply,
  encodeMakerRequest,
  type MakerReply,
  type MakerRequest,
} from './protocol/maker-messages.ts';
import type { Asking, Talk } from './talk.ts';

type Answer<Kind> = MakerReply & { kind: Kind };

/** Throws a DriverError; REFUSED also when the device knows no such message. */
export async function askMaker<Kind extends 'status' | 'settings' | 'product'>(
  talk: Pick<Talk, 'ask'>,
  request: MakerRequest,
  kind: Kind,
  asking: Asking,
): Promise<Answer<Kind>> {
  const told = decodeMakerReply(await talk.ask(encodeMakerRequest(request), asking));
  if (told?.kind === kind) return told as Answer<Kind>;
  if (told?.kind === 'refused')
    throw new DriverError('REFUSED', `the device does not take it (reason ${told.reason})`);
  throw new DriverError('BAD_REPLY', 'the device answered something else than it was asked');
}
