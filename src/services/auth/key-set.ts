/** The public keys of the site's identity provider (a JSON Web Key Set, RFC 7517), as it is fetched, checked and kept. */
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { dirname } from 'node:path';
import { failureWords } from '../../../drivers/contract/connection-failure.ts';
import { TLS } from '../../../drivers/contract/tls.ts';
import { openDeadline } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { writeDurably } from '../../platform/host/durable-file.ts';
import { readNamedFile } from '../../platform/host/regular-file.ts';
import { bodyOf } from '../../platform/http/answers.ts';
import { shownUrl } from '../../platform/shown-url.ts';

/** Providers publish two to ten keys, some with certificates: a few kilobytes each. */
const SET_MAX_BYTES = 256 * 1_024;
const KEYS_MAX = 64;
const KID_MAX = 512;
const RSA_MIN_BITS = 2_048;
const FETCH_DEADLINE_MS = 10_000;

/** What of a key is used; certificates and whatever else is published stay out of the file. */
const FIELDS = ['kty', 'kid', 'alg', 'use', 'key_ops', 'crv', 'x', 'y', 'n', 'e'] as const;

/** The keys in the set that verify signatures. Throws when it is no set, or has none. */
export function readKeySet(text: string): JsonWebKey[] {
  if (Buffer.byteLength(text) > SET_MAX_BYTES) throw new Error(`it has more than ${SET_MAX_BYTES} bytes`);
  let set: { keys?: unknown } | null;
  try {
    set = JSON.parse(text) as typeof set;
  } catch {
    // Not the parser's error: it quotes the text, which is a secret where the wrong file is named.
    throw new Error('it is not JSON');
  }
  if (!Array.isArray(set?.keys)) throw new Error('it has no list of keys: is it a JSON Web Key Set?');
  if (set.keys.length > KEYS_MAX) throw new Error(`it has more than ${KEYS_MAX} keys`);
  const keys = (set.keys as unknown[]).map(verifyingKey).filter((key) => key !== undefined);
  if (keys.length === 0) throw new Error('it has no public key of a kind that is taken (RSA, EC, OKP)');
  return keys;
}

/** Undefined for what is not the public half of a signing key: shared secrets among them, and keys published whole. */
function verifyingKey(candidate: unknown): JsonWebKey | undefined {
  if (typeof candidate !== 'object' || candidate === null) return undefined;
  const given = candidate as JsonWebKey;
  const isPublic = given.d === undefined && given.k === undefined;
  if (!isPublic || given.use === 'enc') return undefined;
  if (given.kid !== undefined && (typeof given.kid !== 'string' || given.kid.length > KID_MAX))
    return undefined;
  const key: JsonWebKey = Object.fromEntries(
    FIELDS.flatMap((name) => (name in given ? [[name, given[name]]] : [])),
  );
  try {
    const { modulusLength = RSA_MIN_BITS } =
      createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails ?? {};
    return modulusLength < RSA_MIN_BITS ? undefined : key;
  } catch {
    return undefined;
  }
}

export interface KeySetSource {
  url: string;
  /** PEM of the authority that signed the provider's server; those the system trusts when absent. */
  caFile?: string | undefined;
}

/** One GET, over HTTPS unless the URL says loopback; follows nothing. Rejects with what is wrong, in words. */
export async function fetchKeySet(
  { url, caFile }: KeySetSource,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  const late = () => new Error(`no answer within ${FETCH_DEADLINE_MS / 1_000} s`);
  using deadline = openDeadline(FETCH_DEADLINE_MS, clock, late);
  try {
    return await get(url, caFile, AbortSignal.any([signal, deadline.signal]));
  } catch (error) {
    const cause = deadline.signal.aborted ? (deadline.signal.reason as Error) : (error as Error);
    throw new Error(`the keys could not be fetched from ${shownUrl(url)}: ${failureWords(cause)}`, { cause });
  }
}

function get(url: string, caFile: string | undefined, signal: AbortSignal): Promise<string> {
  const options = { signal, agent: false as const, headers: { accept: 'application/json' } };
  const asked = url.startsWith('http:')
    ? plainRequest(url, options)
    : tlsRequest(url, { ...options, ...TLS, ...(caFile !== undefined && { ca: readNamedFile(caFile) }) });
  asked.end();
  return bodyOf(asked, SET_MAX_BYTES);
}

/** A set as it was fetched last. */
export interface StoredKeySet {
  /** Whose: a set of another provider is of no use. */
  issuer: string;
  url: string;
  /** Epoch milliseconds of the known time. */
  fetchedAt: number;
  keys: JsonWebKey[];
}

/** Throws when the file is damaged; undefined when there is none. */
export function loadKeySet(file: string): StoredKeySet | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const keys = readKeySet(text);
  const { issuer, url, fetchedAt } = JSON.parse(text) as StoredKeySet;
  if (!Number.isSafeInteger(fetchedAt)) throw new Error('it does not say when it was fetched');
  return { issuer, url, fetchedAt, keys };
}

export async function storeKeySet(file: string, set: StoredKeySet): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  await writeDurably(file, JSON.stringify(set));
}
