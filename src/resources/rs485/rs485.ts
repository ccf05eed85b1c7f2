/** Puts the parts of this slice together: the devices, their buses, and what is done with both. */
import type { Caller } from '../../platform/principal.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { StartJob } from '../../services/jobs/job-order.ts';
import type { Replacement } from './bus-schema.ts';
import { type BusesOptions, openBuses } from './buses.ts';
import { openCommunication } from './communication.ts';
import { openDevices } from './devices.ts';
import { openFieldEvents } from './field-events.ts';
import { openFirmware } from './firmware.ts';
import { importRs485 } from './import.ts';
import { openKeys } from './keys.ts';
import { openLetGo } from './let-go.ts';
import { openMissing } from './missing.ts';
import { openPairing } from './pairing.ts';
import { openProofs } from './proofs.ts';
import { openPulse } from './pulse.ts';
import { openRelays, type RelaysOptions } from './relays.ts';
import { openReplace } from './replace.ts';
import { openRetire } from './retire.ts';
import { openScan } from './scan.ts';
import type { SettingsOptions } from './settings.ts';
import { stateFrom } from './shown.ts';
import { openRs485Table } from './table.ts';
import { openTraces } from './trace.ts';
import { openTracking } from './tracking.ts';
import { openWatchdogs } from './watchdog.ts';
import { openWatchdogProofs } from './watchdog-proofs.ts';

export interface Rs485Options
  extends Omit<SettingsOptions, 'table' | 'applied' | 'unknown' | 'heardAt' | 'proved' | 'told'>,
    Omit<BusesOptions, 'table'> {
  audit: Audit;
  actuations: Actuations;
  vault: Pick<Vault, 'seal' | 'open'>;
  groupName(groupId: string): string | undefined;
  doorExists(doorId: string): boolean;
  /** A door's relay was bound, or has taken its settings. */
  relayChanged(doorId: string): void;
  relayReported: RelaysOptions['relayReported'];
  startJob: StartJob;
  /** Where firmware files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
}

export type Rs485 = ReturnType<typeof openRs485>;

export function openRs485(options: Rs485Options) {
  const table = openRs485Table(options.database);
  const buses = openBuses({ ...options, table });
  const keys = openKeys({ ...options, table });
  const proofs = openWatchdogProofs({ ...options, table });
  const tracking = openTracking({
    ...options,
    table,
    buses,
    told(row, report) {
      proofs.told(row, report);
      relays.takeRelay(row, report);
    },
    proved: openProofs({ ...options, keys, changed: (bus) => polled.changed(bus) }),
    keys,
    keysOf: (bus) => (buses.speaks(bus, 'osdp') ? keys.of(bus) : undefined),
  });
  const { settings, discovery, polled } = tracking;
  const { reconciler, reported, isInForce } = settings;
  const told = { reported, known: reported.get, isInForce };
  const parts = { ...options, table, buses, keys, settings, discovery, polled, ...told };
  const firmware = openFirmware(parts);
  const isFedTogether = (id: string) => buses.speaks(id, 'dcon');
  const watchdogs = openWatchdogs({ ...parts, proofs, isFedTogether });
  const { assertNotTested } = watchdogs;
  const { callOff, ...pulses } = openPulse({ ...parts, proofs, assertNotTested });
  const changing = { ...parts, letGo: openLetGo({ ...parts, callOff }) };
  const devices = openDevices({ ...changing, upgradeOf: firmware.upgradeOf });
  const replace = openReplace({
    ...changing,
    replaced(row, busBefore) {
      for (const bus of new Set([row.bus, busBefore])) polled.changed(bus);
      reconciler.wake(row.device_id);
      if (row.door_id !== null) options.relayChanged(row.door_id);
    },
  });

  const relays = openRelays(parts);
  return {
    ...devices,
    state: stateFrom({ ...parts, watchdogs }),
    scan: openScan({ ...parts, place: polled.place }),
    ...pulses,
    testWatchdog: watchdogs.start,
    pair: openPairing(parts),
    trace: openTraces(parts),
    ...openCommunication(parts),
    updateFirmware: firmware.start,
    resumeFirmware: firmware.resume,
    retire: openRetire({
      ...changing,
      shown: (deviceId) => devices.get(deviceId).device,
      changed: polled.changed,
    }),
    async replace(deviceId: string, body: Replacement, caller: Caller & { ifMatch: string | undefined }) {
      await replace(deviceId, body, caller);
      return devices.get(deviceId);
    },
    buses: buses.overview,
    declareBuses: buses.declare,
    /** The latest report of each bus that is up. */
    busReports: buses.reports,
    missing: openMissing(parts),
    importPlan: importRs485({
      ...changing,
      changed: reconciler.wake,
      merged: reported.move,
      added(deviceId, since) {
        reported.add(deviceId, since);
        for (const id of buses.ids()) polled.changed(id);
      },
    }),
    ...relays,
    report: tracking.report,
    link: tracking.link,
    /** Resolves when it is durable; false when it is none of a bus. */
    event: openFieldEvents(parts),
    applySummary: reconciler.summary,
    /** For supervise, as are the next. */
    applySettings: reconciler.run,
    keepReports: reported.run,
    keepFound: discovery.run,
    keepPolled: polled.run,
  };
}
