/**
 * Registering an encoder (interface specification 4.1; docs/encoder-protocol.md, Registration). Everything is made
 * before the one commit, which checks once more that it may be stored; after it the old session is ended, so that the old credentials are worth nothing.
 */
import type { KeyObject, X509Certificate } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller, Editor } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { EncoderConnections } from './connections.ts';
import { applyEdit, assertEditable, type Encoders, storedMetadata } from './encoders.ts';
import type { RegisteredEncoder, RegistrationRequest } from './schema.ts';
import type { EncoderTable } from './table.ts';

const HOUR_MS = 3_600_000;
/** On the wire, and in `configurations` (docs/encoder-protocol.md, Connection). */
const CONFIGURATION_SCHEMA = 1;

export interface OperationalKey {
  key: KeyObject;
  kind: 'ec' | 'ed25519' | 'rsa';
  spki: Buffer;
  /** Hex SHA-256 of `spki`. */
  sha256: string;
}

/** What the registration needs of the site's certificate authority. */
export interface RegistrationPki {
  /** Throws CERT_INVALID, CERT_UNTRUSTED, CERT_EXPIRED or CN_MISMATCH. */
  verifyChain(chainPem: string, encoderId: string): { leaf: X509Certificate };
  /** Throws VALIDATION_FAILED. */
  parseKey(publicKey: string): OperationalKey;
  /** Throws SIGNATURE_INVALID. */
  verifyPossession(proof: {
    encoderId: string;
    leaf: X509Certificate;
    operational: OperationalKey;
    signature: string;
  }): void;
  issue(request: { encoderId: string; generation: number; spki: Uint8Array }): Promise<{
    certificate: string;
    fingerprint256: string;
    notAfter: number;
  }>;
  sign(document: Record<string, unknown>): Promise<string>;
  seal(operational: OperationalKey, document: Record<string, unknown>): Promise<string>;
  /** PEM: the issuer of encoder certificates, and the root. */
  issuer: string;
  root: string;
  /** What encoders trust where they connect, when it is not the root. */
  anchor: string | undefined;
}

export interface RegistrationOptions {
  database: Database;
  table: EncoderTable;
  encoders: Pick<Encoders, 'get'>;
  audit: Audit;
  clock: Clock;
  pki: RegistrationPki;
  systemId: string;
  endpoint: string;
  vendorKey: string;
  registrationsPerHour: number;
  keepAliveSeconds: number;
  maxPacketBytes: number;
  connections: Pick<EncoderConnections, 'drop'>;
}

interface Issued {
  generation: number;
  certificate: { certificate: string; fingerprint256: string; notAfter: number };
  answer: Pick<
    RegisteredEncoder,
    'cert' | 'configurations' | 'credentials' | 'endpoint' | 'secrets' | 'systemId' | 'version'
  >;
}

export interface Registration {
  /** 200 for a new encoder and for an existing one; the answer holds the new credentials, once. */
  register(
    encoderId: string,
    request: RegistrationRequest,
    caller: Editor,
  ): Promise<{ encoder: RegisteredEncoder; revision: number }>;
}

export function openRegistration(options: RegistrationOptions): Registration {
  const { database, table, encoders, audit, clock, pki } = options;
  /** Registrations of one encoder run one after the other, since each needs the number of the one before. */
  const running = new Map<string, Promise<unknown>>();

  async function register(encoderId: string, request: RegistrationRequest, caller: Editor) {
    const operational = verified(pki, encoderId, request);
    const assertAllowed = () => {
      const row = table.encoder.get(encoderId);
      assertEditable(encoderId, request, caller.ifMatch, row?.revision);
      assertFreshKey(table, encoderId, operational);
      return row;
    };
    const before = assertAllowed() ?? table.retired.get(encoderId);
    assertRate(table, encoderId, clock.now(), options.registrationsPerHour);
    const issued = await issue(options, encoderId, (before?.generation ?? 0) + 1, operational);
    await database.commit(() => {
      // Issuing takes a while, in which another request may have changed the encoder or taken the key.
      assertAllowed();
      const by = caller.principal.id;
      store(table, encoderId, { request, operational, issued, now: clock.now(), by });
      audit.record({
        ...auditOf(encoderId, caller),
        outcome: 'done',
        detail: { generation: issued.generation, fingerprint256: issued.certificate.fingerprint256 },
      });
    });
    await options.connections.drop(encoderId, 'it was registered again');
    const { encoder, revision } = encoders.get(encoderId);
    return { encoder: { ...encoder, ...issued.answer }, revision };
  }

  async function auditRefusal(encoderId: string, caller: Caller, error: unknown): Promise<void> {
    if (!(error instanceof GatehouseError)) return;
    await database.commit(() =>
      audit.record({ ...auditOf(encoderId, caller), outcome: 'refused', detail: { error: error.code } }),
    );
  }

  return {
    async register(encoderId, request, caller) {
      const before = running.get(encoderId) ?? Promise.resolve();
      const turn = before.then(
        () => register(encoderId, request, caller),
        () => register(encoderId, request, caller),
      );
      running.set(encoderId, turn);
      try {
        return await turn;
      } catch (error) {
        await auditRefusal(encoderId, caller, error);
        throw error;
      } finally {
        if (running.get(encoderId) === turn) running.delete(encoderId);
      }
    },
  };
}

