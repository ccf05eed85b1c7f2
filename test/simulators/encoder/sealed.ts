/** The two envelopes of a registration answer, opened with node:crypto alone: compact JWS and compact JWE. */
import {
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  type JsonWebKey,
  type KeyObject,
  privateDecrypt,
  constants as rsa,
  verify,
  X509Certificate,
} from 'node:crypto';

type Json = Record<string, unknown>;

/** The payload of an ES256 JWS (RFC 7515) that names `issuer` in its x5c and is signed by its key. */
export function openJws(jws: string, issuer: X509Certificate): Json {
  const [header, payload, signature, ...rest] = jws.split('.');
  if (!header || !payload || !signature || rest.length > 0) throw new Error('not a compact JWS');
  const { alg, x5c } = parse(header);
  if (alg !== 'ES256' && alg !== 'ES384') throw new Error(`JWS signed with ${alg}`);
  const named = new X509Certificate(Buffer.from(String(Array.isArray(x5c) ? x5c[0] : ''), 'base64'));
  if (!named.raw.equals(issuer.raw)) throw new Error('the JWS is signed by another issuer');
  const valid = verify(
    alg === 'ES256' ? 'sha256' : 'sha384',
    Buffer.from(`${header}.${payload}`),
    { key: issuer.publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  if (!valid) throw new Error('the signature of the JWS is wrong');
  return parse(payload);
}

/** The plain text of a JWE (RFC 7516): ECDH-ES or RSA-OAEP-256, then A256GCM. */
export function openJwe(jwe: string, key: KeyObject): Json {
  const [header, encryptedKey, nonce, content, tag, ...rest] = jwe.split('.');
  if (!header || encryptedKey === undefined || !nonce || !content || !tag || rest.length > 0) {
    throw new Error('not a compact JWE');
  }
  const { alg, enc, epk } = parse(header);
  if (enc !== 'A256GCM') throw new Error(`JWE encrypted with ${enc}`);
  const contentKey =
    alg === 'ECDH-ES' ? agree(epk as JsonWebKey, key) : unwrap(String(alg), encryptedKey, key);
  // RFC 7516 5.2: the additional authenticated data is the encoded header.
  const decipher = createDecipheriv('aes-256-gcm', contentKey, Buffer.from(nonce, 'base64url'))
    .setAAD(Buffer.from(header, 'ascii'))
    .setAuthTag(Buffer.from(tag, 'base64url'));
  const plain = Buffer.concat([decipher.update(Buffer.from(content, 'base64url')), decipher.final()]);
  return JSON.parse(plain.toString()) as Json;
}

/** RFC 7518 4.6.2: Concat KDF with SHA-256, direct agreement for A256GCM, no party info; one round gives 256 bits. */
function agree(epk: JsonWebKey, key: KeyObject): Buffer {
  const secret = diffieHellman({
    privateKey: key,
    publicKey: createPublicKey({ key: epk, format: 'jwk' }),
  });
  const algorithm = Buffer.from('A256GCM');
  const otherInfo = [uint32(algorithm.length), algorithm, uint32(0), uint32(0), uint32(256)];
  return createHash('sha256')
    .update(Buffer.concat([uint32(1), secret, ...otherInfo]))
    .digest();
}

function unwrap(alg: string, encryptedKey: string, key: KeyObject): Buffer {
  if (alg !== 'RSA-OAEP-256') throw new Error(`JWE with ${alg}`);
  return privateDecrypt(
    { key, padding: rsa.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
    Buffer.from(encryptedKey, 'base64url'),
  );
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json;
