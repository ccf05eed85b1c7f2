/** Relays of one device that did not open at the end of a pulse: what is reported of them, and what is refused because of it. */
import type { Clock } from '../contract/driver.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { DeviceEvent } from './event-queue.ts';

/** Between two tries to open a relay. */
export const OFF_RETRY_MS = 250;
/** So long a relay that stays closed is tried again; then the watchdog of its device is to open it. */
export const OFF_TRIES_MS = 1_000;

type Shown = NonNullable<Rs485Report['relayFault']>;

export interface RelayFaults {
  /** The pulse is over, and the relay was read as closed. `isDistrusted`: the device was to open it by itself. */
  stillClosed(relay: number, isDistrusted: boolean): void;
  /** The pulse is over, and the relay could not be read. A relay that was read as closed before stays so. */
  notRead(relay: number): void;
  readOpen(relay: number): void;
  shown(): Shown | null;
  /** A relay that the device was to open by itself, and did not. */
  distrusted(): number | undefined;
}

/** The worst first. */
const ORDER: readonly Shown['fault'][] = ['stillClosed', 'notRead', 'openedByGateway'];

/** `hwId`: undefined for a device that was never met. */
export function openRelayFaults(
  clock: Clock,
  hwId: () => string | undefined,
  addEvent: (event: DeviceEvent) => void,
  changed: () => void,
): RelayFaults {
  const faults = new Map<number, Shown>();
  const distrusted = new Set<number>();
  let shown: Shown | null = null;

  function set(relay: number, fault: Shown['fault'] | undefined): void {
    const before = faults.get(relay)?.fault;
    if (before === fault) return;
    if (fault === undefined) faults.delete(relay);
    else faults.set(relay, { relay, fault, at: clock.now() });
    const wasRaised = before === 'stillClosed';
    const isRaised = fault === 'stillClosed';
    const name = hwId();
    if (wasRaised !== isRaised && name !== undefined)
      addEvent({ kind: 'alarm', hwId: name, alarm: 'relay', raised: isRaised });
    const all = [...faults.values()];
    shown = ORDER.map((one) => all.find((two) => two.fault === one)).find((one) => one !== undefined) ?? null;
    changed();
  }

  return {
    stillClosed(relay, isDistrusted) {
      if (isDistrusted) distrusted.add(relay);
      set(relay, 'stillClosed');
    },
    notRead(relay) {
      if (faults.get(relay)?.fault !== 'stillClosed') set(relay, 'notRead');
    },
    readOpen: (relay) => set(relay, distrusted.has(relay) ? 'openedByGateway' : undefined),
    shown: () => shown,
    distrusted: () => [...distrusted][0],
  };
}
