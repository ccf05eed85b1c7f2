/** Activations of the inputs of one device: counted, and published as events. */
import type { Clock } from '../contract/driver.ts';
import type { INPUT_PINS, IoPins, Rs485Report } from '../contract/settings.ts';
import type { EventQueue } from './event-queue.ts';

export type InputPin = (typeof INPUT_PINS)[number];

type InUse = Partial<IoPins> | undefined;

export interface InputCounts {
  /** `since`: monotonic milliseconds of the reading before; null: there was none. Pins that are not in use count nothing. */
  add(hwId: string, input: InputPin, activations: number, inUse: InUse, since: number | null): void;
  /** The same object until the next activation. */
  edges(): NonNullable<Rs485Report['edges']>;
  /** The counts of another device begin at 0. */
  forget(): void;
}

export function openInputCounts(clock: Clock, addEvent: EventQueue['add']): InputCounts {
  let edges: NonNullable<Rs485Report['edges']> = {};
  return {
    add(hwId, input, activations, inUse, since) {
      if (activations === 0 || inUse?.[input] === false) return;
      const total = (edges[input]?.total ?? 0) + activations;
      edges = { ...edges, [input]: { total, at: clock.now() } };
      addEvent({ kind: 'input', hwId, since, input, activations, total });
    },
    edges: () => edges,
    forget() {
      edges = {};
    },
  };
}
