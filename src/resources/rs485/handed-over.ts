/**
 * Pulses that a host has and that are not settled yet. A device that is replaced, or given another relay or door, is no more the
 * one that they were aimed at: they are called off, and the change is answered when none of them can close a relay any more.
 */
import { noRelay } from './relay.ts';

export interface HandedOver {
  /** Fires with a signal that also fires when the pulse is called off; its reason is then a GatehouseError. */
  fire<Result>(
    deviceId: string,
    signal: AbortSignal,
    fire: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result>;
  /** Resolves when each is settled, at the latest when its time is over. */
  callOff(deviceId: string): Promise<void>;
}

export function openHandedOver(): HandedOver {
  const underWay = new Map<string, Set<{ stop: AbortController; settled: Promise<unknown> }>>();
  return {
    async fire(deviceId, signal, fire) {
      const stop = new AbortController();
      const result = fire(AbortSignal.any([signal, stop.signal]));
      const one = { stop, settled: result.catch(() => undefined) };
      const all = underWay.get(deviceId) ?? new Set();
      underWay.set(deviceId, all.add(one));
      try {
        return await result;
      } finally {
        all.delete(one);
        if (all.size === 0) underWay.delete(deviceId);
      }
    },
    async callOff(deviceId) {
      const all = [...(underWay.get(deviceId) ?? [])];
      for (const { stop } of all) stop.abort(changedMeanwhile(deviceId));
      await Promise.all(all.map(({ settled }) => settled));
    },
  };
}

export function changedMeanwhile(deviceId: string) {
  return noRelay(
    `Nothing was fired: device ${deviceId} was replaced, or given another relay or door, before its relay was fired. Send it again.`,
  );
}
