/**
 * What locks report over their gateways: in memory with its age, written in batches. A lock is known through
 * one gateway only; with that one lost no one can say whether it is there.
 */
import type { StateReport } from '../../../drivers/contract/driver.ts';
import { type LockReport, lockReport } from '../../../drivers/contract/settings.ts';
import type { LockJoined } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { openReported, type Reported } from '../../services/reconcile/reported.ts';
import type { DoorContext } from './context.ts';
import { type LockTimes, openLockTimes, timesOf } from './lock-times.ts';
import type { DueRow } from './table.ts';

/** Locks kept in memory: 64 gateways with as many locks as a coordinator takes, or nearly. */
const LOCKS_MAX = 8_192;
/** A battery that is read again differs by a little. */
const VOLTAGE_STEP_MV = 50;
/** The last time a date can show (ECMA-262, 21.4.1.1). */
const LAST_DATE_MS = 8.64e15;
const TIMES: ReadonlySet<string> = new Set([
  'lastSeen',
  'lastContact',
  'lastEvent',
  'batteryAt',
  'batteryLowAt',
]);

/** Where a lock is, or undefined for a door without one. */
type Place = Pick<DueRow, 'mac' | 'gateway_id'>;

/** A lock in the network of a gateway. */
export interface LockPlace {
  mac: string;
  gatewayId: string;
}

export type Presence = 'connected' | 'disconnected' | 'unknown';

export interface Connection {
  status: Presence;
  /** Epoch milliseconds. */
  since: number;
  /** Milliseconds since the lock was heard last; undefined: not since the gateway started. */
  ageMs: number | undefined;
}

export interface LocksOptions extends DoorContext {
  /** A lock came, went, or has another configuration than before. */
  changed(place: LockPlace, what: { isBack: boolean; configChanged: boolean }): void;
  /** A lock reported its state; `before` is what it had reported until then. */
  reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void;
}

export interface Locks {
  /** undefined: the door has no lock. */
  connection(place: Place): Connection | undefined;
  /** All that the lock has reported, also before this start; undefined: nothing. */
  report(place: Place): LockReport | undefined;
  /** The lock acknowledged it: what it reported before is no longer so. */
  applied(place: Place, configVersion: number): void;
  /** Inside a commit job: these settings are about to be written, so that what the lock has shown may be so no more. */
  doubtSettings(place: Place, names: readonly string[]): void;
  /** A link reported the state of a subject. */
  take(linkId: string, report: StateReport): void;
  /** Whether nothing was heard of the lock since, nor its gateway lost. */
  since(place: LockPlace): () => boolean;
  /** The lock joined the network of a gateway, and reported this: its latest join when `isLatest`. */
  joined(place: LockPlace, lock: LockJoined, isLatest: boolean): void;
  left(place: LockPlace): void;
  /** The lock is at no door and has left its network: what it has shown counts no more. */
  forget(place: LockPlace): void;
  /** Something happened at the lock; `at` in epoch milliseconds. */
  happened(place: LockPlace, at: number): void;
  /** A gateway was lost: what its locks said is of the past. */
  lost(gatewayId: string): void;
  /** For supervise. */
  keepReports(signal: AbortSignal): Promise<never>;
  /** For supervise. */
  keepTimes(signal: AbortSignal): Promise<never>;
}

/** `losses`: how often the gateway had been lost when the lock said it; -1: before this start. */
interface KeptReport {
  report: LockReport;
  losses: number;
  /** Monotonic milliseconds; what was heard before is no sign that it is back. */
  leftAt?: number;
}

