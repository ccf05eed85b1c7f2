/** The way of settings to the devices, and what the devices say: wanted → applied for RS-485 (drivers/settings.ts). */
import { isDeepStrictEqual } from 'node:util';
import { DriverError, type Plain, type StateReport } from '../../drivers/driver.ts';
import { type Rs485Apply, type Rs485Report, rs485Applied, rs485Report } from '../../drivers/settings.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { Log } from '../log.ts';
import { openReconciler, type Reconciler } from '../reconcile.ts';
import { openReported, type Reported } from '../reported.ts';
import type { Rs485Row, Rs485Table } from './table.ts';
import { settingsOf } from './wanted.ts';

/** One exchange with a device on a busy bus, repeated, and a margin. */
const APPLY_TIMEOUT_MS = 20_000;

export interface SettingsOptions {
  database: Database;
  table: Rs485Table;
  clock: Clock;
  log: Log;
  /** Has a link execute a command; rejects with a DriverError. */
  execute(
    linkId: string,
    command: { kind: string; data: Plain; timeoutMs: number },
    signal: AbortSignal,
  ): Promise<Plain>;
  /** The device has taken what is wanted. */
  applied(row: Rs485Row): void;
  /** From 0 up to 1, for the back-off; Math.random when absent. */
  random?: () => number;
}

export interface Settings {
  readonly reconciler: Reconciler;
  readonly reported: Reported<Rs485Report>;
  /** Of the settings in force, as far as it is known. */
  reportedVersion(row: Rs485Row): number;
  /** The device has what is wanted: the version, and, as far as it tells them, the settings themselves. */
  isInForce(row: Rs485Row): boolean;
  /** A link reported the state of a subject. */
  report(linkId: string, report: StateReport): void;
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
}

export function openSettings(options: SettingsOptions): Settings {
  const { database, table, clock, log } = options;
  const reported = openReported<Rs485Report>({
    database,
    clock,
    stored: table.all.all().map((row) => ({
      id: row.device_id,
      connected: row.connected === 1,
      changedAt: row.connected_changed_at,
    })),
    facts: ({ type, platform, apps, reportedSettingsVersion }) => [
      type,
      platform,
      apps,
      reportedSettingsVersion,
    ],
    store(id, { connected, changedAt, state }) {
      table.setConnected.run(Number(connected), changedAt, id);
      if (state) table.setFacts.run(...factsOf(state), id);
    },
  });
  const reportedVersion = (row: Rs485Row) =>
    reported.get(row.device_id)?.state?.reportedSettingsVersion ?? row.reported_settings_version;

  function isInForce(row: Rs485Row): boolean {
    const told = reported.get(row.device_id)?.state?.settings;
    if (told && !isDeepStrictEqual(told, settingsOf(row))) return false;
    return reportedVersion(row) === row.settings_version;
  }

  async function apply(deviceId: string, version: number, signal: AbortSignal): Promise<void> {
    const row = table.device.get(deviceId);
    if (row?.settings_version !== version) throw new DriverError('BUSY', 'newer settings are wanted');
    const settings = settingsOf(row);
    const data: Rs485Apply = { hwId: row.hw_id, settingsVersion: version, settings };
    const command = { kind: 'applySettings', data, timeoutMs: APPLY_TIMEOUT_MS };
    const answer = rs485Applied.safeParse(await options.execute(row.bus, command, signal));
    if (answer.data?.reportedSettingsVersion !== version)
      throw new DriverError('BAD_REPLY', 'the device did not confirm these settings');
    await database.commit(() => table.setReportedVersion.run(version, deviceId));
    const known = reported.get(deviceId);
    if (known?.state) {
      const state = { ...known.state, reportedSettingsVersion: version, settings };
      reported.report(deviceId, known.connected, state);
    }
    options.applied(row);
  }

  const reconciler = openReconciler({
    name: 'the RS-485 settings',
    due: (deviceId) =>
      (deviceId === undefined ? table.all.all() : table.device.all(deviceId))
        .filter((row) => !isInForce(row))
        .map((row) => ({ id: row.device_id, version: row.settings_version })),
    apply: ({ id, version }, signal) => apply(id, version, signal),
    clock,
    log,
    ...(options.random && { random: options.random }),
  });

  return {
    ...{ reconciler, reported, reportedVersion, isInForce },
    report(linkId, { subject, state }) {
      if (!subject.startsWith('device:')) return;
      const row = table.byAddress.get(linkId, subject.slice('device:'.length));
      if (!row) return;
      const { data: told, error } = rs485Report.safeParse(state);
      if (!told) return log.warn({ link: linkId, subject, err: error }, 'a device reports what is no state');
      const wasConnected = reported.get(row.device_id)?.connected ?? false;
      const wasInForce = isInForce(row);
      reported.report(row.device_id, told.connected, told);
      const isBack = told.connected && !wasConnected;
      const isNowInForce = isInForce(row);
      if (!isNowInForce && (isBack || wasInForce)) reconciler.wake(row.device_id);
      if (isNowInForce && !wasInForce) options.applied(row);
    },
    link(linkId, up) {
      if (up) return;
      for (const { device_id } of table.onBus.all(linkId)) reported.disconnect(device_id);
    },
  };
}

function factsOf({ type, platform, apps, reportedSettingsVersion }: Rs485Report) {
  return [type, platform && JSON.stringify(platform), JSON.stringify(apps), reportedSettingsVersion] as const;
}
