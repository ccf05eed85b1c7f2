/** The encoder resource: reads, edits (4.2), revocation and retirement. Registering is registration.ts, the live link connections.ts. */
import type { Clock } from '../../platform/clock.ts';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import type { Caller, Editor } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { EncoderConnections, Presence } from './connections.ts';
import {
  type Editable,
  type Encoder,
  type EncoderState,
  type ListedEncoder,
  encoder as shownEncoder,
} from './schema.ts';
import type { EncoderRow, EncoderTable } from './table.ts';

export interface EncodersOptions {
  database: Database;
  table: EncoderTable;
  audit: Audit;
  clock: Clock;
  connections: Pick<EncoderConnections, 'presence' | 'drop' | 'forget'>;
  /** Its write requests that are not finished. */
  openRequests(encoderId: string): number;
}

export interface PageQuery {
  cursor?: string | undefined;
  limit: number;
  connected?: 'true' | 'false' | undefined;
  revoked?: 'true' | 'false' | undefined;
  name?: string | undefined;
}

export interface Encoders {
  get(encoderId: string): {
    encoder: Encoder;
    revision: number;
  };
  exists(encoderId: string): boolean;
  /** It installs new software. */
  upgrading(encoderId: string): boolean;
  /** The journal of its last birth. */
  journal(encoderId: string): string | null;
  /** undefined: there is no such encoder. */
  nameOf(encoderId: string): string | null | undefined;
  list(query: PageQuery): { items: ListedEncoder[]; next: string | null };
  state(encoderId: string): EncoderState;
  update(encoderId: string, edit: Editable, caller: Editor): Promise<{ encoder: Encoder; revision: number }>;
  /** The active credential ends now; repeating it changes nothing. */
  revoke(encoderId: string, caller: Caller): Promise<{ encoder: Encoder; revision: number }>;
  retire(encoderId: string, caller: Editor): Promise<Encoder>;
}

export function openEncoders(options: EncodersOptions): Encoders {
  const { database, table, audit, clock, connections, openRequests } = options;

  function get(encoderId: string): { encoder: Encoder; revision: number } {
    const row = existing(table, encoderId);
    return { encoder: toEncoder(row, connections.presence(encoderId)), revision: row.revision };
  }

  return {
    get,

    exists: (encoderId) => table.encoder.get(encoderId) !== undefined,
    upgrading: (encoderId) => (table.encoder.get(encoderId)?.upgrade_job_info ?? null) !== null,
    journal: (encoderId) => table.encoder.get(encoderId)?.journal ?? null,

    nameOf: (encoderId) => table.encoder.get(encoderId)?.name,

    list: (query) => page(options, query),

    state(encoderId) {
      const row = existing(table, encoderId);
      const credential = table.byGeneration.get(encoderId, row.generation);
      if (!credential)
        throw new Error(`encoder ${encoderId} has no credential of generation ${row.generation}`);
      const live = connections.presence(encoderId);
      const since = (at: number | null | undefined) =>
        at === null || at === undefined ? null : Math.round(clock.monotonic() - at);
      return {
        id: encoderId,
        generation: row.generation,
        credential: {
          status: credential.status,
          fingerprint256: credential.fingerprint,
          notAfter: new Date(credential.not_after).toISOString(),
        },
        journal: row.journal,
        connectedFor: since(live?.connectedAt),
        lastMessageAge: since(live?.lastMessageAt),
        openRequests: openRequests(encoderId),
        messagesAhead: table.countAhead.get(encoderId)?.count ?? 0,
      };
    },

    async update(encoderId, edit, { principal, correlationId, ifMatch }) {
      assertSameId('id', edit.id, encoderId);
      await database.commit(() => {
        const row = existing(table, encoderId);
        assertIfMatch(ifMatch, row.revision);
        const changed = applyEdit(table, row, edit, { now: clock.now(), by: principal.id });
        if (changed.length === 0) return;
        audit.record({
          principal,
          action: 'encoder.update',
          object: `encoder/${encoderId}`,
          outcome: 'done',
          detail: { fields: changed },
          correlationId,
        });
      });
      return get(encoderId);
    },

    async revoke(encoderId, { principal, correlationId }) {
      await database.commit(() => {
        const row = existing(table, encoderId);
        if (table.endActive.run('revoked', encoderId).changes === 0) return;
        audit.record({
          principal,
          action: 'encoder.revoke',
          object: `encoder/${encoderId}`,
          outcome: 'done',
          detail: { generation: row.generation },
          correlationId,
        });
      }, 'urgent');
      await connections.drop(encoderId, 'the credential was revoked');
      return get(encoderId);
    },

    retire: (encoderId, caller) => retire(options, encoderId, caller),
  };
}

