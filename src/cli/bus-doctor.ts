/** `gatehouse bus status` and `gatehouse bus doctor`: what a technician with a ladder wants to know of a bus. */
import { busFindings, type Finding, type ScannedAddress } from '../resources/rs485/bus-findings.ts';
import type { BusOverview } from '../resources/rs485/bus-schema.ts';
import { silentOf } from './absent.ts';
import { type Client, runJob } from './client.ts';
import { shownFindings } from './findings.ts';
import { CommandFailed, EXIT, printJson, type Shell, table } from './shell.ts';

const overview = async (client: Client) =>
  (await client.call<{ items: BusOverview[] }>('GET', '/network/rs485/buses')).items;

export async function printBuses(options: { json?: boolean }, client: Client, shell: Shell): Promise<void> {
  const buses = await overview(client);
  if (options.json) return printJson(shell, buses);
  const rows = buses.map(({ id, protocol, port, up, utilisation, pollsPerSecond, devices }) => [
    id,
    protocol,
    port ?? '-',
    up ? 'up' : 'down',
    utilisation === null ? '-' : `${Math.round(100 * utilisation)} %`,
    pollsPerSecond === null ? '-' : pollsPerSecond.toFixed(1),
    `${devices.filter(({ alive }) => alive).length} of ${devices.length}`,
  ]);
  const head = ['BUS', 'PROTOCOL', 'PORT', 'LINK', 'BUSY', 'POLLS/S', 'ALIVE'];
  shell.stdout.write(buses.length === 0 ? 'The configuration has no bus.\n' : table([head, ...rows]));
  for (const { id, up, lastError, warnings, devices } of buses) {
    const quiet = up ? silentOf(devices) : [];
    if (quiet.length > 0) shell.stdout.write(`${id}: silent at ${quiet.join(', ')}\n`);
    if (!up && lastError !== null) shell.stdout.write(`${id}: ${lastError}\n`);
    for (const { message } of warnings) shell.stdout.write(`${id}: ${message}\n`);
  }
}

export interface DoctorOptions {
  from?: number;
  to?: number;
  repeats?: number;
  json?: boolean;
}

/** Asks who is on a bus and says what to check, and creates no device; returns whether there is nothing bad. */
export async function examineBus(
  id: string,
  { from, to, repeats = 20, json = false }: DoctorOptions,
  client: Client,
  shell: Shell,
): Promise<boolean> {
  const before = await busOf(id, client);
  const body = {
    bus: id,
    repeats,
    record: false,
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
  const { addresses, findings } = before.up ? await scan(body, client, shell) : downBus(before);
  const bus = await busOf(id, client);
  if (json) printJson(shell, { bus, addresses, findings });
  else {
    if (addresses.length > 0) shell.stdout.write(`${table(rowsOf(addresses))}\n`);
    shell.stdout.write(shownFindings(findings, shell.stdout));
  }
  return findings.every(({ severity }) => severity !== 'bad');
}

interface Examined {
  addresses: ScannedAddress[];
  findings: Finding[];
}

const downBus = (bus: BusOverview): Examined => ({
  addresses: [],
  findings: busFindings({ ...bus, lateAddresses: [] }, []),
});

async function busOf(id: string, client: Client): Promise<BusOverview> {
  const buses = await overview(client);
  const bus = buses.find((one) => one.id === id);
  if (bus) return bus;
  const names = buses.map((one) => one.id).join(', ');
  throw new CommandFailed(
    buses.length === 0
      ? 'The configuration has no bus: see links in it.'
      : `There is no bus ${id}; the configuration has ${names}.`,
    EXIT.usage,
  );
}

async function scan(body: object, client: Client, shell: Shell): Promise<Examined> {
  const said = { cancelled: 'The scan was cancelled.', failed: 'The scan failed' };
  return (await runJob({ path: '/network/rs485/scan', body, ...said }, client, shell)) as Examined;
}

const COUNTERS = ['replies', 'timeouts', 'crc', 'framing', 'refusals', 'collisions', 'late'] as const;

function rowsOf(addresses: readonly ScannedAddress[]): string[][] {
  return [
    ['ADDRESS', 'DEVICE', 'MS', ...COUNTERS.map((name) => name.toUpperCase()), ''],
    ...addresses.map(({ address, identity, turnaroundMs, counters, isNew }) => [
      String(address),
      // Whatever a device says of itself ends up on a terminal.
      (identity?.hwId ?? '-').replaceAll(/[^\x20-\x7e]/g, '?'),
      turnaroundMs === null ? '-' : `${turnaroundMs.min}–${turnaroundMs.max}`,
      ...COUNTERS.map((name) => String(counters[name])),
      isNew ? 'new' : '',
    ]),
  ];
}
