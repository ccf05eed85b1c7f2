/** Who may connect to an external broker, kept in step with the credentials in force. */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { BrokerConnection } from './broker-connection.ts';

/** After a failure it is tried again, and where nothing changes it is compared as often as this. */
const RETRY_MS = 10_000;
const COMPARE_MS = 600_000;
/** A unit of systemd that sees the file change, and a reload. */
const CRL_SETTLES_MS = 5_000;

/** Encoder and generation, whose certificate has the subject `CN=<encoderId>, OU=g<generation>`. */
export interface ForceCredential {
  encoderId: string;
  generation: number;
}

export type Publish = BrokerConnection['publish'];

export interface BrokerAdministration {
  readonly kind: 'mosquitto-dynsec' | 'crl-file' | 'none';
  /** What the gateway subscribes to for it, beside the topics of encoders. */
  readonly filters: readonly string[];
  /** A message of one of these filters. */
  received(payload: Buffer): void;
  /** Makes the broker admit these credentials and no other of this gateway. The same again does no harm. */
  apply(publish: Publish, wanted: readonly ForceCredential[]): Promise<void>;
  /** Ends the live connection of an encoder; undefined where the broker has no way for it. */
  disconnect?(publish: Publish, credential: ForceCredential): Promise<void>;
  /** Until the broker knows what was applied, at the most: a connection that is ended before may come again. */
  readonly settlesMs?: number;
  /** It is applied without a connection to the broker, too. */
  readonly isLocal?: boolean;
}

/** The operator keeps the broker's accounts. */
export const NO_ADMINISTRATION: BrokerAdministration = {
  kind: 'none',
  filters: [],
  received: () => undefined,
  apply: async () => undefined,
};

/** For one that reads a revocation list, which somebody brings to it when it changes; `write` is done once it is on the disk. */
export function crlFileAdministration(write: () => Promise<void>): BrokerAdministration {
  return { ...NO_ADMINISTRATION, kind: 'crl-file', apply: write, settlesMs: CRL_SETTLES_MS, isLocal: true };
}

/** Applies it when the connection opens, when a credential changes, and again until it has worked. */
export interface AdministrationKeeper {
  /** Runs until the signal fires, with one connection. */
  keep(publish: Publish, signal: AbortSignal): Promise<never>;
  /** A credential has changed: resolves when the broker knows, or could not be informed now. */
  changed(): Promise<void>;
  /** Why the broker is not as wanted; null when it is. */
  lastError(): string | null;
}

export function openKeeper(
  administration: BrokerAdministration,
  wanted: () => readonly ForceCredential[],
  { clock, log }: { clock: Clock; log: DriverLog },
): AdministrationKeeper {
  let lastError: string | null = null;
  const without: Publish = () => Promise.reject(new DriverError('LINK_LOST', 'the broker is away'));
  let publish: Publish | undefined;
  let running = Promise.resolve();

  async function applyOnce(): Promise<void> {
    if (!publish && !administration.isLocal) return;
    try {
      await administration.apply(publish ?? without, wanted());
      if (lastError !== null) log.info({}, 'the broker knows the credentials of the encoders again');
      lastError = null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== lastError)
        log.error({ reason }, 'the broker does not know who is shut out and who is let in');
      lastError = reason;
    }
  }
  /** One after the other, so that an older state never follows a newer one. */
  const apply = () => {
    running = running.then(applyOnce);
    return running;
  };

  if (administration.isLocal) void apply();
  return {
    async keep(open, signal) {
      publish = open;
      try {
        for (;;) {
          await apply();
          await clock.sleep(lastError === null ? COMPARE_MS : RETRY_MS, signal);
        }
      } finally {
        publish = undefined;
      }
    },
    changed: () => apply(),
    lastError: () => lastError,
  };
}
