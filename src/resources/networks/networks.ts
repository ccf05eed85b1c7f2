/** The network resource: rows by the configuration, reads, edits (4.7) and what is known beyond it. */

import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import { type Editor, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Edit, ListQuery, Network, NetworkState } from './schema.ts';
import { type NetworkRow, type NetworkTable, openNetworkTable } from './table.ts';

/** A network of the configuration. `description` is for a new row: later the interface says. */
export interface DeclaredNetwork {
  id: string;
  description?: string | undefined;
}

export interface NetworksOptions {
  database: Database;
  audit: Audit;
  clock: Clock;
  declared: readonly DeclaredNetwork[];
  /** The certificates of a network are others now: its gateways connect again. */
  changed(netId: string): void;
}

export interface Networks {
  get(netId: string): { network: Network; revision: number };
  /** The networks of the configuration from now on. Rows are added for new ones; those of others stay. */
  declare(networks: readonly DeclaredNetwork[]): Promise<void>;
  /** PEM; null when it trusts nothing, or there is no such network. */
  certOf(netId: string): string | null;
  exists(netId: string): boolean;
  list(query: ListQuery): { items: Network[]; next: string | null };
  state(netId: string): NetworkState;
  update(netId: string, edit: Edit, caller: Editor): Promise<{ network: Network; revision: number }>;
}

export async function openNetworks(options: NetworksOptions): Promise<Networks> {
  const { database, audit, clock, changed } = options;
  const table = openNetworkTable(database);
  let declared: readonly DeclaredNetwork[] = [];

  async function declare(networks: readonly DeclaredNetwork[]): Promise<void> {
    const missing = networks.filter(({ id }) => !table.network.get(id));
    const now = clock.now();
    if (missing.length > 0) {
      await database.commit(() => {
        for (const { id, description } of missing)
          table.insert.run(id, description ?? null, now, now, SYSTEM_PRINCIPAL.id);
      });
    }
    declared = networks;
  }

  await declare(options.declared);

  function get(netId: string): { network: Network; revision: number } {
    const row = existing(table, netId);
    return { network: toNetwork(row), revision: row.revision };
  }

  return {
    get,
    declare,
    certOf: (netId) => table.network.get(netId)?.cert ?? null,
    exists: (netId) => table.network.get(netId) !== undefined,

    list({ cursor = '', limit, description = '' }) {
      const rows = table.page.all(cursor, description, limit + 1);
      const items = rows.slice(0, limit).map(toNetwork);
      return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
    },

    state(netId) {
      const row = existing(table, netId);
      const isDeclared = declared.some(({ id }) => id === netId);
      return { id: netId, declared: isDeclared, certificates: describeCertificates(row.cert, clock.now()) };
    },

    async update(netId, edit, { principal, correlationId, ifMatch }) {
      assertSameId('id', edit.id, netId);
      if (typeof edit.cert === 'string') parseCertificates(edit.cert);
      const fields = await database.commit(() => {
        const row = existing(table, netId);
        assertIfMatch(ifMatch, row.revision);
        const { description = row.description, cert = row.cert } = edit;
        const fields = [
          ...(description === row.description ? [] : ['description']),
          ...(cert === row.cert ? [] : ['cert']),
        ];
        if (fields.length === 0) return fields;
        table.update.run(description, cert, clock.now(), principal.id, netId);
        const object = `network/${netId}`;
        const detail = { fields };
        audit.record({ principal, action: 'network.update', object, outcome: 'done', detail, correlationId });
        return fields;
      });
      if (fields.includes('cert')) changed(netId);
      return get(netId);
    },
  };
}

function existing(table: NetworkTable, netId: string): NetworkRow {
  const row = table.network.get(netId);
  if (row) return row;
  throw new GatehouseError('NOT_FOUND', `There is no network ${netId} in the configuration.`);
}

function toNetwork({ id, description, cert }: NetworkRow): Network {
  return { id, description, cert };
}

// The certificates a network trusts, out of the PEM a client gave.

/** An authority, its successor and a few gateways of their own. */
const CERTIFICATES_MAX = 16;
const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]*-----END \1-----/g;

/** One or several; text outside the PEM blocks is allowed (RFC 7468, 2). Throws CERT_INVALID. */
function parseCertificates(pem: string): X509Certificate[] {
  const blocks = [...pem.matchAll(BLOCK)];
  const markers = pem.match(/-----(BEGIN|END) /g)?.length ?? 0;
  if (blocks.length === 0 || markers !== 2 * blocks.length) {
    throw invalid('holds no complete PEM block (-----BEGIN CERTIFICATE----- … -----END CERTIFICATE-----)');
  }
  if (blocks.length > CERTIFICATES_MAX) throw invalid(`holds more than ${CERTIFICATES_MAX} certificates`);
  return blocks.map(([block, label], index) => {
    if (label?.endsWith('PRIVATE KEY')) throw invalid('holds a private key: send certificates only');
    if (label !== 'CERTIFICATE') throw invalid(`holds ${label}: send certificates only`);
    try {
      const certificate = new X509Certificate(block);
      // Keys of an unknown kind show here, and not at the first connection.
      void certificate.publicKey;
      return certificate;
    } catch (error) {
      throw invalid(`cannot be read: certificate ${index + 1} is damaged or of an unknown kind`, error);
    }
  });
}

/** `now` is epoch milliseconds. */
function describeCertificates(pem: string | null, now: number): NetworkState['certificates'] {
  if (pem === null) return [];
  return parseCertificates(pem).map((certificate) => {
    const { subject, issuer, validFromDate, validToDate, ca, fingerprint256 } = certificate;
    return {
      subject: named(subject),
      issuer: named(issuer),
      notBefore: validFromDate.toISOString(),
      notAfter: validToDate.toISOString(),
      authority: ca,
      fingerprint256,
      note: now > validToDate.getTime() ? 'expired' : now < validFromDate.getTime() ? 'not yet valid' : null,
    };
  });
}

/** Node puts the parts of a name on lines of their own, and knows no name at all. */
function named(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ');
}

function invalid(message: string, cause?: unknown): GatehouseError {
  return new GatehouseError('CERT_INVALID', `The certificate ${message}.`, {
    details: [{ path: '/cert', code: 'CERT_INVALID', message }],
    cause,
  });
}
