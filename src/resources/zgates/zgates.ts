/** The Zigbee gateway resource: rows by the configuration, reads, edits (4.6) and what is known beyond it. */

import { isDeepStrictEqual } from 'node:util';
import type { DriverEvent, Plain, StateReport } from '../../../drivers/contract/driver.ts';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import { unknownOf } from '../../platform/http/fields.ts';
import { type Caller, type Editor, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { ChannelMoveBody, PermitJoinBody, ShownJoinWindow } from './action-schema.ts';
import { type Channels, openChannels } from './channels.ts';
import type { DeclaredGateway, ZgateContext } from './context.ts';
import { firmwareWarning } from './coordinator-firmware.ts';
import { type Energies, openEnergies } from './energies.ts';
import { type FailedJoins, openFailedJoins } from './failed-joins.ts';
import { type Joining, openJoining } from './joining.ts';
import { openMap } from './map.ts';
import { type Moves, openMoves, shownMove, shownStayedBehind } from './moves.ts';
import { type Overview, overviewOf } from './overview.ts';
import { linkOf } from './reach.ts';
import {
  type Edit,
  type ListQuery,
  zgate as shownZgate,
  type Wanted,
  type Zgate,
  type ZgateState,
} from './schema.ts';
import { type Orders, openSnapshots, type Snapshot } from './snapshots.ts';
import { startOptions } from './start-options.ts';
import { allowedChannelsOf, existing, openZgateTable, type ZgateRow, type ZgateTable } from './table.ts';

export type ZgatesOptions = Omit<ZgateContext, 'table' | 'gatewayOfLink'>;

const FIELDS = ['name', 'description', 'groupId', 'allowedChannels'] as const satisfies (keyof Wanted)[];

/** What is stored of a gateway, so that its network can be given to another coordinator. */
interface GatewaySnapshots extends Pick<Zgate, 'deviceId' | 'name' | 'hwId' | 'zigbeeChannel'> {
  link: string;
  linkUp: boolean | null;
  snapshots: Snapshot[];
}

export interface Zgates extends Overview, Pick<Orders, 'restore' | 'withdrawRestore'> {
  get(deviceId: string): { zgate: Zgate; revision: number };
  /** The gateways of the configuration from now on. A link must be closed before its gateway is another or none. */
  declare(declared: readonly DeclaredGateway[]): Promise<void>;
  list(query: ListQuery): { items: Zgate[]; next: string | null };
  countInGroup(groupId: string): number;
  exists(deviceId: string): boolean;
  /** undefined: there is no such gateway. `changedAt` in epoch milliseconds. */
  connection(deviceId: string): { connected: boolean; changedAt: number } | undefined;
  /** The gateway on a link, by the configuration. */
  ofLink(linkId: string): string | undefined;
  networkOf(deviceId: string): string | null;
  /** The link of a gateway of the configuration. */
  linkOf(deviceId: string): string | undefined;
  state(deviceId: string): ZgateState;
  update(
    deviceId: string,
    edit: Edit & { deviceId?: string | undefined },
    caller: Editor,
  ): Promise<{ zgate: Zgate; revision: number }>;
  permitJoin(
    deviceId: string,
    body: PermitJoinBody,
    caller: Caller,
  ): Promise<{ deviceId: string; joinWindow: ShownJoinWindow | null }>;
  moveChannel(deviceId: string, body: ChannelMoveBody, caller: Caller): Promise<unknown>;
  scanEnergies(deviceId: string, caller: Caller): Promise<unknown>;
  map(deviceId: string, caller: Caller): Promise<unknown>;
  report(linkId: string, report: StateReport): void;
  link(linkId: string, up: boolean): void;
  /** Resolves when it is durable; false when it is none of a gateway. */
  event(linkId: string, event: DriverEvent): Promise<boolean>;
  /** Of the link of a gateway, beside what the configuration says. */
  startOptions(deviceId: string): { [key: string]: Plain };
  snapshots(): GatewaySnapshots[];
  channels: Channels;
  joining: Joining;
}

export async function openZgates(options: ZgatesOptions): Promise<Zgates> {
  const { database, clock, log } = options;
  const table = openZgateTable(database);
  const { gatewayOfLink, declare } = openDeclared(options, table);
  await declare(options.declared);
  const context: ZgateContext = { ...options, table, gatewayOfLink };
  const channels = openChannels(context, (row, channel) => moves.byItself(row, channel));
  const energies = openEnergies(context);
  const moves = openMoves({ ...context, channels, energies });
  const { reconciler, reported } = channels;
  const toZgate = zgateFrom(options, channels);
  const joining = await openJoining(context, isOpenBy(channels));
  const snapshots = await openSnapshots(context);
  const failedJoins = openFailedJoins(context);

  function get(deviceId: string): { zgate: Zgate; revision: number } {
    const row = existing(table, deviceId);
    return { zgate: toZgate(row), revision: row.revision };
  }

  return {
    get,
    async declare(declared) {
      await declare(declared);
      await snapshots.declare(declared);
      for (const { deviceId } of declared) if (!reported.get(deviceId)) reported.add(deviceId, clock.now());
    },
    list: (query) => page(options.database, table, toZgate, query),
    countInGroup: (groupId) => table.countInGroup.get(groupId)?.count ?? 0,
    exists: (deviceId) => table.zgate.get(deviceId) !== undefined,
    connection(deviceId: string): { connected: boolean; changedAt: number } | undefined {
      const known = reported.get(deviceId);
      return known && { connected: known.connected, changedAt: known.changedAt };
    },
    ...overviewOf(context, channels, moves, energies),
    ofLink: (linkId) => gatewayOfLink.get(linkId),
    networkOf: (deviceId) => table.zgate.get(deviceId)?.network_id ?? null,
    linkOf: (deviceId) => gatewayOfLink.entries().find(([, gateway]) => gateway === deviceId)?.[0],
    state: openState(context, { channels, moves, joining, failedJoins, energies, snapshots }),
    update: openUpdate(options, table, (deviceId) => {
      reconciler.wake(deviceId);
      return get(deviceId);
    }),
    async permitJoin(deviceId, body, caller) {
      await joining.permit(deviceId, body, caller);
      return { deviceId, joinWindow: joining.shown(existing(table, deviceId)) };
    },
    moveChannel: moves.start,
    scanEnergies: energies.scan,
    map: openMap(context),

    report: reportTo(channels, energies),
    link(linkId, up) {
      channels.link(linkId, up);
      const deviceId = gatewayOfLink.get(linkId);
      if (deviceId !== undefined) (up ? moves.linkUp : joining.linkLost)(deviceId);
      if (!up) return;
      snapshots
        .linkUp(linkId)
        .catch((error) =>
          log.error({ link: linkId, err: error }, 'that a network is restored was not stored'),
        );
    },
    event: async (linkId, event) =>
      (await failedJoins.event(linkId, event)) || snapshots.event(linkId, event),
    startOptions: startOptions(context, snapshots),
    restore: snapshots.restore,
    withdrawRestore: snapshots.withdrawRestore,
    snapshots: () =>
      table.all.all().flatMap((row) =>
        database.legible(`zgate/${row.device_id}`, () => {
          const { deviceId, name, hwId, zigbeeChannel } = toZgate(row);
          const linkUp = linkOf(row, context)?.up ?? null;
          const list = snapshots.list(deviceId);
          return { deviceId, name, link: row.link, linkUp, hwId, zigbeeChannel, snapshots: list };
        }),
      ),
    channels,
    joining,
  };
}

/** Whether the gateway says that its join window is open. */
function isOpenBy({ reported }: Channels): (deviceId: string) => boolean {
  return (deviceId) => {
    const known = reported.get(deviceId);
    return (known?.connected && known.state?.permitJoin) ?? false;
  };
}

/** Each knows its own subjects. */
function reportTo(...parts: Pick<Zgates, 'report'>[]): Zgates['report'] {
  return (linkId, report) => {
    for (const part of parts) part.report(linkId, report);
  };
}

/** 4.6. `stored` is called after the commit. */
function openUpdate<Stored>(
  { database, audit, clock }: ZgatesOptions,
  table: ZgateTable,
  stored: (deviceId: string) => Stored,
) {
  return async (
    deviceId: string,
    edit: Edit & { deviceId?: string | undefined },
    { principal, correlationId, ifMatch }: Editor,
  ): Promise<Stored> => {
    assertSameId('deviceId', edit.deviceId, deviceId);
    await database.commit(() => {
      const row = existing(table, deviceId);
      assertIfMatch(ifMatch, row.revision);
      const before = wantedOf(row);
      const after = edited(before, edit);
      const changed = FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));
      if (changed.length === 0) return;
      table.setWanted.run(
        after.name,
        after.description,
        after.groupId,
        JSON.stringify(after.allowedChannels),
        Number(changed.includes('allowedChannels')),
        clock.now(),
        principal.id,
        deviceId,
      );
      const object = `zgate/${deviceId}`;
      const detail = { fields: changed };
      audit.record({ principal, action: 'zgate.update', object, outcome: 'done', detail, correlationId });
    });
    return stored(deviceId);
  };
}

