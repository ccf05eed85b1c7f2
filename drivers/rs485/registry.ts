/** The devices of a bus that are polled, one at each address, and which of them has which name (hwId). */

import type { Bus } from '../bus/bus.ts';
import type { Poll } from '../bus/exchange.ts';
import type { BusWarning } from '../contract/bus-warnings.ts';
import { DriverError } from '../contract/driver.ts';
import type { Rs485Report } from '../contract/settings.ts';

/** What is at one address. Disposed when the address is polled no more. */
export interface Member extends Disposable {
  readonly device: {
    /** As the device said last; undefined before the first contact. */
    hwId(): string | undefined;
    connected(): boolean;
    /** Reports what is known though nothing changed, so that its age can be seen. */
    report(again: true): void;
    /** What a technician should mend. */
    warning(): BusWarning | undefined;
    /** Why nothing is sent to it while it is not connected. */
    absence?(): string;
    /** It was met at another address: what its inputs have counted since is reported there. */
    moved?(): void;
  };
}

export interface Registry<One extends Member> extends Disposable {
  /** Polls exactly these addresses. `stays` is called for each that was polled before. */
  settle(addresses: ReadonlySet<number>, stays?: (member: One, address: number) => void): void;
  /** undefined: the address is not polled. */
  at(address: number): One | undefined;
  /** Those at all other addresses. */
  others(address: number): One[];
  /** The member there, polled from now on. */
  join(address: number): One;
  /** The connected device of this name. */
  holderOf(hwId: string): One | undefined;
  /** The same. Throws DEVICE_OFFLINE: nothing can be sent to it. */
  named(hwId: string): One;
  /** The connected device of this name is at another address. */
  isTaken(address: number, hwId: string): boolean;
  /** The device there has this name; false where another device has it already: a command for it might reach another door. */
  claim(address: number, hwId: string): boolean;
  /** Reports every device again. */
  report(): void;
  warnings(): BusWarning[];
}

/** `expectedAt`: the hwId that the daemon expects at an address. */
export function openRegistry<One extends Member>(
  open: (address: number) => One,
  expectedAt: (address: number) => string | undefined,
  reportState: (report: Rs485Report) => void,
): Registry<One> {
  const members = new Map<number, One>();

  const holderOf = (hwId: string) =>
    [...members.values()].find(({ device }) => device.connected() && device.hwId() === hwId);

  function isTaken(address: number, hwId: string): boolean {
    const holder = holderOf(hwId);
    return holder !== undefined && holder !== members.get(address);
  }

  /** The expected device is gone where another one, of this name, answers at its address. One that was met has reported itself. */
  function reportGone(address: number, hwId: string): void {
    const expected = expectedAt(address);
    if (expected === undefined || expected === hwId) return;
    if ([...members.values()].some(({ device }) => device.hwId() === expected)) return;
    const unknown = { type: null, platform: null, apps: [], reportedSettingsVersion: 0, settings: null };
    reportState({ connected: false, hwId: expected, ...unknown, levels: {}, address });
  }

  function join(address: number): One {
    const member = members.get(address) ?? open(address);
    members.set(address, member);
    return member;
  }

  function leave(address: number, member: One): void {
    members.delete(address);
    member[Symbol.dispose]();
  }

  return {
    holderOf,
    isTaken,
    join,
    at: (address) => members.get(address),
    others: (address) => [...members].flatMap(([other, member]) => (other === address ? [] : member)),
    settle(addresses, stays) {
      for (const [address, member] of members) if (!addresses.has(address)) leave(address, member);
      for (const address of addresses) {
        const before = members.get(address);
        if (before) stays?.(before, address);
        const { device } = join(address);
        const hwId = device.connected() ? device.hwId() : undefined;
        if (hwId !== undefined) reportGone(address, hwId);
      }
    },
    named(hwId) {
      const member = holderOf(hwId);
      if (member) return member;
      const known = [...members.values()].find(({ device }) => device.hwId() === hwId);
      throw new DriverError(
        'DEVICE_OFFLINE',
        known?.device.absence?.() ??
          `nothing was sent, as ${hwId} does not answer on this bus: look at its power, its address and its wires`,
      );
    },
    claim(address, hwId) {
      if (isTaken(address, hwId)) return false;
      reportGone(address, hwId);
      for (const [other, { device }] of members)
        if (other !== address && device.hwId() === hwId) device.moved?.();
      return true;
    },
    report() {
      for (const { device } of members.values()) device.report(true);
    },
    warnings: () => [...members.values()].flatMap(({ device }) => device.warning() ?? []),
    [Symbol.dispose]() {
      for (const [address, member] of [...members]) leave(address, member);
    },
  };
}

/** What closes a relay is sent to one device: two with one address would both carry it out. Throws REFUSED while two are heard there. */
export function assertAlone(isContested: boolean, address: number): void {
  if (!isContested) return;
  throw new DriverError(
    'REFUSED',
    `two devices answer at address ${address}, and both might carry it out: disconnect one, give the other one another address, and try again within a minute`,
  );
}

/** The settings that an order goes by are not, or may not be, those of the device. Nothing was sent. */
export class OtherSettings extends DriverError {
  constructor(address: number) {
    super(
      'REFUSED',
      `device ${address} has been given other settings since: try again once its state shows what it has`,
    );
  }
}

// The polls of one device, which can be held back: a watchdog is tested by silence.

/**
 * Between two questions to a device that is not known yet, however seldom it is polled then. One that never answers is
 * asked more rarely by the bus (drivers/bus/circuit-breaker.ts).
 */
export const MEET_EVERY_MS = 1_000;

export interface Polling extends Disposable {
  /** None until what is returned is disposed, and what every other pause returned. */
  pause(): Disposable;
}

export function openPolling(bus: Pick<Bus, 'poll'>, poll: Poll): Polling {
  let polled: Disposable | undefined = bus.poll(poll);
  let isOver = false;
  let pauses = 0;
  function stop(): void {
    polled?.[Symbol.dispose]();
    polled = undefined;
  }
  return {
    pause() {
      stop();
      pauses += 1;
      return {
        [Symbol.dispose]() {
          pauses -= 1;
          if (!isOver && pauses === 0) polled = bus.poll(poll);
        },
      };
    },
    [Symbol.dispose]() {
      isOver = true;
      stop();
    },
  };
}
