/** The devices of a bus that are polled: those of the options, and those in the list of the daemon (`watch`). */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Watch } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type Member, openRegistry, type Registry } from '../rs485/registry.ts';
import { openAddressTable } from './address-table.ts';
import { type Device, openDevice } from './device.ts';
import type { DeviceSession } from './device-session.ts';
import { type LateReplies, openLateReplies } from './late-replies.ts';
import { type Maintenance, openMaintenance } from './maintenance.ts';
import type { OsdpOptions } from './options.ts';
import { type AllPulses, openPulses, type Pulses, shownPulse } from './pulses.ts';

export interface DevicesOptions {
  clock: Clock;
  log: DriverLog;
  bus: Bus;
  options: Pick<OsdpOptions, 'baudRate' | 'check' | 'devices' | 'pollEveryMs'>;
  reportState(report: Rs485Report): void;
  addEvent(event: DeviceEvent): void;
}

export interface OsdpMember extends Member {
  device: Device;
  pulses: Pulses;
  /** The device is polled while this is open and not reserved. */
  reservation: Reservation;
}

export interface Devices
  extends Maintenance,
    Pick<Registry<OsdpMember>, 'named' | 'report' | 'warnings'>,
    Disposable {
  deviceAt(address: number): Device | undefined;
  /** Nothing is polled before the first list: it brings the keys. */
  watch(list: Watch): void;
  readonly closing: AbortSignal;
  readonly lateReplies: LateReplies;
}

export function openDevices({ clock, log, bus, options, reportState, addEvent }: DevicesOptions): Devices {
  const table = openAddressTable(options.devices);
  const closing = new AbortController();
  const allPulses: AllPulses = new Map();
  const lateReplies = openLateReplies(clock);

  const registry: Registry<OsdpMember> = openRegistry(join, table.expectedAt, reportState);

  function join(address: number): OsdpMember {
    const device: Device = openDevice({
      address,
      bus,
      lateReplies,
      clock,
      log,
      reportState,
      addEvent,
      closing: closing.signal,
      check: options.check,
      everyMs: options.pollEveryMs,
      policy: table.policyAt(address),
      claim: (hwId) => registry.claim(address, hwId),
      isTaken: (hwId) => registry.isTaken(address, hwId),
      expected: () => table.expectedAt(address),
      pulse: () => shownPulse(allPulses, device.state, clock.monotonic()),
      // A file transfer goes on only after the device was polled again.
      lost: () => reservation.end(),
    });
    const pulses = openPulses({ bus, device, all: allPulses, clock });
    const reservation = openReservation(clock, device.session, () => bus.poll(device.poll));
    return {
      device,
      pulses,
      reservation,
      [Symbol.dispose]() {
        reservation[Symbol.dispose]();
        device[Symbol.dispose]();
      },
    };
  }

  function settle(): void {
    if (closing.signal.aborted) return;
    registry.settle(table.addresses(), ({ device }, address) => device.setPolicy(table.policyAt(address)));
  }

  return {
    ...openMaintenance(options.baudRate, table, registry, settle, clock, closing.signal),
    named: registry.named,
    report: registry.report,
    warnings: registry.warnings,
    deviceAt: (address) => registry.at(address)?.device,
    watch(list) {
      table.watch(list);
      settle();
    },
    closing: closing.signal,
    lateReplies,
    [Symbol.dispose](): void {
      closing.abort(new DriverError('LINK_LOST', 'the link is closed'));
      registry[Symbol.dispose]();
    },
  };
}

/**
 * A device that takes a file, and has said that it must not be spoken to of anything else meanwhile (FtAction of osdp_FTSTAT): it is not
 * polled, and other commands for it are refused.
 */
export interface Reservation extends Disposable {
  /** Again and again, for it ends by itself soon. */
  begin(): void;
  end(): void;
}

/** Longer than a device may ask for between two fragments (65.5 s); after that no one sends it any more. */
const LAPSES_MS = 70_000;

/** Begins with the device polled. `poll`: polls it until disposed. */
export function openReservation(
  clock: Clock,
  session: Pick<DeviceSession, 'reserve'>,
  poll: () => Disposable,
): Reservation {
  let polling: Disposable | undefined = poll();
  let lease = new AbortController();
  let isOpen = true;

  function end(): void {
    lease.abort();
    session.reserve(false);
    if (isOpen) polling ??= poll();
  }

  return {
    end,
    begin() {
      if (!isOpen) return;
      lease.abort();
      lease = new AbortController();
      const { signal } = lease;
      session.reserve(true);
      polling?.[Symbol.dispose]();
      polling = undefined;
      const lapse = () => {
        // It may have been begun again in the very moment.
        if (!signal.aborted) end();
      };
      clock.sleep(LAPSES_MS, signal).then(lapse, () => undefined);
    },
    [Symbol.dispose]() {
      isOpen = false;
      lease.abort();
      polling?.[Symbol.dispose]();
    },
  };
}
