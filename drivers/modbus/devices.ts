/** The devices of a bus that are polled: those of the options, and those the daemon watches. */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Watch, WatchdogTest, WatchdogTested } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { openMutex } from '../rs485/mutex.ts';
import { openPolling, type Polling } from '../rs485/polling.ts';
import { openRelayFaults } from '../rs485/relay-faults.ts';
import { underTest } from '../rs485/watchdog-proof.ts';
import { type Device, openDevice } from './device.ts';
import { type EndPulse, openEndPulse } from './end-pulse.ts';
import { openLivePulses } from './live-pulses.ts';
import type { Profile } from './profile-shape.ts';
import { type Fire, openPulses } from './pulses.ts';
import { openRelayWatch, type RelayWatch } from './relay-watch.ts';
import { safetyOf } from './safety.ts';
import { openSilence, type Silence } from './silence.ts';
import { openWatchdogTest, type TestWatchdog } from './watchdog-test.ts';

export interface DevicesOptions {
  linkId: string;
  clock: Clock;
  log: DriverLog;
  bus: Bus;
  everyMs: number;
  /** Unit ids. */
  configured: readonly number[];
  profileAt(unit: number): Profile;
  tell(report: Rs485Report): void;
  tellEvent(event: DeviceEvent): void;
}

interface Member {
  device: Device;
  fire: Fire;
  endPulse: EndPulse;
  testWatchdog: TestWatchdog;
  polling: Polling;
  silence: Silence;
}

interface MemberOptions {
  claim(unit: number, hwId: string): boolean;
  /** Another unit has this name. */
  isTaken(unit: number, hwId: string): boolean;
  closing: AbortSignal;
}

function openMember(
  options: DevicesOptions,
  unit: number,
  { claim, isTaken, closing }: MemberOptions,
): Member {
  const { clock, log } = options;
  const profile = options.profileAt(unit);
  const live = openLivePulses(profile, clock);
  const safety = safetyOf(unit, profile, live, clock);
  const silence = openSilence({ device: () => device, polling: () => polling, clock, log, closing });
  const busFor = (opens: boolean): Pick<Bus, 'exchange' | 'isContested'> => ({
    isContested: options.bus.isContested,
    exchange: (exchange, order, signal) =>
      options.bus.exchange(silence.guarded(safety.watched(exchange), opens), order, signal),
  });
  const faults = openRelayFaults({
    ...options,
    hwId: () => device.hwId(),
    changed: () => device.report(),
  });
  const device: Device = openDevice({
    ...options,
    unit,
    profile,
    pulses: live,
    relayFault: faults.shown,
    safety,
    claim: (hwId) => claim(unit, hwId),
    isTaken: (hwId) => isTaken(unit, hwId),
    polled: () => relays.polled(),
    staysClosed: () => void silence.keep().catch(() => undefined),
  });
  const polling = openPolling(options.bus, device.poll);
  const common = { device, clock, log, live, faults, mutex: openMutex(), closing };
  const relays: RelayWatch = openRelayWatch({ ...common, bus: busFor(true), silence, safety });
  const parts = { ...common, bus: busFor(false), relays, polling, safety };
  return {
    device,
    fire: openPulses(parts),
    endPulse: openEndPulse(parts),
    testWatchdog: openWatchdogTest(parts),
    polling,
    silence,
  };
}

export function openDevices(options: DevicesOptions) {
  const { configured } = options;
  const members = new Map<number, Member>();
  const closing = new AbortController();
  const tested = new Set<number>();
  let expected: ReadonlyMap<number, string> = new Map();

  function holderOf(hwId: string): Member | undefined {
    return [...members.values()].find(({ device }) => device.connected() && device.hwId() === hwId);
  }

  function isTaken(unit: number, hwId: string): boolean {
    const holder = holderOf(hwId);
    return holder !== undefined && holder.device.unit !== unit;
  }

  /** Only one device can be the one of that name: else a command for it might reach another door. */
  function claim(unit: number, hwId: string): boolean {
    if (isTaken(unit, hwId)) return false;
    const awaited = expected.get(unit);
    if (awaited !== undefined && awaited !== hwId && !holderOf(awaited)) tellGone(unit, awaited);
    return true;
  }

  /** Another device is where this one was. */
  function tellGone(unit: number, hwId: string): void {
    const unknown = { type: null, platform: null, apps: [], reportedSettingsVersion: 0, settings: null };
    options.tell({ connected: false, hwId, ...unknown, levels: {}, address: unit });
  }

  function leave(unit: number, { device, polling }: Member): void {
    members.delete(unit);
    polling[Symbol.dispose]();
    device[Symbol.dispose]();
  }

  function watch(devices: Watch['devices']): void {
    expected = new Map(devices.map(({ address, hwId }) => [address, hwId]));
    const wanted = new Set([...configured, ...expected.keys()]);
    for (const [unit, member] of members) if (!wanted.has(unit)) leave(unit, member);
    for (const unit of wanted) {
      if (!members.has(unit))
        members.set(unit, openMember(options, unit, { claim, isTaken, closing: closing.signal }));
      const device = members.get(unit)?.device;
      const awaited = expected.get(unit);
      const isOther = device?.connected() && awaited !== undefined && device.hwId() !== awaited;
      if (isOther && !holderOf(awaited)) tellGone(unit, awaited);
    }
  }

  /** Throws DEVICE_OFFLINE: nothing can be sent to it. */
  function named(hwId: string): Member {
    const member = holderOf(hwId);
    if (member) return member;
    const known = [...members.values()].find(({ device }) => device.hwId() === hwId);
    throw new DriverError(
      'DEVICE_OFFLINE',
      known?.device.absence() ?? `${hwId} does not answer on this bus; nothing was sent`,
    );
  }

  watch([]);
  return {
    watch,
    named,
    async testWatchdog(test: WatchdogTest, signal: AbortSignal): Promise<WatchdogTested> {
      const { device, testWatchdog } = named(test.hwId);
      tested.add(device.unit);
      try {
        return await testWatchdog(test, signal);
      } finally {
        tested.delete(device.unit);
      }
    },
    /** Throws BUSY: a question to this device would feed a watchdog that is tested, or that is to open a relay. */
    assertMayBeAsked(units: readonly number[]): void {
      const unit = units.find((one) => tested.has(one));
      if (unit !== undefined) throw underTest(unit);
      const held = units.find((one) => members.get(one)?.silence.isHeld());
      if (held !== undefined)
        throw new DriverError(
          'BUSY',
          `a relay of device ${held} does not open, and its watchdog is to open it: ask nothing of it meanwhile`,
        );
    },
    report(): void {
      for (const { device } of members.values()) device.report();
    },
    warnings: () => [...members.values()].flatMap(({ device }) => device.warning() ?? []),
    [Symbol.dispose](): void {
      closing.abort(new DriverError('LINK_LOST', 'the link is closed'));
      for (const [unit, member] of [...members]) leave(unit, member);
    },
  };
}

export type Devices = ReturnType<typeof openDevices>;
