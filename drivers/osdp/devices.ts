/** The devices of a bus that are polled: those of the options, and those in the list of the daemon (`watch`). */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Readdress, Readdressed } from '../contract/osdp.ts';
import type { Pair, Paired, Watch } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type Member, openRegistry, type Registry } from '../rs485/registry.ts';
import { type AddressTable, assertSameSecurity, openAddressTable } from './address-table.ts';
import { type Device, openDevice } from './device.ts';
import { type LateReplies, openLateReplies } from './late-replies.ts';
import type { OsdpOptions } from './options.ts';
import { pairDevice } from './pairing.ts';
import type { Policy } from './policy.ts';
import { type AllPulses, openPulses, type Pulses, shownPulse } from './pulses.ts';
import { readdress } from './readdress.ts';
import { openReservation, type Reservation } from './reservation.ts';

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

  const registry: Registry<OsdpMember> = openRegistry({
    open: join,
    expectedAt: table.expectedAt,
    reportState,
  });

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
    const poll = () => bus.poll(device.poll);
    const pulses = openPulses({ bus, device, all: allPulses, clock });
    const reservation = openReservation({ clock, session: device.session, poll });
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

export interface Readdressing {
  /** Whether a device answers at the address. */
  isTaken(address: number): Promise<boolean>;
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
}

/** Changes of the key or the address of a device. */
interface Maintenance {
  pair(pair: Pair, signal: AbortSignal): Promise<Paired>;
  readdress(wanted: Readdress, how: Readdressing): Promise<Readdressed>;
}

/** `settle` polls exactly the addresses of the table. */
function openMaintenance(
  baudRate: OsdpOptions['baudRate'],
  table: AddressTable,
  registry: Registry<OsdpMember>,
  settle: () => void,
  clock: Clock,
  closing: AbortSignal,
): Maintenance {
  const occupy = openOccupancy();
  function hold(address: number, policy: Policy): Disposable {
    table.hold(address, policy);
    settle();
    return {
      [Symbol.dispose]() {
        table.release(address);
        settle();
      },
    };
  }

  return {
    async pair({ address, key, milliseconds }, signal) {
      if (table.isClearText(address))
        throw new DriverError('INVALID_COMMAND', `the configuration says secure: off for address ${address}`);
      using _occupied = occupy([address]);
      using _held = hold(address, table.policyAt(address));
      const hasKey = table.keyAt(address) !== undefined;
      const { device } = registry.join(address);
      const paired = await pairDevice(device, {
        key,
        milliseconds,
        clock,
        signal: AbortSignal.any([signal, closing]),
        hasKey,
        mayHave: () => table.setPendingKey(address, key),
      });
      table.assign(address, paired.hwId, key);
      return paired;
    },
    async readdress(wanted, { isTaken, deadline, signal }) {
      const { device } = registry.named(wanted.hwId);
      assertSameSecurity(table, device.address, wanted.address);
      using _occupied = occupy([device.address, wanted.address]);
      const policy = table.policyAt(device.address);
      const key = table.keyAt(device.address);
      // A list that arrives meanwhile may lack the device.
      using _held = hold(device.address, policy);
      return await readdress(wanted, {
        device,
        clock,
        baudRate,
        isTaken,
        deadline,
        signal: AbortSignal.any([signal, closing]),
        hold: (address) => hold(address, policy),
        whereabouts: () => registry.holderOf(wanted.hwId)?.device.address,
        settled: (address) => table.assign(address, wanted.hwId, key),
      });
    },
  };
}

/** At an address one device at a time is paired, or moved to or from there. */
function openOccupancy() {
  const occupied = new Set<number>();
  return (addresses: readonly number[]): Disposable => {
    const busy = addresses.find((address) => occupied.has(address));
    if (busy !== undefined)
      throw new DriverError(
        'BUSY',
        `a device at address ${busy} is being paired already, or given an address`,
      );
    for (const address of addresses) occupied.add(address);
    return {
      [Symbol.dispose]() {
        for (const address of addresses) occupied.delete(address);
      },
    };
  };
}