function auditOf(encoderId: string, { principal, correlationId }: Caller) {
  return { principal, action: 'encoder.register', object: `encoder/${encoderId}`, correlationId };
}

function verified(pki: RegistrationPki, encoderId: string, request: RegistrationRequest): OperationalKey {
  const operational = pki.parseKey(request.publicKey);
  const { leaf } = pki.verifyChain(request.deviceCert, encoderId);
  pki.verifyPossession({ encoderId, leaf, operational, signature: request.signature });
  return operational;
}

/** Only the active generation's own key may come again, as often as its answer is lost on the way. */
function assertFreshKey(table: EncoderTable, encoderId: string, operational: OperationalKey): void {
  const uses = table.byKey.all(operational.sha256);
  const isForeign = uses.some((use) => use.encoder_id !== encoderId);
  if (!isForeign && (uses.length === 0 || uses.some(({ status }) => status === 'active'))) return;
  const whose = isForeign ? 'another encoder' : 'an earlier registration of this encoder';
  throw new GatehouseError(
    'PUBLIC_KEY_REUSED',
    `This publicKey belongs to ${whose}: let the encoder make a new key pair and register that.`,
  );
}

function assertRate(table: EncoderTable, encoderId: string, now: number, limit: number): void {
  const recent = table.registrationsBetween.get(encoderId, now - HOUR_MS, now);
  if (!recent || recent.count < limit) return;
  const retryAfterSeconds = Math.max(1, Math.ceil(((recent.oldest ?? now) + HOUR_MS - now) / 1_000));
  throw new GatehouseError(
    'RATE_LIMITED',
    `Encoder ${encoderId} was registered ${recent.count} times within an hour; try again in ${Math.ceil(retryAfterSeconds / 60)} minutes.`,
    { retryAfterSeconds },
  );
}

async function issue(
  options: RegistrationOptions,
  encoderId: string,
  generation: number,
  operational: OperationalKey,
): Promise<Issued> {
  const { pki, clock, systemId, vendorKey } = options;
  const certificate = await pki.issue({ encoderId, generation, spki: operational.spki });
  const configuration = await pki.sign({
    schema: CONFIGURATION_SCHEMA,
    encoderId,
    systemId,
    clientId: encoderId,
    topics: { up: `enc/${encoderId}/up`, down: `enc/${encoderId}/down` },
    keepAliveSeconds: options.keepAliveSeconds,
    maxPacketBytes: options.maxPacketBytes,
    issuedAt: new Date(clock.now()).toISOString(),
  });
  const sealed = await pki.seal(operational, {
    type: 'x509',
    clientId: encoderId,
    generation,
    certFingerprint: certificate.fingerprint256,
  });
  const cert = `${certificate.certificate.trimEnd()}\n${pki.issuer.trimEnd()}\n`;
  return {
    generation,
    certificate,
    answer: {
      cert,
      configurations: { [vendorKey]: base64(configuration) },
      credentials: base64(sealed),
      endpoint: options.endpoint,
      secrets: { 'iot-credentials': base64(`${cert}${pki.root.trimEnd()}\n${pki.anchor ?? ''}`) },
      systemId: [...Buffer.from(systemId.replaceAll('-', ''), 'hex')],
      version: generation,
    },
  };
}

interface Registered {
  request: RegistrationRequest;
  operational: OperationalKey;
  issued: Issued;
  /** Epoch milliseconds. */
  now: number;
  /** The principal. */
  by: string;
}

function store(
  table: EncoderTable,
  encoderId: string,
  { request, operational, issued, now, by }: Registered,
): void {
  const { generation, certificate } = issued;
  const row = table.encoder.get(encoderId);
  if (row) {
    applyEdit(table, row, request, { now, by });
    table.setGeneration.run(generation, encoderId);
  } else {
    const metadata = storedMetadata(request.metadata);
    const name = request.name ?? null;
    if (table.retired.get(encoderId))
      table.registerRetired.run(name, metadata, generation, now, now, now, by, now, by, encoderId);
    else table.insertEncoder.run(encoderId, name, metadata, generation, now, now, now, by, now, by);
  }
  table.endActive.run('superseded', encoderId);
  table.insertCredential.run(
    encoderId,
    generation,
    certificate.fingerprint256,
    operational.sha256,
    certificate.notAfter,
    now,
  );
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
