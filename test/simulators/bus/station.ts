/** A place on the wire: a device, and what is wrong with it. */

import type { Switching } from './pins.ts';
import { type CheckedPlan, type DeviceChange, type DevicePlan, type Faults, INPUTS } from './plan.ts';
import type { Device, Protocol } from './protocol.ts';
import { garbled, openRandom } from './random.ts';
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
  /** What only this kind has: settings, bootCount, pulse, watchdog … */
  [more: string]: unknown;
}

export interface Station {
  readonly address: number;
  /** `isForAll`: heard, carried out, and answered by nobody. */
  hear(request: Uint8Array, isForAll: boolean, now: number): Reply | undefined;
  change(change: DeviceChange, now: number): void;
  state(now: number): DeviceState;
  resetCounters(): void;
}

export function openStation(plan: DevicePlan, bus: CheckedPlan, protocol: Protocol, opened: number): Station {
  const { address, kind } = plan;
  let { turnaroundMs } = plan;
  let hwId = plan.hwId ?? `${kind}-${address}`.slice(0, 16);
  let device: Device = protocol.openDevice({ ...plan, hwId }, opened);
  let faults: Faults = plan.faults;
  let losses = openRandom(faults.loss?.seed ?? 0);
  const garbage = openRandom(address);
  let requests = 0;

  function setFaults(changes: NonNullable<DeviceChange['faults']> | null): void {
    const entries = Object.entries({ ...faults, ...changes }).filter(
      ([, fault]) => fault !== null && fault !== false,
    );
    faults = changes === null ? {} : (Object.fromEntries(entries) as Faults);
    if (changes?.loss) losses = openRandom(changes.loss.seed);
  }
  /** One less of a fault that ends by itself; whether it was there. */
  function consumeSilence(): boolean {
    const { silent } = faults;
    if (silent === undefined) return false;
    setFaults({ silent: silent > 1 ? silent - 1 : null });
    return true;
  }
  function delayMs(): number {
    const { late, slowMs = 0 } = faults;
    if (!late) return (bus.pacing === 'none' ? 0 : turnaroundMs) + slowMs;
    setFaults({ late: late.replies > 1 ? { ...late, replies: late.replies - 1 } : null });
    return late.milliseconds;
  }
  function spoilt(reply: Uint8Array): Uint8Array {
    const { wrongAddress, corrupt, duplicate, truncate = 0, noise = '' } = faults;
    let bytes = reply;
    if (wrongAddress !== undefined) bytes = protocol.readdressed(bytes, wrongAddress);
    if (corrupt) bytes = protocol.corrupted(bytes);
    if (duplicate) bytes = garbled(bytes, garbage);
    return Buffer.concat([
      Buffer.from(noise, 'hex'),
      bytes.subarray(0, Math.max(0, bytes.length - truncate)),
    ]);
  }
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
    hear(request, isForAll, now) {
      if (!isForAll) requests += 1;
      const { dead, loss, refuse } = faults;
      if (dead || (loss && losses() < loss.share)) return undefined;
      device.advance(now);
      const isRefused = refuse !== undefined && !isForAll;
      const reply = isRefused ? protocol.refusal(request, refuse) : device.answer(request, now);
      if (!reply || isForAll || consumeSilence()) return undefined;
      const bytes = spoilt(reply);
      return { bytes, delayMs: delayMs() };
    },
    change(change, now) {
      device.advance(now);
      if (change.swap) {
        ({ hwId } = change.swap);
        const { settings: _, ...factory } = plan;
        device = protocol.openDevice({ ...factory, hwId }, now);
      }
      if (change.restart) device.restart(now);
      changeInputs(change, now);
      const { tamper, supplyFault } = change;
      device.alarm({
        ...(tamper !== undefined && { tamper }),
        ...(supplyFault !== undefined && { supplyFault }),
      });
      if (change.turnaroundMs !== undefined) turnaroundMs = change.turnaroundMs;
      if (change.faults !== undefined) setFaults(change.faults);
    },
    state(now) {
      device.advance(now);
      const { pins } = device;
      return {
        ...{ address, kind, hwId, turnaroundMs, faults, requests },
        inputs: named('input', pins.inputCount, pins.inputs()),
        outputs: named('output', pins.outputCount, pins.outputs()),
        history: pins.history,
        ...device.describe(now),
      };
    },
    resetCounters() {
      requests = 0;
    },
  };
}

function named(prefix: string, count: number, bits: number): Record<string, boolean> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${prefix}${index}`, (bits & (1 << index)) !== 0]),
  );
}