/** The gateways of the configuration. Rows of those that it names no more stay, disconnected. */
function openDeclared(options: ZgatesOptions, table: ZgateTable) {
  const gatewayOfLink = new Map<string, string>();
  return {
    gatewayOfLink,
    async declare(declared: readonly DeclaredGateway[]): Promise<void> {
      await storeDeclared(options, table, declared);
      gatewayOfLink.clear();
      for (const { link, deviceId } of declared) gatewayOfLink.set(link, deviceId);
    },
  };
}

async function storeDeclared(
  { database, clock }: ZgatesOptions,
  table: ZgateTable,
  declared: readonly DeclaredGateway[],
): Promise<void> {
  const isNews = ({ deviceId, link, networkId }: DeclaredGateway) => {
    const row = table.zgate.get(deviceId);
    return row?.link !== link || row.network_id !== networkId;
  };
  const news = declared.filter(isNews);
  if (news.length === 0) return;
  const now = clock.now();
  await database.commit(() => {
    for (const { deviceId, link, networkId, name, type } of news) {
      const by = SYSTEM_PRINCIPAL.id;
      if (table.zgate.get(deviceId)) table.setWiring.run(link, networkId, deviceId);
      else table.insert.run(deviceId, link, networkId, name ?? null, type ?? null, now, now, now, by);
    }
  });
}

