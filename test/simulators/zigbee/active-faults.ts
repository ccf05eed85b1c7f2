/** What is wrong with a lock (faultsSchema in plan.ts), and what is left of faults that are counted. */
import type { ConfirmFaults, Faults, LockChange } from './plan.ts';
import type { DeviceFaults } from './zcl/device.ts';

export interface ActiveFaults extends DeviceFaults {
  faults(): Faults;
  /** null: it is healthy. */
  change(changes: NonNullable<LockChange['faults']> | null): void;
  isOffline(): boolean;
  isJammed(): boolean;
  isStuck(): boolean;
  boasts(): boolean;
  forgetsCodes(): boolean;
  ignoresUserTypes(): boolean;
  changesSchedules(): boolean;
  misreported(): number | undefined;
  relocksMs(): number | undefined;
  lagMs(): number;
  /** After how long what it sends now arrives once more. */
  replaysAfter(): number | undefined;
  losesResponse(): boolean;
  misses(): boolean;
  /** One of those that are left. */
  confirmFault(): ConfirmFaults | undefined;
  duplicates(): boolean;
  /** The status that a door lock command is refused with. */
  refusal(): number | undefined;
}

export function openActiveFaults(initial: Faults): ActiveFaults {
  let faults = initial;

  function change(changes: NonNullable<LockChange['faults']> | null): void {
    const left = Object.entries({ ...faults, ...changes }).filter(([, one]) => one !== null && one !== false);
    faults = changes === null ? {} : (Object.fromEntries(left) as Faults);
  }
  /** Whether one was left of a number. */
  function takeOne(name: 'lostResponses' | 'lostEvents' | 'lostRequests' | 'duplicates'): boolean {
    const left = faults[name];
    if (left === undefined) return false;
    change({ [name]: left > 1 ? left - 1 : null });
    return true;
  }
  function takeCommand(name: 'defaultResponse' | 'refuse'): number | undefined {
    const fault = faults[name];
    if (!fault) return undefined;
    change({ [name]: fault.commands > 1 ? { ...fault, commands: fault.commands - 1 } : null });
    return fault.status;
  }
  return {
    faults: () => faults,
    change,
    isOffline: () => faults.offline === true,
    isJammed: () => faults.jammed === true,
    isStuck: () => faults.stuck === true,
    boasts: () => faults.boasts === true,
    forgetsCodes: () => faults.forgetsCodes === true,
    ignoresUserTypes: () => faults.ignoresUserTypes === true,
    changesSchedules: () => faults.changesSchedules === true,
    misreported: () => faults.misreports,
    relocksMs: () => faults.relocksMs,
    lagMs: () => faults.lagMs ?? 0,
    replaysAfter() {
      const { replays } = faults;
      if (!replays) return undefined;
      change({ replays: replays.frames > 1 ? { ...replays, frames: replays.frames - 1 } : null });
      return replays.afterMs;
    },
    losesResponse: () => takeOne('lostResponses'),
    losesEvent: () => takeOne('lostEvents'),
    lateEventsMs: () => faults.lateEventsMs ?? 0,
    misses: () => takeOne('lostRequests'),
    duplicates: () => takeOne('duplicates'),
    confirmFault() {
      const { confirm } = faults;
      if (!confirm) return undefined;
      change({ confirm: confirm.frames > 1 ? { ...confirm, frames: confirm.frames - 1 } : null });
      return confirm;
    },
    refusal: () => takeCommand('refuse'),
    defaultResponse: () => takeCommand('defaultResponse'),
    answersByDefault: () => faults.answersByDefault === true,
    slowMs: () => faults.slowMs ?? 0,
    invalidValues: () => faults.invalidValues === true,
    oversizedStrings: () => faults.oversizedStrings,
    foreignClusters: () => faults.foreignClusters ?? [],
    bogusEndpoints: () => faults.bogusEndpoints ?? [],
  };
}
