/** An identity provider for tests: keys, the set it publishes, and the tokens it issues. */
import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose/jwt/sign';
import { onTestFinished } from 'vitest';
import { SYSTEM_ID } from './testbed.ts';

export const ISSUER = 'https://login.example/realms/site';
export const AUDIENCE = 'gatehouse';

export interface IssuerKey {
  kid: string;
  alg: string;
  key: KeyObject;
  jwk: JsonWebKey;
}

const PAIRS: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

export function issuerKey(kid: string, alg = 'ES256'): IssuerKey {
  const { publicKey, privateKey } = PAIRS[alg]?.() ?? generateKeyPairSync('ed25519');
  return { kid, alg, key: privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' } };
}

export const keySet = (...keys: IssuerKey[]) => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });

/** A token that is right in every respect, for an hour from `now` (milliseconds), with these claims changed. */
export function issue(
  { key, kid, alg }: IssuerKey,
  now: number,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  const seconds = Math.floor(now / 1_000);
  const right = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'ada',
    iat: seconds,
    exp: seconds + 3_600,
    system_id: SYSTEM_ID,
    roles: ['pms', 'somebody elses'],
  };
  return new SignJWT({ ...right, ...claims })
    .setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header })
    .sign(key);
}

/** Serves on loopback until the test ends; returns the URL of the set. */
export async function publish(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/certs`;
}
