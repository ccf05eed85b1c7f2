/**
 * Zigbee coordinators by the name of their USB adapter in /dev/serial/by-id. The names are those of the fingerprints of
 * zigbee-herdsman 10.9.5 (MIT); nothing is sent to an adapter to find out.
 */
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { printJson, type Shell, table } from './shell.ts';

export interface Coordinator {
  port: string;
  /** As in the options of a link; null: one that is not supported. */
  adapter: 'zstack' | 'ember' | null;
  baudRate: number;
  rtscts: boolean;
}

const BY_ID = '/dev/serial/by-id';
const DEFAULTS = { baudRate: 115_200, rtscts: false };

/** The first that fits. */
const KNOWN: readonly (readonly [name: RegExp, what: Omit<Coordinator, 'port'>])[] = [
  [/conbee|raspbee/i, { ...DEFAULTS, adapter: null }],
  [/Nabu_Casa_ZBT-2/i, { adapter: 'ember', baudRate: 460_800, rtscts: true }],
  [/Nabu_Casa_SkyConnect|Nabu_Casa.*_ZBT-1/i, { ...DEFAULTS, adapter: 'ember', rtscts: true }],
  [/slzb-07mg24|slzb-07_/i, { ...DEFAULTS, adapter: 'ember', rtscts: true }],
  [/slzb-06m/i, { ...DEFAULTS, adapter: 'ember' }],
  [/sonoff.*(plus_v2_|max|plus_mg24|lite_mg21)/i, { ...DEFAULTS, adapter: 'ember' }],
  [/sonoff.*plus/i, { ...DEFAULTS, adapter: 'zstack' }],
  [/electrolama|slae\.sh_cc2652|slzb-0[67]p\d+|tubeszb|zigstar/i, { ...DEFAULTS, adapter: 'zstack' }],
  [/texas_instruments|cc2652|cc1352|cc2674|zstack/i, { ...DEFAULTS, adapter: 'zstack' }],
];

/** Names that survive replugging. */
export function serialAdapters(): string[] {
  return existsSync(BY_ID) ? readdirSync(BY_ID).map((name) => join(BY_ID, name)) : [];
}

/** Undefined: its name says nothing of a coordinator. */
export function coordinatorAt(port: string): Coordinator | undefined {
  const found = KNOWN.find(([name]) => name.test(basename(port)));
  return found && { port, ...found[1] };
}

/** Options of a link to it, but for what is so by default. */
export function coordinatorOptions(port: string): Partial<Omit<Coordinator, 'port'>> {
  const found = coordinatorAt(port);
  if (found?.adapter !== 'ember') return {};
  const { adapter, baudRate, rtscts } = found;
  return {
    adapter,
    ...(baudRate !== DEFAULTS.baudRate && { baudRate }),
    ...(rtscts !== DEFAULTS.rtscts && { rtscts }),
  };
}

export function probeCoordinators(
  { json = false }: { json?: boolean },
  shell: Shell,
  adapters = serialAdapters(),
): void {
  const found = adapters.flatMap((port) => coordinatorAt(port) ?? []);
  if (json) {
    printJson(shell, found);
    return;
  }
  if (found.length === 0) {
    shell.stdout.write(
      'No serial adapter here has the name of a Zigbee coordinator. docs/hardware.md says which `adapter` a product takes.\n',
    );
    return;
  }
  const rows = found.map(({ port, adapter, baudRate, rtscts }) => [
    adapter ?? 'not supported',
    `${baudRate}`,
    rtscts ? 'true' : 'false',
    port,
  ]);
  shell.stdout.write(table([['ADAPTER', 'BAUDRATE', 'RTSCTS', 'PORT'], ...rows]));
}
