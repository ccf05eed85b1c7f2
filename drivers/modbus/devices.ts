/** The devices of a bus that are polled: those of the options, and those the daemon watches. */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Watch, WatchdogTest, WatchdogTested } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { openMutex } from '../rs485/mutex.ts';
import { openPolling } from '../rs485/polling.ts';
import { type Member, openRegistry, type Registry } from '../rs485/registry.ts';
import { openRelayFaults } from '../rs485/relay-faults.ts';
import { underTest } from '../rs485/watchdog-proof.ts';
import { type Device, openDevice } from './device.ts';
import { openLivePulses } from './live-pulses.ts';
import type { Profile } from './profile-shape.ts';
import { type EndPulse, type Fire, openEndPulse, openPulse } from './pulses.ts';
import { openRelayWatch, type RelayWatch } from './relay-watch.ts';
import { openWatchdogExpiry, type WatchdogExpiry } from './watchdog-expiry.ts';
import { watchdogGuardOf } from './watchdog-guard.ts';
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
  reportState(report: Rs485Report): void;
  addEvent(event: DeviceEvent): void;
}

interface ModbusMember extends Member {
  device: Device;
  fire: Fire;
  endPulse: EndPulse;
  testWatchdog: TestWatchdog;
  expiry: WatchdogExpiry;
}

function openMember(
  options: DevicesOptions,
  unit: number,
  registry: Pick<Registry<ModbusMember>, 'claim' | 'isTaken'>,
  closing: AbortSignal,
): ModbusMember {
  const { clock, log } = options;
  const profile = options.profileAt(unit);
  const live = openLivePulses(profile, clock);
  const guard = watchdogGuardOf(unit, profile, live, clock);
  const expiry = openWatchdogExpiry({ device: () => device, polling: () => polling, clock, log, closing });
  const busFor = (opens: boolean): Pick<Bus, 'exchange' | 'isContested'> => ({
    isContested: options.bus.isContested,
    exchange: (exchange, order, signal) =>
      options.bus.exchange(expiry.guarded(guard.watched(exchange), opens), order, signal),
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
    guard,
    claim: (hwId) => registry.claim(unit, hwId),
    isTaken: (hwId) => registry.isTaken(unit, hwId),
    polled: () => relays.polled(),
    staysClosed: () => void expiry.keep().catch(() => undefined),
  });
  const polling = openPolling(options.bus, device.poll);
  const common = { device, clock, log, live, faults, mutex: openMutex(), closing };
  const relays: RelayWatch = openRelayWatch({ ...common, bus: busFor(true), expiry, guard });
  const parts = { ...common, bus: busFor(false), relays, polling, guard };
  return {
    device,
    fire: openPulse(parts),
    endPulse: openEndPulse(parts),
    testWatchdog: openWatchdogTest(parts),
    expiry,
    [Symbol.dispose]() {
      polling[Symbol.dispose]();
      device[Symbol.dispose]();
    },
  };
}

export interface Devices extends Pick<Registry<ModbusMember>, 'named' | 'report' | 'warnings'>, Disposable {
  watch(devices: Watch['devices']): void;
  testWatchdog(test: WatchdogTest, signal: AbortSignal): Promise<WatchdogTested>;
  /** Throws BUSY: a question to this device would feed a watchdog that is tested, or that is to open a relay. */
  assertMayBeAsked(units: readonly number[]): void;
}

export function openDevices(options: DevicesOptions): Devices {
  const { configured } = options;
  const closing = new AbortController();
  const tested = new Set<number>();
  let expected: ReadonlyMap<number, string> = new Map();
  const registry: Registry<ModbusMember> = openRegistry({
    open: (unit) => openMember(options, unit, registry, closing.signal),
    expectedAt: (unit) => expected.get(unit),
    reportState: options.reportState,
  });

  function watch(devices: Watch['devices']): void {
    expected = new Map(devices.map(({ address, hwId }) => [address, hwId]));
    registry.settle(new Set([...configured, ...expected.keys()]));
  }

  watch([]);
  return {
    watch,
    named: registry.named,
    report: registry.report,
    warnings: registry.warnings,
    async testWatchdog(test, signal) {
      const { device, testWatchdog } = registry.named(test.hwId);
      tested.add(device.unit);
      try {
        return await testWatchdog(test, signal);
      } finally {
        tested.delete(device.unit);
      }
    },
    assertMayBeAsked(units) {
      const unit = units.find((one) => tested.has(one));
      if (unit !== undefined) throw underTest(unit);
      const held = units.find((one) => registry.at(one)?.expiry.isHeld());
      if (held !== undefined)
        throw new DriverError(
          'BUSY',
          `a relay of device ${held} does not open, and its watchdog is to open it: ask nothing of it meanwhile`,
        );
    },
    [Symbol.dispose]() {
      closing.abort(new DriverError('LINK_LOST', 'the link is closed'));
      registry[Symbol.dispose]();
    },
  };
}
