/** The way of settings to the devices, and what the devices say: wanted → applied for RS-485 (drivers/contract/settings.ts). */

import { isDeepStrictEqual } from 'node:util';
import { DriverError, type DriverErrorCode, type StateReport } from '../../../drivers/contract/driver.ts';
import {
  type Rs485Apply,
  type Rs485Report,
  type Rs485Settings,
  rs485Applied,
  rs485Report,
} from '../../../drivers/contract/settings.ts';
import { openReconciler, type Reconciler, type Work } from '../../services/reconcile/reconcile.ts';
import { openReported, type Reported } from '../../services/reconcile/reported.ts';
import type { Rs485Context } from './context.ts';
import { connectionChanged } from './live-events.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';
import { settingsOf } from './wanted.ts';

/** Of what a device says; its hwId follows. */
const SUBJECT = 'device:';
/** One exchange with a device on a busy bus, repeated, and a margin. */
const APPLY_TIMEOUT_MS = 20_000;
/** Of a device that was found and is left as it is until somebody wants something of it. */
const NOTHING_WANTED_YET = 0;

export interface Settings {
  readonly reconciler: Reconciler;
  readonly reported: Reported<Rs485Report>;
  /** Of the settings in force, as far as it is known. */
  reportedVersion(row: Rs485Row): number;
  /** The device has what is wanted: the version, and, as far as it reports them, the settings themselves. */
  isInForce(row: Rs485Row): boolean;
  /**
   * What an order for its relay goes by: what is wanted of it, once it shows that; before, what was in force on it until others were wanted.
   * undefined: it shows neither.
   */
  forOrders(row: Rs485Row, report?: Rs485Report): Rs485Settings | undefined;
  /** A device with a row said this. */
  take(row: Rs485Row, report: Rs485Report): void;
  /** A bus reported the state of a subject. */
  report(bus: string, report: StateReport): void;
  /** A bus came up or went down. */
  link(bus: string, up: boolean): void;
}

/** `heard`: a device, with a row or without, said this. */
export function openSettings(
  context: Rs485Context,
  polled: Pick<PolledAddresses, 'heardAt'>,
  heard: (bus: string, report: Rs485Report, row: Rs485Row | undefined) => void,
): Settings {
  const { table, clock, log, random, relayChanged } = context;
  const reported = openPresence(context, polled);
  /** The device has taken what is wanted: its door may be opened by it now. */
  const applied = ({ door_id }: Rs485Row) => door_id !== null && relayChanged(door_id);
  const reportedVersion = (row: Rs485Row) =>
    reported.get(row.device_id)?.state?.reportedSettingsVersion ?? row.reported_settings_version;

  function isInForce(row: Rs485Row): boolean {
    if (row.settings_version === NOTHING_WANTED_YET) return true;
    const report = reported.get(row.device_id)?.state?.settings;
    if (report && !isDeepStrictEqual(report, settingsOf(row))) return false;
    return reportedVersion(row) === row.settings_version;
  }

  const reconciler: Reconciler = openReconciler({
    name: 'the RS-485 settings',
    due: (deviceId) =>
      (deviceId === undefined ? table.all.all() : table.device.all(deviceId))
        .filter((row) => !isInForce(row))
        .map((row) => ({ id: row.device_id, version: row.settings_version })),
    apply: openApply(context, reported, {
      renumbered: (id, version) => reconciler.renumber(id, version),
      applied,
    }),
    clock,
    log,
    ...(random && { random }),
  });

  function take(row: Rs485Row, shown: Rs485Report): void {
    const wasConnected = reported.get(row.device_id)?.connected ?? false;
    const wasInForce = isInForce(row);
    const report = ownOf(table, reported, row, shown);
    reported.report(row.device_id, report.connected, report);
    const isBack = report.connected && !wasConnected;
    const isNowInForce = isInForce(row);
    if (!isNowInForce && isBack) reconciler.returned(row.device_id);
    else if (isNowInForce !== wasInForce) reconciler.wake(row.device_id);
    if (isNowInForce && !wasInForce) applied(row);
  }

  return {
    reconciler,
    reported,
    reportedVersion,
    isInForce,
    forOrders(row, report = reported.get(row.device_id)?.state) {
      if (!report?.settings) return isInForce(row) ? settingsOf(row) : undefined;
      return isOwn(table, row, report, report) ? report.settings : undefined;
    },
    take,
    report(bus, { subject, state }) {
      if (!subject.startsWith(SUBJECT)) return;
      const { data: report, error } = rs485Report.safeParse(state);
      if (report?.hwId !== subject.slice(SUBJECT.length))
        return log.warn({ link: bus, subject, err: error }, 'a device reports what is no state of its own');
      const row = table.byHwId.get(bus, report.hwId);
      heard(bus, row ? ownOf(table, reported, row, report) : report, row);
      if (row) take(row, report);
    },
    link(bus, up) {
      if (up) return;
      for (const { device_id } of table.onBus.all(bus)) reported.disconnect(device_id);
    },
  };
}

/** After these another device may have taken what was sent: where the two change places at that moment. */
const MAYBE_TAKEN: ReadonlySet<DriverErrorCode> = new Set(['NO_REPLY', 'BAD_REPLY', 'OUTCOME_UNKNOWN']);

/**
 * Sends each version to one device: a poll shows a device by it. So what may have been taken once is sent under another one, and so is what was in force
 * and is not shown any more.
 */
