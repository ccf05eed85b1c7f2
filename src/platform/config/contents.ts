/**
 * Whether the files that the configuration names hold what they should. Not for a start: what is damaged there costs its
 * own part alone, and the vendors' roots are read strictly by the code that goes by them (src/services/pki/device-chain.ts).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dateFault, KeyPairFault, keyIn, keyPairIn, serverCertificatesIn } from '../key-pair.ts';
import { certificatesIn } from '../pem.ts';
import type { Problem } from '../yaml/problem.ts';
import type { Config } from './config.ts';
import { filesOfBroker } from './encoder-broker.ts';
import { filesOfSink, placedSinks } from './sinks.ts';

/** What is wrong with the text of a file, as "FILE …"; undefined: nothing. */
type Fault = (text: string) => string | undefined;
type Check = [path: PropertyKey[], file: string | undefined, fault: Fault];

/** Services judge strictly, and a start goes by them: what they refuse is no valid configuration. Each throws with the reason. */
export interface Judging {
  /** Epoch milliseconds. */
  now: number;
  vendorRoots(pem: string): void;
  keySet(text: string): void;
}

/** `texts`: what is in each file that can be read; of the others more was said before. */
export function unfitFiles(config: Config, judging: Judging, texts: ReadonlyMap<string, string>): Problem[] {
  const { http, encoders } = config;
  const { oidc } = config.auth;
  const notRoots: Fault = (text) =>
    notCertificates(text) ?? notAuthorities(text) ?? refusal(judging.vendorRoots, text);
  const notKeySet: Fault = (text) => refusal(judging.keySet, text);
  const roots = encoders.vendorRoots.map(
    (file, index): Check => [['encoders', 'vendorRoots', index], file, notRoots],
  );
  const checks: Check[] = [
    ...roots,
    [['auth', 'oidc', 'caFile'], oidc?.caFile, notCertificates],
    [['auth', 'oidc', 'jwksFile'], oidc?.jwksFile, notKeySet],
    ...clientChecks(config),
    [['cluster', 'caFile'], config.cluster?.caFile, notCertificates],
    [['cluster', 'certFile'], config.cluster?.certFile, notCertificates],
    [['cluster', 'keyFile'], config.cluster?.keyFile, notPrivateKey],
  ];
  const others = checks.flatMap(([path, file, fault]) => {
    const text = file === undefined ? undefined : texts.get(file);
    const found = text === undefined ? undefined : fault(text);
    return found === undefined ? [] : [{ path, message: `${file} ${found}` }];
  });
  return [...unfitPair(http, judging.now, texts), ...others];
}

/** Those of clients of other servers: the notification services and the broker of the encoders. */
function clientChecks(config: Config): Check[] {
  const faults: Record<string, Fault> = {
    caFile: notCertificates,
    certFile: notCertificates,
    keyFile: notPrivateKey,
  };
  const clients = placedSinks(config).map(({ sink, at }) => ({ at, files: filesOfSink(sink) }));
  const broker = { at: ['encoders', 'broker'], files: filesOfBroker(config.encoders.broker) };
  return [...clients, broker].flatMap(({ at, files }) =>
    files.flatMap(({ name, file }): Check[] => {
      const fault = faults[name];
      return fault ? [[[...at, name], file, fault]] : [];
    }),
  );
}

function unfitPair(
  { certFile, keyFile }: Config['http'],
  now: number,
  texts: ReadonlyMap<string, string>,
): Problem[] {
  const files = { certFile, keyFile };
  const textOf = (file: string | undefined) => (file === undefined ? undefined : texts.get(file));
  const certificates = textOf(certFile);
  const key = textOf(keyFile);
  const faultOf = (action: () => unknown): Problem[] => {
    try {
      action();
      return [];
    } catch (error) {
      if (!(error instanceof KeyPairFault)) throw error;
      return [{ path: ['http', error.file], message: `${files[error.file]} ${error.message}` }];
    }
  };
  const faults = [
    ...(certificates === undefined ? [] : faultOf(() => serverCertificatesIn(certificates))),
    ...(key === undefined ? [] : faultOf(() => keyIn(key))),
  ];
  if (faults.length > 0 || certificates === undefined || key === undefined) return faults;
  return faultOf(() => {
    const fault = dateFault(keyPairIn(certificates, key), now);
    if (fault !== undefined) throw new KeyPairFault('certFile', fault);
  });
}

function refusal(judge: (text: string) => void, text: string): string | undefined {
  try {
    judge(text);
    return undefined;
  } catch (error) {
    return `cannot be used: ${(error as Error).message}`;
  }
}

function notCertificates(text: string): string | undefined {
  const blocks = certificatesIn(text);
  if (blocks.length === 0)
    return 'holds no certificate in PEM (-----BEGIN CERTIFICATE-----); one in DER: openssl x509 -inform der -in FILE -out FILE.pem';
  return blocks.map(certificateIn).includes(undefined)
    ? 'holds a certificate that cannot be read: copy it again'
    : undefined;
}

function notAuthorities(text: string): string | undefined {
  const isLeaf = certificatesIn(text).some((block) => certificateIn(block)?.ca === false);
  return isLeaf ? "holds a certificate that is no authority's: ask the vendor for its root" : undefined;
}

function certificateIn(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined;
  }
}

function notPrivateKey(text: string): string | undefined {
  try {
    createPrivateKey(text);
    return undefined;
  } catch {
    return 'holds no private key in PEM that can be read without a password';
  }
}
