/** The buses of the configuration and what their drivers say of them. */

import type { StateReport } from '../../../drivers/contract/driver.ts';
import { type BusReport, busReport } from '../../../drivers/contract/rs485.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { BusOverview, PairingWindow, Wire } from './bus-schema.ts';
import type { Rs485Context } from './context.ts';

/** A link of the configuration that is an RS-485 bus. */
export interface Bus {
  id: string;
  protocol: string;
  /** Device or tcp://host:port; null where there is none. */
  port: string | null;
  /** The longest a device of it takes to begin a reply. */
  turnaroundMaxMs: number;
  /** How characters travel; null where there is no wire. */
  line: LineSettings | null;
}

export interface LineSettings {
  baudRate: number;
  parity: string;
  stopBits: number;
}

export interface Buses {
  /** The buses of the configuration from now on. A link must be closed before its bus is another or none. */
  declare(buses: readonly Bus[]): void;
  ids(): string[];
  has(id: string): boolean;
  speaks(id: string, protocol: string): boolean;
  /** Throws VALIDATION_FAILED, with the buses there are. */
  assertKnown(id: string): Bus;
  /** The same, and that it speaks OSDP. `only` says what no other protocol has. Throws VALIDATION_FAILED. */
  assertOsdp(id: string, only: string): Bus;
  /** The one there is, when none was named. Throws VALIDATION_FAILED. */
  only(): Bus;
  isUp(id: string): boolean | undefined;
  /** What a driver said; false when it is of something else than the bus. */
  report(bus: string, report: StateReport): boolean;
  link(bus: string, up: boolean): void;
  /** undefined: it is closed. */
  pairing(bus: string, window: PairingWindow | undefined): void;
  overview(): BusOverview[];
  /** The latest of each bus that is up. */
  reports(): { bus: string; report: BusReport }[];
  /** What the wire says of the device at this address. */
  device(bus: string, address: number | null): Wire | undefined;
}

export function openBuses({ table, clock, log, field }: Rs485Context, declared: readonly Bus[]): Buses {
  let byId = new Map(declared.map((bus) => [bus.id, bus]));
  const reports = new Map<string, { report: BusReport; at: number }>();
  const pairings = new Map<string, PairingWindow>();
  const ageOf = ({ at }: { at: number }) => clock.monotonic() - at;

  function wiresOf(id: string): Wire[] {
    const last = reports.get(id);
    if (!last) return [];
    return last.report.devices.map(({ heardMsAgo, ...device }) => ({
      ...device,
      replyAge: heardMsAgo === null ? null : Math.round(heardMsAgo + ageOf(last)),
    }));
  }

  function overviewOf({ id, protocol, port }: Bus): BusOverview {
    const link = field.link(id);
    const last = reports.get(id);
    const rows = new Map(table.addressed.all(id).map((row) => [row.address, row]));
    return {
      id,
      protocol,
      port,
      up: link?.up ?? false,
      since: link ? new Date(link.since).toISOString() : null,
      lastError: link?.lastError?.message ?? null,
      reportAge: last ? Math.round(ageOf(last)) : null,
      utilisation: last?.report.utilisation ?? null,
      pollsPerSecond: last?.report.pollsPerSecond ?? null,
      strayBytes: last?.report.strayBytes ?? null,
      warnings: last?.report.warnings ?? [],
      pairing: pairings.get(id) ?? null,
      devices: wiresOf(id).map((device) => ({
        ...device,
        hwId: rows.get(device.address)?.hwId ?? null,
        deviceId: rows.get(device.address)?.deviceId ?? null,
      })),
    };
  }

  function assertKnown(id: string): Bus {
    const bus = byId.get(id);
    if (bus) return bus;
    throw notValid('/bus', `there is no bus ${id}; ${named(byId)}`);
  }

  return {
    declare(buses) {
      byId = new Map(buses.map((bus) => [bus.id, bus]));
    },
    ids: () => [...byId.keys()],
    has: (id) => byId.has(id),
    speaks: (id, protocol) => byId.get(id)?.protocol === protocol,
    assertKnown,
    assertOsdp(id, only) {
      const bus = assertKnown(id);
      if (bus.protocol === 'osdp') return bus;
      throw new GatehouseError('VALIDATION_FAILED', `Bus ${id} speaks ${bus.protocol}: only ${only}.`);
    },
    only() {
      const [one, another] = byId.values();
      if (one && !another) return one;
      throw notValid('/bus', one ? `name one; ${named(byId)}` : named(byId));
    },
    isUp: (id) => field.link(id)?.up,
    report(bus, { subject, state }) {
      if (subject !== 'bus') return false;
      const { data: report, error } = busReport.safeParse(state);
      if (report) reports.set(bus, { report, at: clock.monotonic() });
      else log.warn({ link: bus, err: error }, 'a bus reports what is no report');
      return true;
    },
    link(bus, up) {
      if (!up) reports.delete(bus);
    },
    pairing(bus, window) {
      if (window) pairings.set(bus, window);
      else pairings.delete(bus);
    },
    overview: () => [...byId.values()].map(overviewOf),
    reports: () => [...reports].map(([bus, { report }]) => ({ bus, report })),
    device: (bus, address) => wiresOf(bus).find((device) => device.address === address),
  };
}

function named(buses: ReadonlyMap<string, Bus>): string {
  if (buses.size === 0) return 'the configuration has none';
  return `the configuration has ${[...buses.keys()].join(', ')}`;
}

/** `path`: of a field of the body. */
export function notValid(path: string, message: string): GatehouseError {
  const details = [{ path, code: 'INVALID_VALUE', message }];
  return new GatehouseError('VALIDATION_FAILED', `Not valid: ${path}: ${message}.`, { details });
}
