/** A host for tests of encoder links: admits what a test allows, and remembers every call. */
import { vi } from 'vitest';
import type {
  CredentialVerdict,
  EncoderConnection,
  EncoderLinkHost,
  UpChannel,
} from '../../../drivers/encoder/link.ts';
import { WAIT } from './peer.ts';

export type HostCall =
  | { what: 'subscribed'; connection: EncoderConnection }
  | { what: 'received'; connection: EncoderConnection; channel: UpChannel; payload: string }
  | { what: 'lost'; connection: EncoderConnection; reason: string };

export interface TestHost extends EncoderLinkHost {
  readonly calls: HostCall[];
  /** What became of a credential, by fingerprint. */
  readonly credentials: Map<string, CredentialVerdict & { encoderId: string }>;
  /** Decides about each message, after it was remembered; resolves at once unless a test replaces it. */
  store: (payload: string) => Promise<void>;
  /** The calls for one encoder, waiting until there are so many. */
  wait<What extends HostCall['what']>(
    what: What,
    encoderId: string,
    count?: number,
  ): Promise<Extract<HostCall, { what: What }>[]>;
}

export function openTestHost(): TestHost {
  const calls: HostCall[] = [];
  const credentials: TestHost['credentials'] = new Map();
  const host: TestHost = {
    calls,
    credentials,
    store: async () => undefined,
    credential(encoderId, fingerprint256) {
      const known = credentials.get(fingerprint256);
      return known?.encoderId === encoderId ? known : { ok: false, reason: 'unknown' };
    },
    standing: (encoderId) =>
      [...credentials.values()].findLast((known) => known.encoderId === encoderId) ?? {
        ok: false,
        reason: 'unknown',
      },
    expected: () =>
      [...credentials.values()].flatMap((known) =>
        known.ok ? [{ encoderId: known.encoderId, generation: known.generation }] : [],
      ),
    subscribed: (connection) => void calls.push({ what: 'subscribed', connection }),
    async received(connection, channel, payload) {
      const text = payload.toString();
      calls.push({ what: 'received', connection, channel, payload: text });
      await host.store(text);
    },
    lost: (connection, reason) => void calls.push({ what: 'lost', connection, reason }),
    wait: <What extends HostCall['what']>(what: What, encoderId: string, count = 1) =>
      vi.waitFor(() => {
        const found = calls.filter(
          (entry): entry is Extract<HostCall, { what: What }> =>
            entry.what === what && entry.connection.encoderId === encoderId,
        );
        if (found.length < count) throw new Error(`${what} of ${encoderId}: ${found.length} of ${count}`);
        return found;
      }, WAIT),
  };
  return host;
}
