import {
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { compactDecrypt } from 'jose/jwe/compact/decrypt';
import { describe, expect, it } from 'vitest';
import { parseOperationalKey } from '../services/pki/possession.ts';
import { sealTo } from './jose.ts';

const DOCUMENT = { type: 'x509', clientId: 'desk-1', generation: 2, certFingerprint: 'AA:BB' };
const WITH_SECRETS = { ...DOCUMENT, username: 'desk-1', password: 'hunter2' };

const pairs: [string, () => { publicKey: KeyObject; privateKey: KeyObject }, string][] = [
  ['P-256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ECDH-ES'],
  ['P-384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'ECDH-ES'],
  ['RSA', () => generateKeyPairSync('rsa', { modulusLength: 2048 }), 'RSA-OAEP-256'],
];

describe('sealTo', () => {
  it.each(pairs)('seals to %s so that only its private key opens it', async (_name, generate, alg) => {
    const { publicKey, privateKey } = generate();
    const sealed = await sealTo(operational(publicKey), WITH_SECRETS);
    const { plaintext, protectedHeader } = await compactDecrypt(sealed, privateKey);
    expect(JSON.parse(Buffer.from(plaintext).toString())).toEqual(WITH_SECRETS);
    expect(protectedHeader).toMatchObject({ alg, enc: 'A256GCM' });
    await expect(compactDecrypt(sealed, generate().privateKey)).rejects.toThrow();
  });

  it('writes a JWE that opens with the primitives of RFC 7518 4.6 alone', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const sealed = await sealTo(operational(publicKey), WITH_SECRETS);
    const [header = '', encryptedKey, iv = '', ciphertext = '', tag = ''] = sealed.split('.');
    expect(encryptedKey).toBe('');
    const { epk } = JSON.parse(Buffer.from(header, 'base64url').toString());
    const shared = diffieHellman({ privateKey, publicKey: createPublicKey({ key: epk, format: 'jwk' }) });
    const key = concatKdf(shared, 'A256GCM');
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'))
      .setAAD(Buffer.from(header))
      .setAuthTag(Buffer.from(tag, 'base64url'));
    const plain = Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]);
    expect(JSON.parse(plain.toString())).toEqual(WITH_SECRETS);
  });

  it('gives a holder of an Ed25519 key plain JSON and no secret', async () => {
    const { publicKey } = generateKeyPairSync('ed25519');
    expect(JSON.parse(await sealTo(operational(publicKey), WITH_SECRETS))).toEqual(DOCUMENT);
  });
});

function operational(key: KeyObject) {
  return parseOperationalKey(key.export({ type: 'spki', format: 'pem' }).toString());
}

/** One round of NIST SP 800-56A 5.8.1 with the other information of RFC 7518 4.6.2. */
function concatKdf(shared: Buffer, algorithm: string): Buffer {
  const number = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  return createHash('sha256')
    .update(number(1))
    .update(shared)
    .update(Buffer.concat([number(algorithm.length), Buffer.from(algorithm)]))
    .update(Buffer.concat([number(0), number(0), number(256)]))
    .digest();
}
