/**
 * Settings of the lock of a door, wanted → applied: sound, auto-relock, one touch, wrong codes, holidays. Written once to each lock that
 * the door gets, and when it joins again; what somebody sets at the lock afterwards is shown, and stays.
 */

import { isDeepStrictEqual } from 'node:util';
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import type { LockSettingsApply } from '../../../drivers/contract/lock-settings.ts';
import type { LockSettings as Reported } from '../../../drivers/contract/settings.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Caller } from '../../platform/principal.ts';
import { doorEntry } from './live-events.ts';
import { localSeconds, localTimeOf } from './local-time.ts';
import { addressOf } from './lock-links.ts';
import {
  type LockMemory,
  type LockMemoryContext,
  type LockMemoryWork,
  openLockMemory,
  openUnanswered,
} from './lock-memory.ts';
import {
  type SettingsBody,
  type SettingsResult,
  storedSettings,
  type WantedSettings,
} from './lock-memory-schema.ts';
import type { DoorSettingRow } from './lock-memory-table.ts';
import { type DoorRow, existing } from './table.ts';

export interface LockSettings extends LockMemory {
  get(doorId: string): SettingsResult;
  set(doorId: string, body: SettingsBody, caller: Caller): Promise<SettingsResult>;
}

/** A sleeping lock fetches two frames for each. */
const TIMEOUT_MS = 120_000;

export function openLockSettings(options: LockMemoryContext): LockSettings {
  const { database, table, audit, locks } = options;
  const memory = openLockMemory(options, 'settings of locks', workOf(options));

  function get(doorId: string): SettingsResult {
    const row = existing(table, doorId);
    const kept = table.doorSetting.get(doorId);
    const failure = memory.reconciler.failure(doorId);
    const isRefused = failure?.permanent === true;
    const state = isApplied(row, kept) ? 'applied' : isRefused ? 'refused' : 'waiting';
    return {
      doorId,
      wanted: shown(wantedIn(doorId, kept)),
      reported: shown(reportedIn(locks.report(row)?.settings ?? {})),
      state,
      failure: state === 'applied' ? null : (failure?.message ?? null),
    };
  }

  return {
    ...memory,
    get,
    async set(doorId, body, caller) {
      const isNews = await database.commit(() => {
        existing(table, doorId);
        const before = wantedIn(doorId, table.doorSetting.get(doorId));
        const after = edited(before, body);
        if (isDeepStrictEqual(before, after)) return false;
        if (Object.keys(after).length === 0) table.deleteDoorSetting.run(doorId);
        else table.setDoorSetting.run(doorId, JSON.stringify(after));
        audit.record(doorEntry(doorId, 'door.set-lock-settings', body, caller));
        return true;
      });
      if (isNews) memory.changed(doorId);
      return get(doorId);
    },
  };
}

function shown<Holidays>(settings: Omit<Reported, 'holidays'> & { holidays?: Holidays }) {
  return {
    autoRelockSeconds: settings.autoRelockSeconds ?? null,
    soundVolume: settings.soundVolume ?? null,
    oneTouchLocking: settings.oneTouchLocking ?? null,
    wrongCodeLimit: settings.wrongCodeLimit ?? null,
    wrongCodeLockoutSeconds: settings.wrongCodeLockoutSeconds ?? null,
    holidays: settings.holidays ?? null,
  };
}

/** Local times in the place of seconds. */
function reportedIn({ holidays, ...settings }: Reported) {
  const times = holidays?.map(({ start, end, mode }) => ({
    start: localTimeOf(start),
    end: localTimeOf(end),
    mode,
  }));
  return { ...settings, ...(times && { holidays: times }) };
}

function toSend({ holidays, ...settings }: WantedSettings): LockSettingsApply['settings'] {
  const spans = holidays?.map(({ start, end, mode }) => ({
    start: localSeconds(start),
    end: localSeconds(end),
    mode,
  }));
  return { ...settings, ...(spans && { holidays: spans }) };
}

function wantedIn(doorId: string, kept: DoorSettingRow | undefined): WantedSettings {
  return kept ? storedJson(`door/${doorId}`, storedSettings, kept.wanted) : {};
}

/** Absent stays, null leaves it to the lock. */
function edited(before: WantedSettings, body: SettingsBody): WantedSettings {
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  const all = Object.entries({ ...before, ...Object.fromEntries(given) });
  return Object.fromEntries(all.filter(([, value]) => value !== null).toSorted()) as WantedSettings;
}

const isApplied = ({ mac }: DoorRow, kept: DoorSettingRow | undefined) =>
  !kept || (kept.applied === kept.wanted && kept.applied_mac === mac);

function workOf(options: LockMemoryContext): LockMemoryWork {
  const { database, table, audit, lockLinks, locks, clock } = options;
  const unanswered = openUnanswered(clock);
  const waits = (doorId: string): boolean => {
    const row = table.door.get(doorId);
    return row !== undefined && row.mac !== null && !isApplied(row, table.doorSetting.get(doorId));
  };
  return {
    doors: () => table.doorSettings.all().map((row) => row.door_id),
    waits,
    async apply(id, signal) {
      await unanswered.over(table.door.get(id)?.mac ?? '', signal);
      const row = table.door.get(id);
      const kept = table.doorSetting.get(id);
      if (!row || row.mac === null || !kept || isApplied(row, kept)) return;
      const { mac } = row;
      // The relock time of a lock that stands open is put aside, and given back at the end.
      if (table.standOpen.get(id) || table.closing.get(mac))
        throw new DriverError(
          'BUSY',
          'the door stands open, or has to be locked: its settings are sent then',
        );
      const data: LockSettingsApply = { hwId: mac, settings: toSend(wantedIn(id, kept)) };
      // Before it goes: no one can say what the lock has when the link or this process ends now.
      await database.commit(() => locks.doubtSettings(row, Object.keys(data.settings)));
      const command = {
        kind: 'applyLockSettings',
        data: data as Plain,
        timeoutMs: TIMEOUT_MS,
        movesNothing: true,
      };
      await unanswered.of(mac, lockLinks.command(addressOf(row), command, signal));
      await database.commit(() => {
        table.setAppliedSetting.run(kept.wanted, mac, id);
        audit.record(doorEntry(id, 'door.apply-lock-settings', { mac }));
      });
    },
  };
}
