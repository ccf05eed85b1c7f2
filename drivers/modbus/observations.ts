/** What follows from the readings of one device, one after the other: activations, alarms, and that it has changed. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../contract/driver.ts';
import { INPUT_PINS, type Rs485Report, type Rs485Settings } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type InputPin, openInputCounts } from '../rs485/input-counts.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, type Image, numberAt, numbersAt, versionIn } from './registers.ts';
import type { ShownVersions } from './shown-versions.ts';

export interface Observations {
  /**
   * Takes the readings of a whole poll as they are. `since`: monotonic, of the poll before. Returns false where the inputs wait for the next poll: a counter
   * went back, as in an old reply that the line hands on once more. What the next poll shows as well is true.
   */
  settle(hwId: string, image: Image, settings: Rs485Settings | null, since: number | null): boolean;
  /** Since the last ones: another restart counter, or other settings. */
  hasChanged(image: Image, by?: 'restart'): boolean;
  haveInputsChanged(image: Image): boolean;
  /** It is another device from now on. */
  forget(): void;
  edges(): NonNullable<Rs485Report['edges']>;
}

interface Readings {
  bootCount: number | undefined;
  version: number | undefined;
  inputs: InputReading | undefined;
  alarms: { tamper: boolean; supply: boolean };
}

export function openObservations({
  profile,
  clock,
  addEvent,
  versions,
}: {
  profile: Profile;
  clock: Clock;
  addEvent(event: DeviceEvent): void;
  versions: Pick<ShownVersions, 'isWrittenSince'>;
}): Observations {
  let last: Readings | undefined;
  const counts = openInputCounts(clock, addEvent);
  /** Inputs that wait for the next poll. */
  let held: InputReading | undefined;

  const bootCount = (image: Image) => profile.bootCount && numberAt(image, profile.bootCount);
  const version = (image: Image) => versionIn(image, profile);

  function count(
    hwId: string,
    now: InputReading,
    settings: Rs485Settings | null,
    since: number | null,
  ): void {
    const remembers = settings?.useInputPinMemory === true;
    for (const { input, activations } of activationsBetween(last?.inputs, now, profile, remembers))
      counts.add(hwId, input, activations, settings?.ioPins, since);
  }

  return {
    settle(hwId, image, settings, since) {
      const inputs = inputReading(image, profile);
      const alarms = {
        tamper: flagAt(image, profile.tamper) === true,
        supply: flagAt(image, profile.supplyFault) === true,
      };
      const shown = version(image);
      // Counters begin again with the device, and with settings; and other settings may be those of another one, which a write has reached.
      const isWritten = shown !== undefined && since !== null && versions.isWrittenSince(shown, since);
      if (last && (isWritten || last.bootCount !== bootCount(image) || last.version !== shown))
        last.inputs = undefined;
      const isBack = settings?.useInputPinMemory === true && goesBack(last?.inputs, inputs, profile);
      const waits = isBack && (held === undefined || goesBack(held, inputs, profile));
      held = waits ? inputs : undefined;
      if (inputs && !waits) count(hwId, inputs, settings, since);
      for (const alarm of ['tamper', 'supply'] as const)
        if (alarms[alarm] !== (last?.alarms[alarm] ?? false))
          addEvent({ kind: 'alarm', hwId, alarm, raised: alarms[alarm] });
      last = {
        bootCount: bootCount(image),
        version: shown,
        inputs: waits ? last?.inputs : inputs,
        alarms,
      };
      return !waits;
    },
    hasChanged: (image, by) =>
      last !== undefined &&
      (bootCount(image) !== last.bootCount || (by !== 'restart' && version(image) !== last.version)),
    haveInputsChanged: (image) => !isDeepStrictEqual(last?.inputs, inputReading(image, profile)),
    forget() {
      last = undefined;
      counts.forget();
    },
    edges: counts.edges,
  };
}

/** undefined: the product does not say. */
export function flagAt(image: Image, place: Profile['tamper']): boolean | undefined {
  return place && bitsAt(image, { ...place, count: 1 })?.[0] === 1;
}

interface InputReading {
  levels: readonly number[];
  /** undefined: the product counts nothing. */
  counters: readonly number[] | undefined;
}

interface Activation {
  input: InputPin;
  activations: number;
}

function inputReading(
  image: Image,
  { inputs, inputEdges, inputCounters }: Profile,
): InputReading | undefined {
  const levels = inputs && bitsAt(image, inputs);
  const counters = inputEdges ? bitsAt(image, inputEdges) : inputCounters && numbersAt(image, inputCounters);
  return levels && { levels, counters };
}

/** A counter did, or went on by more than a half of what it can: one that goes round does not say which. */
function goesBack(
  before: InputReading | undefined,
  now: InputReading | undefined,
  { inputEdges }: Profile,
): boolean {
  const modulus = inputEdges && 1 << inputEdges.width;
  return (before?.counters ?? []).some((from, index) => {
    const by = (now?.counters?.[index] ?? from) - from;
    return modulus ? (by + modulus) % modulus > modulus / 2 : by < 0;
  });
}

/** By the counters of the device while its pin memory is in force (`remembers`), else from reading to reading. */
function activationsBetween(
  before: InputReading | undefined,
  now: InputReading,
  { inputEdges }: Profile,
  remembers: boolean,
): Activation[] {
  if (!before) return [];
  /** Narrow ones go round; others begin again with the device, which may count no restarts. */
  function counted(from: number, to: number): number {
    const modulus = inputEdges ? 1 << inputEdges.width : undefined;
    if (modulus) return (to - from + modulus) % modulus;
    return to < from ? to : to - from;
  }
  return INPUT_PINS.flatMap((input, index) => {
    const count = now.counters?.[index];
    const activations =
      remembers && count !== undefined
        ? counted(before.counters?.[index] ?? count, count)
        : Number(now.levels[index] === 1 && before.levels[index] === 0);
    return activations > 0 ? [{ input, activations }] : [];
  });
}