function wantedOf(row: ZgateRow): Wanted {
  const { name, description, group_id: groupId } = row;
  return { name, description, groupId, allowedChannels: allowedChannelsOf(row) };
}

function edited(wanted: Wanted, edit: Edit): Wanted {
  const next: Record<string, unknown> = { ...wanted };
  for (const field of FIELDS) if (edit[field] !== undefined) next[field] = edit[field];
  return next as unknown as Wanted;
}

const { shape } = shownZgate;

function zgateFrom({ catalogue, upgradeOf }: ZgatesOptions, { reported }: Channels) {
  return (row: ZgateRow): Zgate => {
    const known = reported.get(row.device_id);
    const state = known?.state;
    const object = `zgate/${row.device_id}`;
    const platform = state ? state.platform : storedJson(object, shape.platform, row.platform);
    const upgrade = upgradeOf(row.device_id);
    return {
      deviceId: row.device_id,
      ...wantedOf(row),
      group: row.group_id === null ? null : (catalogue.groupName(row.group_id) ?? null),
      hwId: state ? state.hwId : row.hw_id,
      type: state?.type ?? row.type,
      networkId: row.network_id,
      zigbeeChannel: state ? state.zigbeeChannel : row.zigbee_channel,
      permitJoin: (known?.connected && state?.permitJoin) ?? false,
      apps: state ? state.apps : storedJson(object, shape.apps, row.apps),
      platform,
      connectionState: {
        changedOn: storedTime(object, known?.changedAt ?? row.connected_changed_at),
        connected: known?.connected ?? false,
      },
      upgradeJobInfo: upgrade && {
        id: upgrade.id,
        app: [{ name: `door/${upgrade.door}`, version: upgrade.file }],
        platform: { version: platform?.version ?? '' },
      },
    };
  };
}

/** What …/state shows. */
function openState(
  context: ZgateContext,
  parts: {
    channels: Channels;
    moves: Moves;
    joining: Joining;
    failedJoins: FailedJoins;
    energies: Energies;
    snapshots: Pick<Orders, 'wanted'>;
  },
): (deviceId: string) => ZgateState {
  const { table, clock, catalogue, networks } = context;
  const { moves, joining, failedJoins, energies } = parts;
  const { reconciler, reported, isInForce, channelOf } = parts.channels;
  return (deviceId) => {
    const row = existing(table, deviceId);
    const { group_id, network_id } = row;
    const link = linkOf(row, context);
    const known = reported.get(deviceId);
    const failure = reconciler.failure(deviceId);
    const next = reconciler.nextAttempt(deviceId);
    const move = moves.needed(row);
    return {
      deviceId,
      link: row.link,
      linkUp: link?.up ?? null,
      linkError: link && !link.up ? link.lastError : null,
      inForce: isInForce(row),
      failure: failure ? { ...failure, at: new Date(failure.at).toISOString() } : null,
      nextAttempt: next === undefined ? null : new Date(next).toISOString(),
      restore: parts.snapshots.wanted(deviceId),
      move: move ? shownMove(move) : null,
      stayedBehind: shownStayedBehind(moves.stayedBehind(row)),
      joinWindow: joining.shown(row),
      failedJoins: failedJoins.shown(row),
      energies: energies.shown(deviceId, channelOf(row)),
      firmwareWarning: firmwareWarning(known?.state?.platform?.version),
      unknown: unknownOf([
        ['groupId', group_id, (id) => catalogue.groupName(id) !== undefined],
        ['networkId', network_id, networks.exists],
      ]),
      reportAge: known?.at === undefined ? null : Math.round(clock.monotonic() - known.at),
    };
  };
}

/** Presence lives in memory, so the filter reads on, page by page, until enough gateways match. */
function page(
  database: Pick<Database, 'legible'>,
  table: ZgateTable,
  toZgate: (row: ZgateRow) => Zgate,
  { cursor = '', limit, networkId, groupId, connected, name }: ListQuery,
): { items: Zgate[]; next: string | null } {
  const items: Zgate[] = [];
  for (let after = cursor; ; ) {
    const found = table.page.all(after, networkId ?? null, groupId ?? null, name ?? '', limit + 1);
    for (const row of found) {
      const [zgate] = database.legible(`zgate/${row.device_id}`, () => toZgate(row));
      if (!zgate) continue;
      if (connected !== undefined && String(zgate.connectionState.connected) !== connected) continue;
      if (items.length === limit) return { items, next: items.at(-1)?.deviceId ?? null };
      items.push(zgate);
    }
    if (found.length <= limit) return { items, next: null };
    after = found.at(-1)?.device_id ?? '';
  }
}
