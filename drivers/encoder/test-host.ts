/** A host for tests of encoder links: admits what it was told to, and remembers everything it is told. */
import { vi } from 'vitest';
import type { CredentialVerdict, EncoderConnection, EncoderLinkHost, UpChannel } from './link.ts';
import { WAIT } from './test-peer.ts';

export type Told =
  | { what: 'subscribed'; connection: EncoderConnection }
  | { what: 'received'; connection: EncoderConnection; channel: UpChannel; payload: string }
  | { what: 'lost'; connection: EncoderConnection; reason: string };

export interface TestHost extends EncoderLinkHost {
  readonly told: Told[];
  /** What became of a credential, by fingerprint. */
  readonly credentials: Map<string, CredentialVerdict & { encoderId: string }>;
  /** Decides about each message, after it was remembered; resolves at once unless a test replaces it. */
  store: (payload: string) => Promise<void>;
  /** What was told of one encoder, waiting until there are so many. */
  wait<What extends Told['what']>(
    what: What,
    encoderId: string,
    count?: number,
  ): Promise<Extract<Told, { what: What }>[]>;
}

export function openTestHost(): TestHost {
  const told: Told[] = [];
  const credentials: TestHost['credentials'] = new Map();
  const host: TestHost = {
    told,
    credentials,
    store: async () => undefined,
    credential(encoderId, fingerprint256) {
      const known = credentials.get(fingerprint256);
      return known?.encoderId === encoderId ? known : { ok: false, reason: 'unknown' };
    },
    subscribed: (connection) => void told.push({ what: 'subscribed', connection }),
    async received(connection, channel, payload) {
      const text = payload.toString();
      told.push({ what: 'received', connection, channel, payload: text });
      await host.store(text);
    },
    lost: (connection, reason) => void told.push({ what: 'lost', connection, reason }),
    wait: <What extends Told['what']>(what: What, encoderId: string, count = 1) =>
      vi.waitFor(() => {
        const found = told.filter(
          (entry): entry is Extract<Told, { what: What }> =>
            entry.what === what && entry.connection.encoderId === encoderId,
        );
        if (found.length < count) throw new Error(`${what} of ${encoderId}: ${found.length} of ${count}`);
        return found;
      }, WAIT),
  };
  return host;
}
