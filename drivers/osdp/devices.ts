/** The devices of a bus that are polled: those of the options, and those the daemon watches. */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Readdress, Readdressed } from '../contract/osdp.ts';
import type { Pair, Paired, Watch } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type Device, openDevice } from './device.ts';
import { openLateness } from './lateness.ts';
import type { OsdpOptions } from './options.ts';
import { pairDevice } from './pairing.ts';
import type { Policy } from './policy.ts';
import { openPulseEnds, openPulses, type Pulses } from './pulses.ts';
import { readdress } from './readdress.ts';
import { openReservation, type Reservation } from './reservation.ts';
import { assertSameSecurity, openRoster, type Roster } from './roster.ts';

export interface DevicesOptions {
  clock: Clock;
  log: DriverLog;
  bus: Bus;
  options: Pick<OsdpOptions, 'baudRate' | 'check' | 'devices' | 'pollEveryMs'>;
  tell(report: Rs485Report): void;
  tellEvent(event: DeviceEvent): void;
}

export interface Member {
  device: Device;
  pulses: Pulses;
  /** It is polled as long as it is open, but while it is reserved. */
  reservation: Reservation;
}

export function openDevices({ clock, log, bus, options, tell, tellEvent }: DevicesOptions) {
  const members = new Map<number, Member>();
  const roster = openRoster(options.devices);
  const closing = new AbortController();
  const ends = openPulseEnds(clock);
  const lateness = openLateness(clock);

  function holderOf(hwId: string): Member | undefined {
    return [...members.values()].find(({ device }) => device.connected() && device.state.hwId() === hwId);
  }

  /** Only one device can be the one of that name: else a command for it might reach another door. */
  function claim(address: number, hwId: string): boolean {
    const holder = holderOf(hwId);
    if (holder && holder.device.address !== address) return false;
    const awaited = roster.awaited(address);
    if (awaited !== undefined && awaited !== hwId && !holderOf(awaited)) tellGone(address, awaited);
    return true;
  }

  /** Another device is where this one was. */
  function tellGone(address: number, hwId: string): void {
    const unknown = { type: null, platform: null, apps: [], reportedSettingsVersion: 0, settings: null };
    tell({ connected: false, hwId, ...unknown, levels: {}, address });
  }

  function join(address: number): Member {
    const device: Device = openDevice({
      address,
      bus,
      lateness,
      clock,
      log,
      tell,
      tellEvent,
      closing: closing.signal,
      check: options.check,
      everyMs: options.pollEveryMs,
      policy: roster.policyFor(address),
      claim: (hwId) => claim(address, hwId),
      isTaken: (hwId) => holderOf(hwId) !== undefined,
      awaited: () => roster.awaited(address),
      pulse: () => ends.shown(device.state),
      // No one sends the rest of a file before it was polled.
      lost: () => reservation.end(),
    });
    const poll = () => bus.poll(device.poll);
    const pulses = openPulses({ bus, device, ends, clock });
    const reservation = openReservation({ clock, talk: device.talk, poll });
    const member = { device, pulses, reservation };
    members.set(address, member);
    return member;
  }

  function leave(address: number, { device, reservation }: Member): void {
    members.delete(address);
    reservation[Symbol.dispose]();
    device[Symbol.dispose]();
  }

  function settle(): void {
    if (closing.signal.aborted) return;
    const wanted = roster.addresses();
    for (const [address, member] of members) if (!wanted.has(address)) leave(address, member);
    for (const address of wanted) {
      members.get(address)?.device.police(roster.policyFor(address));
      const { device } = members.get(address) ?? join(address);
      const awaited = roster.awaited(address);
      const isOther = device.connected() && awaited !== undefined && device.state.hwId() !== awaited;
      if (isOther && !holderOf(awaited)) tellGone(address, awaited);
    }
  }

  const at = (address: number) => (members.get(address) ?? join(address)).device;
  return {
    ...openAccess({ members, holderOf }),
    ...openMaintenance({ ...options, roster, holderOf, at, settle, clock, closing: closing.signal }),
    /** No one is polled before the first list: it brings the keys. */
    watch(list: Watch): void {
      roster.watch(list);
      settle();
    },
    closing: closing.signal,
    lateness,
    [Symbol.dispose](): void {
      closing.abort(new DriverError('LINK_LOST', 'the link is closed'));
      for (const [address, member] of [...members]) leave(address, member);
    },
  };
}