export function openLocks(options: LocksOptions): Locks {
  const { clock, log, zgates } = options;
  const reports = openReports(options);
  const { reported, keep, hasRoom } = reports;

  function find({ mac, gateway_id }: Place) {
    return mac === null || gateway_id === null ? undefined : reported.get(idOf(mac, gateway_id));
  }

  function connection(place: Place): Connection | undefined {
    const { mac, gateway_id: gatewayId } = place;
    if (mac === null) return undefined;
    const gateway = gatewayId === null ? undefined : zgates.connection(gatewayId);
    const lost = reports.lossesOf(gatewayId ?? '');
    const lock = find(place);
    // Of what the lock itself sent: its driver reports it at other times, too.
    const heardAt = lock?.state?.report.heardAt;
    const ageMs = heardAt === undefined ? undefined : Math.round(clock.monotonic() - heardAt);
    if (gateway && !gateway.connected) return { status: 'unknown', since: gateway.changedAt, ageMs };
    // It is not heard meanwhile, and no one can say whether it goes along.
    const move = zgates.moving(gatewayId ?? '');
    if (move) return { status: 'unknown', since: move.since, ageMs };
    if (!gateway || lock?.state?.losses !== lost.count) return { status: 'unknown', since: lost.at, ageMs };
    return { status: lock.connected ? 'connected' : 'disconnected', since: lock.changedAt, ageMs };
  }

  return {
    connection,
    report: (place) => find(place)?.state?.report,
    applied(place, configVersion) {
      const lock = find(place);
      const report = lock?.state?.report;
      if (!report || place.mac === null || place.gateway_id === null) return;
      const state = { ...lock.state, report: { ...report, configVersion } } as KeptReport;
      reported.report(idOf(place.mac, place.gateway_id), lock.connected, state);
    },
    doubtSettings(place, names) {
      const lock = find(place);
      const { mac, gateway_id: gatewayId } = place;
      if (!lock?.state?.report.settings || mac === null || gatewayId === null) return;
      const { report } = lock.state;
      const left = Object.entries(report.settings ?? {}).filter(([name]) => !names.includes(name));
      const state = { ...lock.state, report: { ...report, settings: Object.fromEntries(left) } };
      reported.report(idOf(mac, gatewayId), lock.connected, state);
      options.table.setReport.run(gatewayId, mac, JSON.stringify(state.report));
    },
    take(linkId, { subject, state }) {
      const gatewayId = zgates.ofLink(linkId);
      if (gatewayId === undefined || !subject.startsWith('device:')) return;
      const mac = subject.slice('device:'.length);
      const { data, error } = lockReport.safeParse(state);
      if (data?.hwId !== mac)
        return log.warn({ link: linkId, subject, err: error }, 'a lock reports no state');
      const place = { mac, gateway_id: gatewayId };
      const before = find(place);
      if (!hasRoom({ mac, gatewayId })) return;
      const was = connection(place)?.status;
      const { leftAt } = before?.state ?? {};
      const hasLeft = leftAt !== undefined && (data.heardAt ?? leftAt) <= leftAt;
      keep({ mac, gatewayId }, withDates(data), hasLeft ? leftAt : undefined);
      options.reported({ mac, gatewayId }, before?.state?.report, withDates(data));
      const isBack = was !== 'connected' && connection(place)?.status === 'connected';
      const configChanged = find(place)?.state?.report.configVersion !== before?.state?.report.configVersion;
      if (isBack || configChanged || was !== connection(place)?.status)
        options.changed({ mac, gatewayId }, { isBack, configChanged });
    },
    ...happenings(reports, clock),
    forget: reports.forget,
    lost: reports.lost,
    keepReports: reported.run,
    keepTimes: reports.times.run,
  };
}

/** What gateways report of locks beside their state. */
function happenings(
  { reported, keep, hasRoom, times, lossesOf }: Reports,
  clock: Clock,
): Pick<Locks, 'since' | 'joined' | 'left' | 'happened'> {
  return {
    since({ mac, gatewayId }) {
      const id = idOf(mac, gatewayId);
      const heard = reported.get(id);
      const { count } = lossesOf(gatewayId);
      return () => reported.get(id) === heard && lossesOf(gatewayId).count === count;
    },
    joined(place, { zigbeeFirmwareVersion, capabilities }, isLatest) {
      if (!hasRoom(place)) return;
      const { mac: hwId, gatewayId } = place;
      const facts = { hwId, capabilities, ...(zigbeeFirmwareVersion !== null && { zigbeeFirmwareVersion }) };
      if (isLatest) return keep(place, { connected: true, ...facts });
      // A later report has said whether it is connected, or that is unknown.
      const { connected = false, state } = reported.get(idOf(hwId, gatewayId)) ?? {};
      const report = { connected, ...state?.report, ...facts };
      reported.report(idOf(hwId, gatewayId), connected, { losses: -1, ...state, report });
    },
    left(place) {
      const { mac, gatewayId } = place;
      if (reported.get(idOf(mac, gatewayId))) keep(place, { connected: false, hwId: mac }, clock.monotonic());
    },
    happened(place, at) {
      const { mac, gatewayId } = place;
      if (!hasRoom(place)) return;
      const lock = reported.get(idOf(mac, gatewayId));
      // An event says nothing of whether the lock is there now.
      const { report, losses } = lock?.state ?? { report: { connected: false, hwId: mac }, losses: -1 };
      const lastEvent = Math.max(at, report.lastEvent ?? 0);
      reported.report(idOf(mac, gatewayId), lock?.connected ?? false, {
        ...lock?.state,
        report: { ...report, lastEvent },
        losses,
      });
      times.moved(gatewayId, mac);
    },
  };
}

const idOf = (mac: string, gatewayId: string) => `${gatewayId}/${mac}`;

/** What locks reported, with its age, and how often each gateway was lost since the start. */
interface Reports {
  reported: Reported<KeptReport>;
  times: LockTimes;
  lossesOf(gatewayId: string): { count: number; at: number };
  lost(gatewayId: string): void;
  hasRoom(place: LockPlace): boolean;
  forget(place: LockPlace): void;
  /** What the lock does not report this time still holds. With `leftAt` it is not connected, whatever it reported. */
  keep(place: LockPlace, report: LockReport, leftAt?: number): void;
}

