/**
 * What a technician's tool and the encoder do together at registration (docs/encoder-protocol.md, Registration): build
 * the body, send it, and open every field of the answer. Written from the protocol text alone, so that a mistake the
 * gateway makes in its bytes is not made here as well.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  constants as rsa,
  sign,
  X509Certificate,
} from 'node:crypto';
import { request as plainRequest, type RequestOptions } from 'node:http';
import { Agent, request as tlsRequest } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Device, KeyType } from './factory.ts';
import { openJwe, openJws } from './sealed.ts';

/** What an encoder keeps of its registration: all it needs to connect. Written to a file as JSON. */
export interface Bundle {
  encoderId: string;
  /** `mqtts://host:port` */
  endpoint: string;
  /** Credential generation. */
  generation: number;
  systemId: string;
  clientId: string;
  keepAliveSeconds: number;
  /** PEM: client certificate, then its issuing CA. */
  certificate: string;
  /** PKCS #8 PEM of the operational key. */
  key: string;
  /** PEM: trust anchor of the endpoint. */
  anchor: string;
  username?: string;
  password?: string;
}

export interface RegistrationBody {
  deviceCert: string;
  publicKey: string;
  signature: string;
  name?: string;
  metadata?: Record<string, string>;
}

export interface RegistrationRequest {
  baseUrl: string;
  /** PEM of the gateway's root. */
  ca: string;
  token: string;
  encoderId: string;
  device: Device;
  /** The operational key; drawn when absent. */
  operationalKey?: KeyObject;
  vendorKey: string;
  name?: string;
  metadata?: Record<string, string>;
}

/** How the device signs: the forms the protocol admits beside the defaults (EC in DER, RSA in PSS). */
export type SignatureForm = 'default' | 'p1363' | 'pkcs1';

export function drawOperationalKey(keyType: KeyType = 'P-256'): KeyObject {
  if (keyType === 'Ed25519') return generateKeyPairSync('ed25519').privateKey;
  if (keyType === 'RSA') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  return generateKeyPairSync('ec', { namedCurve: keyType }).privateKey;
}

export function buildBody(
  encoderId: string,
  device: Device,
  operationalKey: KeyObject,
  form: SignatureForm = 'default',
): RegistrationBody {
  const spki = createPublicKey(operationalKey).export({ type: 'spki', format: 'der' });
  const leaf = new X509Certificate(device.chain).raw;
  const content = Buffer.from(
    'GATEHOUSE-ENCODER-REGISTRATION-V1\n' +
      `${encoderId}\n` +
      `${createHash('sha256').update(leaf).digest('hex')}\n` +
      `${spki.toString('base64')}\n`,
  );
  return {
    deviceCert: device.chain,
    publicKey: createPublicKey(operationalKey).export({ type: 'spki', format: 'pem' }).toString(),
    signature: signWith(createPrivateKey(device.key), content, form).toString('base64'),
  };
}

