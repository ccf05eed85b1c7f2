/** The revocation list of encoders as a file, for a broker that reads one (`encoders.broker.administration: crl-file`). */
import { writeDurably } from '../platform/host/durable-file.ts';
import type { CredentialKey, SiteCa } from '../services/pki/site-ca.ts';

export interface RevocationFileOptions {
  file: string;
  ca: Pick<SiteCa, 'revocationList'>;
  /** Every credential that has ended, ever: their number is that of the list. */
  ended(): CredentialKey[];
}

/** Resolves once the list on the disk has them all. */
export function openRevocationFile({ file, ca, ended }: RevocationFileOptions): () => Promise<void> {
  let written: number | undefined;
  return async () => {
    const all = ended();
    if (all.length === written) return;
    await writeDurably(file, await ca.revocationList(all));
    written = all.length;
  };
}