function openReports(options: LocksOptions): Reports {
  const { database, table, clock, log } = options;
  const startedAt = clock.now();
  const losses = new Map<string, { count: number; at: number }>();
  const lossesOf = (gatewayId: string) => losses.get(gatewayId) ?? { count: 0, at: startedAt };
  const room = openRoom(log);
  const reported = openReported<KeptReport>({
    database,
    clock,
    known: [],
    facts: ({ report }) => factsOf(report),
    // Whether a lock is there has to be said again after each start.
    keepsConnected: false,
    store(id, { state }) {
      const [gatewayId = '', mac = ''] = id.split('/');
      if (state) table.setReport.run(gatewayId, mac, JSON.stringify(state.report));
    },
  });
  const report = (gatewayId: string, mac: string) => reported.get(idOf(mac, gatewayId))?.state?.report;
  const times = openLockTimes(options, report);
  for (const { gateway_id, mac, report, ...row } of table.reports.all()) {
    const stored = lockReport.safeParse({ ...JSON.parse(report), ...timesOf(row) });
    if (stored.data && room.take())
      reported.add(idOf(mac, gateway_id), startedAt, { report: ofEarlierStart(stored.data), losses: -1 });
  }
  database
    .commit(() => {
      table.forgetStrangers.run();
      table.forgetTimes.run();
    }, 'telemetry')
    .catch((error) => log.warn({ err: error }, 'reports of locks that are at no door were not removed'));
  return {
    reported,
    times,
    lossesOf,
    lost(gatewayId) {
      losses.set(gatewayId, { count: lossesOf(gatewayId).count + 1, at: clock.now() });
    },
    hasRoom: ({ mac, gatewayId }) => reported.get(idOf(mac, gatewayId)) !== undefined || room.take(),
    forget({ mac, gatewayId }) {
      const id = idOf(mac, gatewayId);
      if (reported.get(id)) room.release();
      reported.forget(id);
    },
    keep({ mac, gatewayId }, report, leftAt) {
      const id = idOf(mac, gatewayId);
      const before = reported.get(id)?.state?.report;
      const state = { report: { ...before, ...report }, losses: lossesOf(gatewayId).count };
      const hasLeft = leftAt !== undefined;
      reported.report(id, report.connected && !hasLeft, { ...state, ...(hasLeft && { leftAt }) });
      times.moved(gatewayId, mac);
    },
  };
}

/** `take` is false once there are too many locks, which is said once. */
function openRoom(log: Log) {
  let taken = 0;
  let isReported = false;
  return {
    take(): boolean {
      if (taken < LOCKS_MAX) {
        taken += 1;
        return true;
      }
      if (!isReported)
        log.warn({ locks: taken }, 'there are more locks than are kept: reports of the rest are ignored');
      isReported = true;
      return false;
    },
    release(): void {
      taken -= 1;
    },
  };
}

/** Without times that no date can show, and what has such a time. */
function withDates(report: LockReport): LockReport {
  const isDate = (at: number) => at >= 0 && at <= LAST_DATE_MS;
  const { setupFaults, ...rest } = report;
  const shown = Object.entries(rest).filter(([name, value]) => {
    if (TIMES.has(name)) return isDate(Number(value));
    return !Object.hasOwn(Object(value), 'at') || isDate((value as { at: number }).at);
  });
  const faults = setupFaults && { setupFaults: setupFaults.filter(({ at }) => isDate(at)) };
  return { ...(Object.fromEntries(shown) as LockReport), ...faults };
}

/** The monotonic clock may be that of another boot. */
function ofEarlierStart(earlier: LockReport): LockReport {
  const { lockState, doorState, heardAt: _, batteryHeardAt: __, ...report } = earlier;
  return {
    ...report,
    ...(lockState && { lockState: { value: lockState.value, at: lockState.at } }),
    ...(doorState && { doorState: { value: doorState.value, at: doorState.at } }),
  };
}

/**
 * What is worth writing when it changed: link quality moves with each frame and is reported again soon, times are kept apart, and
 * that a state was read again is no change of it.
 */
function factsOf(whole: LockReport): unknown {
  const {
    lqi: _,
    rssi: __,
    lastSeen: ___,
    lastContact: ____,
    lastEvent: _____,
    batteryAt: ______,
    batteryLowAt: _______,
    heardAt: ________,
    batteryHeardAt: _________,
    ...report
  } = whole;
  const stepped = (value: number | undefined, step: number) =>
    value === undefined ? undefined : Math.floor(value / step);
  return {
    ...report,
    lockState: report.lockState?.value,
    doorState: report.doorState?.value,
    dueBatteryUnderLoad: stepped(report.dueBatteryUnderLoad, VOLTAGE_STEP_MV),
    dueBatteryWithoutLoad: stepped(report.dueBatteryWithoutLoad, VOLTAGE_STEP_MV),
  };
}