function openApply(
  { database, table, field }: Rs485Context,
  reported: Reported<Rs485Report>,
  notify: { renumbered(deviceId: string, version: number): void; applied(row: Rs485Row): void },
): Work['apply'] {
  /** By device. */
  const maybeTaken = new Map<string, number>();

  function isUsed({ device_id, settings_version: version, reported_settings_version: before }: Rs485Row) {
    const shown = reported.get(device_id)?.state?.reportedSettingsVersion ?? NOTHING_WANTED_YET;
    // One that was reset shows 0, and has only forgotten it.
    const isOther = shown !== NOTHING_WANTED_YET && shown !== version;
    return (before === version && isOther) || maybeTaken.get(device_id) === version;
  }

  /** Throws BUSY where something else is wanted by now. */
  async function toSend(deviceId: string, wanted: number): Promise<Rs485Row> {
    const now = () => {
      const row = table.device.get(deviceId);
      if (row?.settings_version === wanted) return row;
      throw new DriverError('BUSY', 'newer settings are wanted');
    };
    if (!isUsed(now())) return now();
    const row = await database.commit(() => {
      now();
      table.renewVersion.run(deviceId);
      return existing(table, deviceId);
    });
    notify.renumbered(deviceId, row.settings_version);
    return row;
  }

  async function send(row: Rs485Row, signal: AbortSignal): Promise<void> {
    const { device_id, hw_id: hwId, settings_version: settingsVersion } = row;
    const data: Rs485Apply = { hwId, settingsVersion, settings: settingsOf(row) };
    const command = { kind: 'applySettings', data, timeoutMs: APPLY_TIMEOUT_MS, movesNothing: true };
    try {
      const answer = rs485Applied.safeParse(await field.execute(row.bus, command, signal));
      if (answer.data?.reportedSettingsVersion !== settingsVersion)
        throw new DriverError('BAD_REPLY', 'the device did not confirm these settings');
    } catch (error) {
      if (error instanceof DriverError && MAYBE_TAKEN.has(error.code))
        maybeTaken.set(device_id, settingsVersion);
      throw error;
    }
    maybeTaken.delete(device_id);
  }

  return async ({ id, version: wanted }, signal) => {
    const row = await toSend(id, wanted);
    await send(row, signal);
    const { settings_version: version } = row;
    const assertSame = () => {
      const now = table.device.get(id);
      if (now?.hw_id !== row.hw_id || now.bus !== row.bus)
        throw new DriverError('BUSY', 'another device stands in its place now');
    };
    assertSame();
    // Now, since it may say otherwise while this is stored.
    const { connected = false, state } = reported.get(id) ?? {};
    const settings = settingsOf(row);
    if (state) reported.report(id, connected, { ...state, reportedSettingsVersion: version, settings });
    await database.commit(() => {
      assertSame();
      table.setReportedVersion.run(version, id);
    });
    notify.applied(row);
  };
}

/** What devices say of themselves, with what of it is stored and published to live readers. */
function openPresence(
  { database, table, events, clock }: Rs485Context,
  polled: Pick<PolledAddresses, 'heardAt'>,
): Reported<Rs485Report> {
  return openReported<Rs485Report>({
    database,
    clock,
    known: table.all.all().map((row) => ({
      id: row.device_id,
      connected: row.connected === 1,
      changedAt: row.connected_changed_at,
    })),
    keepsConnected: true,
    facts: ({ type, platform, apps, reportedSettingsVersion, address }) => [
      type,
      platform,
      apps,
      reportedSettingsVersion,
      address,
    ],
    store(id, { connected, changedAt, state }) {
      const row = table.device.get(id);
      if (!row) return;
      if (row.connected !== Number(connected) || row.connected_changed_at !== changedAt) {
        table.setConnected.run(Number(connected), changedAt, id);
        events.publish(connectionChanged(id, connected, changedAt));
      }
      if (!state) return;
      // What it had in force last, which orders go by until it has what is wanted then.
      const { reportedSettingsVersion: version } = state;
      table.setFacts.run(
        ...factsOf(state),
        isOwn(table, row, state, state) ? version : row.reported_settings_version,
        id,
      );
      if (connected && state.address !== undefined) polled.heardAt(row, state.address);
    },
    stored: events.wake,
  });
}

function factsOf({ type, platform, apps }: Rs485Report) {
  return [type, platform && JSON.stringify(platform), JSON.stringify(apps)] as const;
}

/**
 * A write of settings reaches another device than the one meant where the two change places at that moment. Where nothing is wanted of it, no order
 * takes relay and time from what it shows then.
 */
function ownOf(
  table: Rs485Table,
  reported: Reported<Rs485Report>,
  row: Rs485Row,
  report: Rs485Report,
): Rs485Report {
  const isLeftAsItIs = row.settings_version === NOTHING_WANTED_YET;
  if (!isLeftAsItIs || isOwn(table, row, reported.get(row.device_id)?.state, report)) return report;
  return { ...report, settings: null, effectiveUnlockMilliseconds: null };
}

/**
 * Once something was wanted of it: these settings are, or were and were in force on it. Else it is heard for the first time, or they are those of no
 * other one. `known`: what it said last.
 */
function isOwn(
  table: Rs485Table,
  row: Rs485Row,
  known: Rs485Report | undefined,
  { reportedSettingsVersion: version, settings }: Rs485Report,
): boolean {
  const { device_id, settings_version: wanted, reported_settings_version: before } = row;
  if (wanted !== NOTHING_WANTED_YET)
    return version === wanted
      ? !settings || isWantedRelay(row, settings)
      : version === before && before !== 0;
  if (version === before || (known?.settings && version === known.reportedSettingsVersion)) return true;
  return (known === undefined && before === 0) || !table.wantedOfAnother.get(version, device_id);
}

function isWantedRelay(row: Rs485Row, { relayIndex, unlockDurationMilliseconds }: Rs485Settings): boolean {
  // null: as long as the device has it.
  const { relay_index, unlock_duration_ms: wantedMs } = row;
  return relayIndex === relay_index && (wantedMs === null || unlockDurationMilliseconds === wantedMs);
}
