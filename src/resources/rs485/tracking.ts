/**
 * Follows the devices of the buses: which there are, at which addresses they are polled, what they say and have in force.
 * Each of the three needs the others once it works, and not before.
 */
import type { StateReport } from '../../../drivers/contract/driver.ts';
import type { Buses } from './buses.ts';
import { type Discovery, type DiscoveryOptions, openDiscovery } from './discovery.ts';
import {
  openPolledAddresses,
  type PolledAddresses,
  type PolledAddressesOptions,
} from './polled-addresses.ts';
import { openSettings, type Settings, type SettingsOptions } from './settings.ts';

export interface TrackingOptions
  extends Omit<SettingsOptions, 'applied' | 'unknown' | 'heardAt'>,
    Omit<DiscoveryOptions, 'added' | 'toldBefore'>,
    PolledAddressesOptions {
  buses: Pick<Buses, 'has' | 'report' | 'link'>;
  /** A door's relay has taken its settings. */
  relayChanged(doorId: string): void;
}

export interface Tracking {
  readonly settings: Settings;
  readonly discovery: Discovery;
  readonly polled: PolledAddresses;
  /** A link reported the state of a subject. */
  report(linkId: string, told: StateReport): void;
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
}

export function openTracking(options: TrackingOptions): Tracking {
  const { table, buses, relayChanged } = options;
  const polled = openPolledAddresses(options);
  const settings = openSettings({
    ...options,
    heardAt: polled.heardAt,
    applied: ({ door_id }) => door_id !== null && relayChanged(door_id),
    unknown: (bus, told) => discovery.unknown(bus, told),
  });
  const { reported } = settings;
  const discovery = openDiscovery({
    ...options,
    added(deviceIds, since) {
      for (const { device_id, bus } of deviceIds.flatMap((id) => table.device.get(id) ?? [])) {
        if (!reported.get(device_id)) reported.add(device_id, since);
        polled.changed(bus);
      }
    },
    toldBefore(row, report) {
      const isLatest = reported.get(row.device_id)?.at === undefined;
      if (isLatest) settings.take(row, report);
    },
  });
  return {
    settings,
    discovery,
    polled,
    report(linkId, told) {
      if (buses.has(linkId) && !buses.report(linkId, told)) settings.report(linkId, told);
    },
    link(linkId, up) {
      if (!buses.has(linkId)) return;
      buses.link(linkId, up);
      settings.link(linkId, up);
      polled.link(linkId, up);
      if (!up) discovery.lost(linkId);
    },
  };
}