function signWith(key: KeyObject, content: Buffer, form: SignatureForm): Buffer {
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return sign(null, content, key);
    case 'rsa':
      return form === 'pkcs1'
        ? sign('sha256', content, { key, padding: rsa.RSA_PKCS1_PADDING })
        : sign('sha256', content, { key, padding: rsa.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
    default:
      return sign('sha256', content, { key, dsaEncoding: form === 'p1363' ? 'ieee-p1363' : 'der' });
  }
}

/** Registers and checks the whole answer. Throws with the gateway's error code, or with what is wrong in the answer. */
export async function register(registration: RegistrationRequest): Promise<Bundle> {
  const { baseUrl, ca, token, encoderId, device, vendorKey, name, metadata } = registration;
  const operationalKey = registration.operationalKey ?? drawOperationalKey();
  const body = {
    ...buildBody(encoderId, device, operationalKey),
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
  };
  const answer = await call({ method: 'PUT', url: `${baseUrl}/encoder/${encoderId}`, ca, token, body });
  if (answer.status !== 200) {
    throw new Error(`registration of ${encoderId} refused: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
  return openAnswer(answer.body, encoderId, operationalKey, vendorKey);
}

/** Opens every field of the answer to a registration. Throws at the first that is not as the protocol has it. */
export function openAnswer(
  answer: Record<string, unknown>,
  encoderId: string,
  operationalKey: KeyObject,
  vendorKey: string,
): Bundle {
  const generation = Number(answer.version);
  check(Number.isInteger(generation) && generation >= 1, 'version is not an integer from 1');
  check(answer.id === encoderId, 'id is not the encoder that was registered');

  const [leaf, issuer] = certificates(text(answer.cert, 'cert'));
  if (!leaf || !issuer) throw new Error('registration answer: cert holds no issuing CA');
  const bundle = Buffer.from(text(object(answer.secrets)['iot-credentials'], 'secrets'), 'base64');
  const members = certificates(bundle.toString());
  const anchor = members.at(-1);
  if (!anchor) throw new Error('registration answer: secrets.iot-credentials holds no trust anchor');
  check(members[0]?.raw.equals(leaf.raw) === true, 'the bundle does not begin with the client certificate');
  checkClientCertificate(leaf, encoderId, generation, operationalKey);
  checkChain(members.slice(0, 3));

  const bytes = answer.systemId;
  check(Array.isArray(bytes) && bytes.length === 16, 'systemId is not 16 bytes');
  const systemId = uuidOf(bytes as number[]);
  const signed = Buffer.from(text(object(answer.configurations)[vendorKey], 'configurations'), 'base64');
  const configuration = openJws(signed.toString(), issuer);
  check(configuration.schema === 1, 'configuration.schema is not 1');
  check(configuration.encoderId === encoderId, 'configuration.encoderId is another encoder');
  check(configuration.systemId === systemId, 'configuration.systemId is another system');

  const credentials = openCredentials(text(answer.credentials, 'credentials'), operationalKey);
  check(credentials.type === 'x509', 'credentials.type is not x509');
  check(credentials.generation === generation, 'credentials.generation is not version');
  check(
    plainHex(text(credentials.certFingerprint, 'certFingerprint')) === plainHex(leaf.fingerprint256),
    'credentials.certFingerprint is not that of cert',
  );
  return {
    encoderId,
    endpoint: text(answer.endpoint, 'endpoint'),
    generation,
    systemId,
    clientId: text(configuration.clientId, 'configuration.clientId'),
    keepAliveSeconds: Number(configuration.keepAliveSeconds),
    certificate: text(answer.cert, 'cert'),
    key: operationalKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    anchor: anchor.toString(),
    ...(typeof credentials.username === 'string' && { username: credentials.username }),
    ...(typeof credentials.password === 'string' && { password: credentials.password }),
  };
}

function checkClientCertificate(
  leaf: X509Certificate,
  encoderId: string,
  generation: number,
  key: KeyObject,
): void {
  const subject = leaf.subject.split('\n').sort().join(', ');
  check(subject === `CN=${encoderId}, OU=g${generation}`, `the certificate's subject is ${subject}`);
  check(leaf.subjectAltName === undefined, 'the certificate has a subject alternative name');
  // node:crypto calls the extended key usage keyUsage; 1.3.6.1.5.5.7.3.2 is clientAuth (RFC 5280 4.2.1.12).
  check(leaf.keyUsage?.join() === '1.3.6.1.5.5.7.3.2', 'the certificate is not for clientAuth only');
  check(leaf.checkPrivateKey(key), 'the certificate is not for the operational key');
}

function checkChain(chain: X509Certificate[]): void {
  for (const [index, member] of chain.entries()) {
    const issuer = chain[index + 1] ?? member;
    check(member.checkIssued(issuer) && member.verify(issuer.publicKey), 'the certificate chain is broken');
  }
}

/** Nothing can be sealed to an Ed25519 key, so there the answer is plain JSON, without secrets. */
function openCredentials(field: string, key: KeyObject): Record<string, unknown> {
  const content = Buffer.from(field, 'base64').toString();
  if (key.asymmetricKeyType === 'ed25519') return object(JSON.parse(content));
  return openJwe(content, key);
}

export interface CallOptions {
  method: string;
  /** https:, or http: where a gateway serves without TLS. */
  url: string;
  ca: string;
  token?: string;
  body?: unknown;
  /** Whose connection is used; one of its own when absent. */
  agent?: Agent;
}

/** One HTTP exchange with a gateway whose root is `ca` (PEM). */
export async function call(
  options: CallOptions,
): Promise<{ status: number; body: Record<string, unknown>; headers: Record<string, unknown> }> {
  const content = options.body === undefined ? undefined : JSON.stringify(options.body);
  const isPlain = options.url.startsWith('http:');
  const settings: RequestOptions = {
    method: options.method,
    agent: options.agent ?? (isPlain ? false : agentFor(options.ca)),
    timeout: 20_000,
    headers: {
      ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
      ...(content !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(content),
      }),
    },
  };
  const request = isPlain ? plainRequest : tlsRequest;
  return await new Promise((resolve, reject) => {
    const sent = request(options.url, settings, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const received = Buffer.concat(chunks).toString();
        try {
          const body = received === '' ? {} : object(JSON.parse(received));
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers });
        } catch (error) {
          reject(new Error(`${options.method} ${options.url}: not JSON: ${received}`, { cause: error }));
        }
      });
    });
    sent.on('timeout', () => sent.destroy(new Error(`${options.url} did not answer in 20 s`)));
    sent.on('error', reject);
    sent.end(content);
  });
}

const agents = new Map<string, Agent>();

/** Makes a connection for each request; what it trusts is read once, which takes longer than a request. */
function agentFor(ca: string): Agent {
  const agent =
    agents.get(ca) ?? new Agent({ secureContext: createSecureContext({ ca }), maxCachedSessions: 0 });
  agents.set(ca, agent);
  return agent;
}

function certificates(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return found.map((one) => new X509Certificate(one));
}

function uuidOf(bytes: number[]): string {
  return Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

const plainHex = (fingerprint: string) => fingerprint.replaceAll(':', '').toLowerCase();

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(`registration answer: ${otherwise}`);
}

function text(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new Error(`registration answer: ${field} is not a string`);
  return value;
}

function object(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error('registration answer: not an object');
  return value as Record<string, unknown>;
}
