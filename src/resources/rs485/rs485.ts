/** Puts the parts of this slice together, in the order in which they stand on each other. */
import type { DriverEvent, StateReport } from '../../../drivers/contract/driver.ts';
import type { MakeImportPlan } from '../../platform/import-plan.ts';
import { type Bus, type Buses, openBuses } from './buses.ts';
import { type Communication, openCommunication } from './communication.ts';
import type { Rs485Context } from './context.ts';
import { type Devices, openDevices, openState } from './devices.ts';
import { type Discovery, openDiscovery } from './discovery.ts';
import { openFieldEvents } from './field-events.ts';
import { type Firmware, openFirmware } from './firmware.ts';
import { importRs485 } from './import.ts';
import { openKeys } from './keys.ts';
import { type MissingDevice, openMissing } from './missing.ts';
import { openKeyProofs, openPairings, type Pairings } from './pairing.ts';
import { openPolledAddresses, type PolledAddresses } from './polled-addresses.ts';
import { openPulses, type Pulses } from './pulse.ts';
import { openReaders, type Readers } from './readers.ts';
import { openRelays, type Relays } from './relays.ts';
import { openReplacements, openRetirements, type Replacements, type Retirements } from './replace.ts';
import { openScans, type Scans } from './scan.ts';
import type { Rs485DeviceState } from './schema.ts';
import { openSettings, type Settings } from './settings.ts';
import type { Rs485Entry } from './site-entry.ts';
import { openRs485Table } from './table.ts';
import { openTraces, type Traces } from './trace.ts';
import { openWatchdogs, type Watchdogs } from './watchdog.ts';
import { openWatchdogProofs } from './watchdog-proofs.ts';

export interface Rs485
  extends Devices,
    Relays,
    Pulses,
    Scans,
    Pairings,
    Traces,
    Communication,
    Readers,
    Replacements,
    Retirements,
    Pick<Watchdogs, 'testWatchdog'> {
  readonly buses: Buses;
  readonly settings: Settings;
  readonly discovery: Discovery;
  readonly polled: PolledAddresses;
  readonly firmware: Firmware;
  /** Beside the resource. Throws NOT_FOUND. */
  state(deviceId: string): Rs485DeviceState;
  /** Devices that should answer and do not. */
  missing(): MissingDevice[];
  importPlan: MakeImportPlan<Rs485Entry>;
  /** A link reported the state of a subject. */
  report(linkId: string, report: StateReport): void;
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
  /** Resolves when it is durable; false when it is none of a bus. */
  event(linkId: string, event: DriverEvent): Promise<boolean>;
}

/** `declared`: the buses of the configuration. */
export function openRs485(declared: readonly Bus[], below: Omit<Rs485Context, 'table'>): Rs485 {
  const table = openRs485Table(below.database);
  const context: Rs485Context = { ...below, table };
  const buses = openBuses(context, declared);
  const keys = openKeys(context);
  const watchdogProofs = openWatchdogProofs(context);
  const polled = openPolledAddresses(context, buses, keys);
  const keyProved = openKeyProofs(context, keys, polled);
  const settings: Settings = openSettings(context, polled, (bus, report, row) => {
    keyProved(bus, report);
    if (!row) return discovery.unknown(bus, report);
    watchdogProofs.reported(row, report);
    relays.takeRelay(row, report);
  });
  const { reported } = settings;
  const discovery: Discovery = openDiscovery(context, settings, polled);
  const relays = openRelays(context, buses, reported, settings);
  const firmware = openFirmware(context, buses, reported);
  const watchdogs = openWatchdogs({ ...context, buses, watchdogProofs, reported, settings });
  const pulses = openPulses({ ...context, buses, watchdogProofs, reported, settings, watchdogs });
  const devices = openDevices(context, settings, firmware, pulses);
  const scans = openScans({ ...context, buses, discovery, polled });
  const pairings = openPairings({ ...context, buses, keys, discovery, polled });
  const communication = openCommunication({ ...context, buses, keys, polled, reported });
  const readers = openReaders(context, buses, reported);
  const traces = openTraces(context, buses);
  const replacements = openReplacements(context, buses, settings, polled, devices, pulses);
  const retirements = openRetirements(context, keys, reported, devices, polled, pulses);
  const fieldEvents = openFieldEvents(context, discovery, buses);
  return {
    ...devices,
    ...relays,
    ...pulses,
    ...scans,
    ...pairings,
    ...traces,
    ...communication,
    ...readers,
    ...replacements,
    ...retirements,
    testWatchdog: watchdogs.testWatchdog,
    buses,
    settings,
    discovery,
    polled,
    firmware,
    state: openState(context, settings, buses, watchdogs, fieldEvents),
    missing: openMissing(context, buses, reported),
    importPlan: importRs485(context, buses, polled, settings, pulses),
    report(linkId, report) {
      if (buses.has(linkId) && !buses.report(linkId, report)) settings.report(linkId, report);
    },
    link(linkId, up) {
      if (!buses.has(linkId)) return;
      buses.link(linkId, up);
      settings.link(linkId, up);
      polled.link(linkId, up);
      if (!up) discovery.lost(linkId);
    },
    event: fieldEvents.take,
  };
}
