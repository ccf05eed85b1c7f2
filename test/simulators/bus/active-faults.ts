/** What is wrong with a device, as it shows on the wire (faultsSchema in plan.ts). */
import type { DeviceChange, Faults } from './plan.ts';
import type { Protocol } from './protocol.ts';
import { garbled, openRandom } from './random.ts';

export interface ActiveFaults {
  faults(): Faults;
  /** null: it is healthy. */
  change(changes: NonNullable<DeviceChange['faults']> | null): void;
  /** Does it miss this request? */
  isDeaf(): boolean;
  /** Does it say nothing, though it did what it was asked? */
  swallows(isWrite: boolean): boolean;
  spoilt(reply: Uint8Array): Uint8Array;
  /** Of the next reply, in place of its turnaround. */
  delayMs(turnaroundMs: number): number;
}

/** Requests: longer than any test asks. */
const FOR_LONG = 1_000_000;

export function openActiveFaults(initial: Faults, address: number, protocol: Protocol): ActiveFaults {
  let faults = initial;
  let losses = openRandom(faults.loss?.seed ?? 0);
  let damages = openRandom(faults.damage?.seed ?? 0);
  let delays = openRandom(faults.unsteady?.seed ?? 0);
  const garbage = openRandom(address);

  function change(changes: NonNullable<DeviceChange['faults']> | null): void {
    const left = Object.entries({ ...faults, ...changes }).filter(
      ([, fault]) => fault !== null && fault !== false,
    );
    faults = changes === null ? {} : (Object.fromEntries(left) as Faults);
    if (changes?.loss) losses = openRandom(changes.loss.seed);
    if (changes?.damage) damages = openRandom(changes.damage.seed);
    if (changes?.unsteady) delays = openRandom(changes.unsteady.seed);
  }
  return {
    faults: () => faults,
    change,
    isDeaf: () => faults.dead === true || (faults.loss !== undefined && losses() < faults.loss.share),
    swallows(isWrite) {
      if (isWrite && faults.silentFromWrite) change({ silentFromWrite: null, silent: FOR_LONG });
      const { silent } = faults;
      if (silent === undefined) return false;
      change({ silent: silent > 1 ? silent - 1 : null });
      return true;
    },
    spoilt(reply) {
      const { wrongAddress, corrupt, damage, duplicate, truncate = 0, noise = '' } = faults;
      let bytes = reply;
      if (wrongAddress !== undefined) bytes = protocol.readdressed(bytes, wrongAddress);
      if (corrupt || (damage && damages() < damage.share)) bytes = protocol.corrupted(bytes);
      if (duplicate) bytes = garbled(bytes, garbage);
      return Buffer.concat([
        Buffer.from(noise, 'hex'),
        bytes.subarray(0, Math.max(0, bytes.length - truncate)),
      ]);
    },
    delayMs(turnaroundMs) {
      const { late, unsteady, slowMs = 0 } = faults;
      if (unsteady && delays() < unsteady.share)
        return unsteady.fromMs + delays() * (unsteady.toMs - unsteady.fromMs);
      if (!late) return turnaroundMs + slowMs;
      change({ late: late.replies > 1 ? { ...late, replies: late.replies - 1 } : null });
      return late.milliseconds;
    },
  };
}
