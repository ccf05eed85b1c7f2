/** A place on the wire: a device, and what is wrong with it. */
import { openActiveFaults } from './active-faults.ts';
import type { Switching } from './pins.ts';
import { type CheckedPlan, type DeviceChange, type DevicePlan, type Faults, INPUTS } from './plan.ts';
import type { Device, Protocol } from './protocol.ts';
import type { Reply } from './wire.ts';

/** What a test or a person may know about a device. */
export interface DeviceState {
  address: number;
  kind: string;
  hwId: string;
  inputs: Record<string, boolean>;
  outputs: Record<string, boolean>;
  /** What its outputs did, the latest 1000 changes. */
  history: readonly Switching[];
  turnaroundMs: number;
  faults: Faults;
  /** Requests to its address, whether it heard them or not. */
  requests: number;
  /** Those of them that would have changed something. */
  writes: number;
  /** What only this kind has: settings, bootCount, pulse, watchdog … */
  [more: string]: unknown;
}

export interface Station {
  readonly address: number;
  /** Where its device is now; null: not on this bus. */
  place(): number | null;
  /** `isForAll`: heard, carried out, and answered by no one. */
  hear(request: Uint8Array, isForAll: boolean, now: number): Reply[];
  change(change: DeviceChange, now: number): void;
  state(now: number): DeviceState;
  resetCounters(): void;
}

export function openStation(plan: DevicePlan, bus: CheckedPlan, protocol: Protocol, opened: number): Station {
  const { address, kind } = plan;
  let { turnaroundMs } = plan;
  let hwId = plan.hwId ?? `${kind}-${address}`.slice(0, 16);
  let device: Device = protocol.openDevice({ ...plan, hwId }, opened);
  const activeFaults = openActiveFaults(plan.faults, address, protocol);
  let requests = 0;
  let writes = 0;

  function changeInputs(change: DeviceChange, now: number): void {
    for (const [index, name] of INPUTS.entries()) {
      const active = change.inputs?.[name];
      const isPulsed = change.pulseInput?.input === name;
      if ((active !== undefined || isPulsed) && index >= device.pins.inputCount)
        throw new RangeError(`${kind} at ${address} has no ${name}`);
      if (active !== undefined) device.pins.setInput(index, active, now);
      if (isPulsed) device.pins.pulseInput(index, change.pulseInput?.milliseconds ?? 0, now);
    }
  }

  return {
    address,
    place: () => (device.place ? device.place() : address),
    hear(request, isForAll, now) {
      const isWrite = protocol.isWrite?.(request) === true;
      if (!isForAll) requests += 1;
      if (!isForAll && isWrite) writes += 1;
      if (activeFaults.isDeaf()) return [];
      device.pins.break(activeFaults.faults().brokenOutputs === true);
      device.advance(now);
      const { refuse: all, refuseWrites } = activeFaults.faults();
      const refuse = isForAll ? undefined : (all ?? (isWrite ? refuseWrites : undefined));
      const reply = refuse === undefined ? device.answer(request, now) : protocol.refusal(request, refuse);
      if (!reply || isForAll || activeFaults.swallows(isWrite)) return [];
      const { twin } = activeFaults.faults();
      const own = {
        bytes: activeFaults.spoilt(reply),
        delayMs: activeFaults.delayMs(bus.pacing === 'none' ? 0 : turnaroundMs),
      };
      return twin ? [own, { bytes: reply, delayMs: twin.turnaroundMs }] : [own];
    },
    change(change, now) {
      device.advance(now);
      if (change.swap) {
        ({ hwId } = change.swap);
        const { settings: _, osdp: { key: __, ...osdp } = {}, ...factory } = plan;
        device = protocol.openDevice({ ...factory, hwId, osdp }, now);
      }
      if (change.restart) device.restart(now);
      if (change.osdp) {
        if (!device.act) throw new RangeError(`${kind} at ${address} speaks no OSDP`);
        device.act(change.osdp);
      }
      changeInputs(change, now);
      const { tamper, supplyFault } = change;
      device.alarm({
        ...(tamper !== undefined && { tamper }),
        ...(supplyFault !== undefined && { supplyFault }),
      });
      if (change.turnaroundMs !== undefined) turnaroundMs = change.turnaroundMs;
      if (change.faults !== undefined) activeFaults.change(change.faults);
    },
    state(now) {
      device.advance(now);
      const { pins } = device;
      return {
        address,
        kind,
        hwId,
        turnaroundMs,
        faults: activeFaults.faults(),
        requests,
        writes,
        inputs: named('input', pins.inputCount, pins.inputs()),
        outputs: named('output', pins.outputCount, pins.outputs()),
        history: pins.history,
        ...device.describe(now),
      };
    },
    resetCounters() {
      requests = 0;
      writes = 0;
    },
  };
}

function named(prefix: string, count: number, bits: number): Record<string, boolean> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${prefix}${index}`, (bits & (1 << index)) !== 0]),
  );
}
