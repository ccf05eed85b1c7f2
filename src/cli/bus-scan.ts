/** `gatehouse bus scan`: who is on a bus, and with which baud rate and parity. */
import type { ScannedAddress } from '../resources/rs485/bus-findings.ts';
import { type Client, runJob } from './client.ts';
import { printJson, type Shell, table } from './shell.ts';

export interface ScanOptions {
  from?: number;
  to?: number;
  detect?: boolean;
  baudRates?: number[];
  parities?: string[];
  json?: boolean;
}

interface Setting {
  baudRate: number;
  parity: string;
  stopBits: number;
  configured: boolean;
  answered: number[];
}

interface Scanned {
  addresses: ScannedAddress[];
  /** Where other settings were tried. */
  settings?: Setting[];
  advice?: string;
}

export async function scanBus(
  bus: string,
  { json = false, from, to, detect, baudRates, parities }: ScanOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const isSearch = Boolean(detect || baudRates || parities);
  const warning = `Trying other baud rates on ${bus}: its devices are read less often until this ends.\n`;
  const order = {
    path: '/network/rs485/scan',
    body: { bus, from, to, detect, baudRates, parities },
    started: () => void (isSearch && !json && shell.stderr.write(warning)),
    cancelled: 'The scan was cancelled.',
    failed: 'The scan failed',
  };
  const result = (await runJob(order, client, shell)) as Scanned;
  if (json) return printJson(shell, result);
  const { stdout } = shell;
  const answering = result.addresses.filter(({ answered }) => answered);
  stdout.write(
    answering.length > 0
      ? table(devicesOf(answering))
      : `No one answers with the settings of the configuration${isSearch ? '' : `: gatehouse bus scan ${bus} --detect tries others`}.\n`,
  );
  if (result.settings) stdout.write(`\n${table(settingsOf(result.settings))}\n${result.advice}\n`);
}

function devicesOf(addresses: readonly ScannedAddress[]): string[][] {
  // Whatever a device says of itself ends up on a terminal.
  const plain = (text: string | null | undefined) => (text ?? '-').replaceAll(/[^\x20-\x7e]/g, '?');
  return [
    ['ADDRESS', 'DEVICE', 'TYPE', ''],
    ...addresses.map(({ address, identity, isNew }) => [
      String(address),
      plain(identity?.hwId),
      plain(identity?.type),
      isNew ? 'new' : '',
    ]),
  ];
}

function settingsOf(settings: readonly Setting[]): string[][] {
  return [
    ['BAUD RATE', 'PARITY', 'ANSWERED', ''],
    ...settings.map(({ baudRate, parity, answered, configured }) => [
      String(baudRate),
      parity,
      answered.join(' ') || 'none',
      configured ? 'configured' : '',
    ]),
  ];
}