interface MaintenanceOptions extends Pick<OsdpOptions, 'baudRate'> {
  roster: Roster;
  holderOf(hwId: string): Member | undefined;
  /** The device there, polled from now on. */
  at(address: number): Device;
  /** Polls every device that the roster has. */
  settle(): void;
  clock: Clock;
  closing: AbortSignal;
}

export interface Readdressing {
  /** Whether anybody answers at an address. */
  isTaken(address: number): Promise<boolean>;
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
}

/** What makes a device another one: its key, its address. */
function openMaintenance(options: MaintenanceOptions) {
  const { roster, holderOf, at, settle, clock, closing, baudRate } = options;
  const occupy = openOccupancy();
  function shelter(address: number, policy: Policy): Disposable {
    roster.shelter(address, policy);
    settle();
    return {
      [Symbol.dispose]() {
        roster.leave(address);
        settle();
      },
    };
  }

  return {
    async pair({ address, key, milliseconds }: Pair, signal: AbortSignal): Promise<Paired> {
      if (roster.isClear(address))
        throw new DriverError('INVALID_COMMAND', `the configuration says secure: off for address ${address}`);
      using _occupied = occupy([address]);
      using _sheltered = shelter(address, roster.policyFor(address));
      const either = AbortSignal.any([signal, closing]);
      const hasKey = roster.keyOf(address) !== undefined;
      const device = at(address);
      const giving = { key, milliseconds, clock, signal: either, hasKey };
      const paired = await pairDevice(device, { ...giving, mayHave: () => roster.pend(address, key) });
      roster.settle(address, paired.hwId, key);
      return paired;
    },
    async readdress(wanted: Readdress, { isTaken, deadline, signal }: Readdressing): Promise<Readdressed> {
      const holder = holderOf(wanted.hwId);
      if (!holder) throw offline(wanted.hwId);
      const { device } = holder;
      assertSameSecurity(roster, device.address, wanted.address);
      using _occupied = occupy([device.address, wanted.address]);
      const policy = roster.policyFor(device.address);
      const key = roster.keyOf(device.address);
      // A list may leave it out meanwhile.
      using _sheltered = shelter(device.address, policy);
      return await readdress(wanted, {
        device,
        clock,
        baudRate,
        isTaken,
        deadline,
        signal: AbortSignal.any([signal, closing]),
        shelter: (address) => shelter(address, policy),
        whereabouts: () => holderOf(wanted.hwId)?.device.address,
        settled: (address) => roster.settle(address, wanted.hwId, key),
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

function offline(hwId: string): DriverError {
  return new DriverError('DEVICE_OFFLINE', `${hwId} does not answer on this bus; nothing was sent`);
}

interface Membership {
  members: ReadonlyMap<number, Member>;
  holderOf(hwId: string): Member | undefined;
}

function openAccess({ members, holderOf }: Membership) {
  return {
    /** Throws DEVICE_OFFLINE: nothing can be sent to it. */
    named(hwId: string): Member {
      const member = holderOf(hwId);
      if (member) return member;
      throw offline(hwId);
    },
    deviceAt: (address: number) => members.get(address)?.device,
    report(): void {
      for (const { device } of members.values()) device.report(true);
    },
    warnings: () => [...members.values()].flatMap(({ device }) => device.warning() ?? []),
  };
}

export type Devices = ReturnType<typeof openDevices>;
