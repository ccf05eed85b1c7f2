/** The envelopes are opened by hand; jose makes them here, so that two implementations have to agree. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { CompactEncrypt, CompactSign } from 'jose';
import { expect, it } from 'vitest';
import { makeFactory } from './factory.ts';
import { drawOperationalKey } from './registration.ts';
import { openJwe, openJws } from './sealed.ts';

const plain = new TextEncoder().encode(JSON.stringify({ type: 'x509', generation: 3 }));

it.each([
  ['P-256', 'ECDH-ES'],
  ['P-384', 'ECDH-ES'],
  ['RSA', 'RSA-OAEP-256'],
] as const)('opens a JWE to a key of type %s', async (keyType, alg) => {
  const key = drawOperationalKey(keyType);
  const sealed = await new CompactEncrypt(plain)
    .setProtectedHeader({ alg, enc: 'A256GCM' })
    .encrypt(createPublicKey(key));
  expect(openJwe(sealed, key)).toEqual({ type: 'x509', generation: 3 });
  expect(() => openJwe(sealed, drawOperationalKey(keyType))).toThrow();
});

it('believes a JWS only by the issuer it knows', async () => {
  const factory = await makeFactory();
  const device = await factory.makeDevice('issuer');
  const certificate = new X509Certificate(device.chain);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const x5c = [certificate.raw.toString('base64')];
  const sign = (key: Parameters<CompactSign['sign']>[0]) =>
    new CompactSign(plain).setProtectedHeader({ alg: 'ES256', x5c }).sign(key);
  expect(openJws(await sign(createPrivateKey(device.key)), certificate)).toEqual({
    type: 'x509',
    generation: 3,
  });
  const forged = await sign(privateKey);
  expect(() => openJws(forged, certificate)).toThrow('signature');
});