/** Removes an encoder for good; resolves with what it was, which the audit keeps too. */
async function retire(
  { database, table, audit, clock, connections, openRequests }: EncodersOptions,
  encoderId: string,
  { principal, correlationId, ifMatch }: Editor,
): Promise<Encoder> {
  const retired = await database.commit(() => {
    const row = existing(table, encoderId);
    assertIfMatch(ifMatch, row.revision);
    const isConnected = connections.presence(encoderId)?.connected ?? false;
    const dependent = dependentOn(isConnected, openRequests(encoderId));
    if (dependent !== undefined)
      throw new GatehouseError('IN_USE', `Encoder ${encoderId} cannot be removed: ${dependent}.`);
    const encoder = toEncoder(row, connections.presence(encoderId));
    const { name, metadata, platform, versions } = encoder;
    table.endActive.run('revoked', encoderId);
    table.retire.run(clock.now(), clock.now(), principal.id, encoderId);
    audit.record({
      principal,
      action: 'encoder.retire',
      object: `encoder/${encoderId}`,
      outcome: 'done',
      detail: { generation: row.generation, name, metadata, platform, versions },
      correlationId,
    });
    return encoder;
  });
  await connections.forget(encoderId, 'it was removed');
  return retired;
}

function dependentOn(isConnected: boolean, requests: number): string | undefined {
  if (isConnected) return 'it is connected: revoke it first';
  if (requests === 0) return undefined;
  return `${requests} of its write requests are not finished: cancel them, or wait until they have expired`;
}

/** Presence lives in memory, so the filter reads on, page by page, until enough encoders match. */
function page(
  { database, table, connections, openRequests }: EncodersOptions,
  { cursor, limit, connected, revoked, name }: PageQuery,
): { items: ListedEncoder[]; next: string | null } {
  const items: ListedEncoder[] = [];
  let after = cursor ?? '';
  for (;;) {
    const rows = table.page.all(after, name ?? '', limit + 1);
    for (const row of rows) {
      const [encoder] = database.legible(`encoder/${row.id}`, () =>
        toEncoder(row, connections.presence(row.id)),
      );
      if (!encoder) continue;
      if (connected !== undefined && String(encoder.connectionState.connected) !== connected) continue;
      if (revoked !== undefined && String(isRevoked(table, row)) !== revoked) continue;
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? null };
      items.push({ ...encoder, openRequests: openRequests(row.id) });
    }
    if (rows.length <= limit) return { items, next: null };
    after = rows.at(-1)?.id ?? '';
  }
}

function isRevoked(table: EncoderTable, { id, generation }: EncoderRow): boolean {
  return table.byGeneration.get(id, generation)?.status !== 'active';
}

function existing(table: EncoderTable, encoderId: string): EncoderRow {
  const row = table.encoder.get(encoderId);
  if (row) return row;
  throw new GatehouseError('NOT_FOUND', `There is no encoder ${encoderId}: register it first.`);
}

/** `revision` is undefined for an encoder that does not exist yet. */
export function assertEditable(
  encoderId: string,
  edit: Editable,
  ifMatch: string | undefined,
  revision: number | undefined,
): void {
  assertSameId('id', edit.id, encoderId);
  assertIfMatch(ifMatch, revision);
}

/** Writes what differs and returns its field names; nothing is written when nothing differs. */
export function applyEdit(
  table: EncoderTable,
  row: Pick<EncoderRow, 'id' | 'name' | 'metadata'>,
  edit: Editable,
  { now, by }: { now: number; by: string },
): string[] {
  const name = edit.name === undefined ? row.name : edit.name;
  const metadata = edit.metadata === undefined ? row.metadata : storedMetadata(edit.metadata);
  const changed = [
    ...(name === row.name ? [] : ['name']),
    ...(metadata === row.metadata ? [] : ['metadata']),
  ];
  if (changed.length > 0) table.setEditable.run(name, metadata, now, by, row.id);
  return changed;
}

/** Keys sorted, so that the same content is the same text. */
export function storedMetadata(metadata: Record<string, string> | null | undefined): string | null {
  if (!metadata) return null;
  const sorted = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(sorted));
}

const { shape } = shownEncoder;

export function toEncoder(row: EncoderRow, presence: Presence | undefined): Encoder {
  const object = `encoder/${row.id}`;
  return {
    id: row.id,
    name: row.name,
    metadata: storedJson(object, shape.metadata, row.metadata),
    ipAddress: row.ip_address,
    alarmState: { changedOn: storedTime(object, row.alarm_changed_at), raised: row.alarm_raised === 1 },
    connectionState: {
      changedOn: storedTime(object, presence?.changedAt ?? row.connected_changed_at),
      connected: presence?.connected ?? false,
    },
    apps: storedJson(object, shape.apps, row.apps),
    platform: storedJson(object, shape.platform, row.platform),
    upgradeJobInfo: storedJson(object, shape.upgradeJobInfo, row.upgrade_job_info),
    versions: storedJson(object, shape.versions, row.versions),
  };
}
