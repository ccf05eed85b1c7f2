/** The devices of a bus that are polled: those of the options, and those the daemon watches. */
import type { Bus } from '../bus/bus.ts';
import type { Tiding } from '../bus/tidings.ts';
import { type Clock, DriverError, type DriverLog } from '../driver.ts';
import type { Pair, Paired, Watch } from '../rs485.ts';
import type { Rs485Report } from '../settings.ts';
import { type Device, openDevice } from './device.ts';
import type { OsdpOptions } from './options.ts';
import { pairDevice } from './pairing.ts';
import type { Policy } from './policy.ts';
import { openPulses, type Pulses } from './pulses.ts';

export interface FleetOptions {
  clock: Clock;
  log: DriverLog;
  bus: Bus;
  options: Pick<OsdpOptions, 'check' | 'devices' | 'pollEveryMs'>;
  tell(report: Rs485Report): void;
  tiding(tiding: Tiding): void;
}

export interface Member {
  device: Device;
  pulses: Pulses;
  polling: Disposable;
}

export function openFleet({ clock, log, bus, options, tell, tiding }: FleetOptions) {
  const members = new Map<number, Member>();
  const configured = new Map(options.devices.map(({ address, secure }) => [address, secure]));
  const closing = new AbortController();
  /** Addresses with an open window. */
  const pairing = new Set<number>();
  let expected: ReadonlyMap<number, string> = new Map();
  let keys: ReadonlyMap<number, Uint8Array> = new Map();

  function holderOf(hwId: string): Member | undefined {
    return [...members.values()].find(({ device }) => device.connected() && device.state.hwId() === hwId);
  }

  function policyFor(address: number): Policy {
    if (configured.get(address) === 'off') return { kind: 'off' };
    const key = keys.get(address);
    return key ? { kind: 'required', key } : { kind: 'unpaired' };
  }

  /** Only one device can be the one of that name: else a command for it might reach another door. */
  function claim(address: number, hwId: string): boolean {
    const holder = holderOf(hwId);
    if (holder && holder.device.address !== address) return false;
    const awaited = expected.get(address);
    if (awaited !== undefined && awaited !== hwId && !holderOf(awaited)) tellGone(address, awaited);
    return true;
  }

  /** Another device is where this one was. */
  function tellGone(address: number, hwId: string): void {
    const unknown = { type: null, platform: null, apps: [], reportedSettingsVersion: 0, settings: null };
    tell({ connected: false, hwId, ...unknown, levels: {}, address });
  }

  function join(address: number): Member {
    const pulses = openPulses(() => device, clock);
    const device: Device = openDevice({
      ...{ address, bus, clock, log, tell, tiding, closing: closing.signal },
      ...{ check: options.check, everyMs: options.pollEveryMs, policy: policyFor(address) },
      claim: (hwId) => claim(address, hwId),
      isTaken: (hwId) => holderOf(hwId) !== undefined,
      awaited: () => expected.get(address),
      pulse: pulses.shown,
    });
    const member = { device, pulses, polling: bus.poll(device.poll) };
    members.set(address, member);
    return member;
  }

  function leave(address: number, { device, polling }: Member): void {
    members.delete(address);
    polling[Symbol.dispose]();
    device[Symbol.dispose]();
  }

  function settle(): void {
    const wanted = new Set([...configured.keys(), ...expected.keys(), ...pairing]);
    for (const [address, member] of members) if (!wanted.has(address)) leave(address, member);
    for (const address of wanted) {
      members.get(address)?.device.police(policyFor(address));
      const { device } = members.get(address) ?? join(address);
      const awaited = expected.get(address);
      const isOther = device.connected() && awaited !== undefined && device.state.hwId() !== awaited;
      if (isOther && !holderOf(awaited)) tellGone(address, awaited);
    }
  }

  return {
    ...openAccess({ members, holderOf }),
    /** Nobody is polled before the first list: it brings the keys. */
    watch({ devices, keys: given = [] }: Watch): void {
      expected = new Map(devices.map(({ address, hwId }) => [address, hwId]));
      keys = new Map(given.map(({ address, key }) => [address, key]));
      settle();
    },
    async pair({ address, key, milliseconds }: Pair, signal: AbortSignal): Promise<Paired> {
      if (configured.get(address) === 'off')
        throw new DriverError('INVALID_COMMAND', `the configuration says secure: off for address ${address}`);
      if (pairing.has(address)) throw new DriverError('BUSY', 'this device is being paired already');
      pairing.add(address);
      const { device } = members.get(address) ?? join(address);
      const either = AbortSignal.any([signal, closing.signal]);
      try {
        const paired = await pairDevice(device, { key, milliseconds, clock, signal: either });
        keys = new Map([...keys, [address, key]]);
        expected = new Map([...expected, [address, paired.hwId]]);
        return paired;
      } finally {
        pairing.delete(address);
        if (!closing.signal.aborted) settle();
      }
    },
    closing: closing.signal,
    [Symbol.dispose](): void {
      closing.abort(new DriverError('LINK_LOST', 'the link is closed'));
      for (const [address, member] of [...members]) leave(address, member);
    },
  };
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
      throw new DriverError('DEVICE_OFFLINE', `${hwId} does not answer on this bus; nothing was sent`);
    },
    deviceAt: (address: number) => members.get(address)?.device,
    report(): void {
      for (const { device } of members.values()) device.report(true);
    },
    warnings: () => [...members.values()].flatMap(({ device }) => device.warning() ?? []),
  };
}

export type Fleet = ReturnType<typeof openFleet>;
