/**
 * A gateway whose time is over sends encoders nothing, and acknowledges nothing: what it stores then no other one has. It lets none in,
 * so that they look for the other gateway.
 */
import { DriverError } from '../../drivers/contract/driver.ts';
import type { EncoderLink, EncoderLinkHost } from '../../drivers/encoder/link.ts';
import type { Acting } from '../platform/acting.ts';
import type { EncoderConnections } from '../resources/encoders/connections.ts';

const NOT_ACTIVE = 'this gateway cannot renew its lease, and another one of its cluster may be active';

interface Limits {
  mayAct(): boolean;
  /** An encoder that is let in could not be heard out otherwise. */
  mayAdmit(): boolean;
  /** Of what was committed so far. */
  kept(): Promise<void>;
}

/** What stands between the link and the connections. */
export function whileActing({ mayAct, mayAdmit, kept }: Limits) {
  const assertActing = () => {
    if (!mayAct()) throw new DriverError('LINK_LOST', NOT_ACTIVE);
  };
  return {
    link: (link: EncoderLink): Pick<EncoderLink, 'send' | 'kick'> => ({
      async send(encoderId, channel, payload) {
        // What is acknowledged the encoder forgets.
        if (channel === 'ack') await kept();
        assertActing();
        await link.send(encoderId, channel, payload);
      },
      kick: (...encoder) => link.kick(...encoder),
    }),
    host: (host: EncoderLinkHost): EncoderLinkHost => ({
      credential(...asked) {
        // Refused for now (CONNACK 3), and not for good: it looks for the other gateway.
        if (!mayAdmit()) throw new DriverError('LINK_LOST', NOT_ACTIVE);
        return host.credential(...asked);
      },
      standing: (encoderId) => host.standing(encoderId),
      expected: () => host.expected(),
      subscribed: (connection) => host.subscribed(connection),
      async received(...message) {
        await host.received(...message);
        await kept();
        assertActing();
      },
      lost: (...connection) => host.lost(...connection),
    }),
  };
}

/** They may have another gateway to go to, and come back when this one may let them in again. */
export async function cutOffWhenOver(
  acting: Acting,
  connections: Pick<EncoderConnections, 'expected' | 'drop'>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await acting.begun(signal);
    await acting.over(signal);
    if (signal.aborted) return;
    for (const { encoderId } of connections.expected()) await connections.drop(encoderId, NOT_ACTIVE);
  }
}
