/** `gatehouse osdp`: keys, firmware and addresses of OSDP devices. */
import { type Client, runJob } from './client.ts';
import { deviceNamed, plain } from './device.ts';
import { askFirst, CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

/** While somebody stands at it. Runs the job to its end; a signal closes the window. */
export async function pairDevice(
  bus: string,
  address: number,
  { seconds = 60, json = false }: { seconds?: number; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const { stdout, stderr } = shell;
  const open = `The window is open for ${seconds} s: put the device at address ${address} into its install mode.\n`;
  const order = {
    path: `/network/rs485/buses/${encodeURIComponent(bus)}/pair`,
    body: { address, seconds },
    started: () => void (json || stderr.write(open)),
    cancelled: 'The window is closed. Whether the device has its key is not known.',
    failed: 'The device is not paired',
  };
  const result = (await runJob(order, client, shell)) as { hwId: string; deviceId: string | null };
  if (json) printJson(shell, result);
  else stdout.write(`${plain(result.hwId)} has its key, and is spoken to in its secure channel.\n`);
}

/** `device` is a deviceId, or an hwId. A signal cancels it. */
export async function updateFirmware(
  device: string,
  file: string,
  { json = false }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const { deviceId, hwId } = await deviceNamed(device, client);
  const order = {
    path: `/network/rs485/${deviceId}/firmware`,
    body: { file },
    started: () => void (json || shell.stderr.write(`${plain(hwId)} is given ${file}. Ctrl-C ends it.\n`)),
    cancelled: 'Cancelled: the device is asked to forget what it has of the file.',
    failed: 'The device has no new firmware',
  };
  const result = (await runJob(order, client, shell)) as { version: string; platformVersion: string | null };
  if (json) return printJson(shell, result);
  const version = plain(result.platformVersion ?? 'no version');
  const isNew = result.platformVersion === result.version;
  shell.stdout.write(
    isNew
      ? `${plain(hwId)} runs ${version}.\n`
      : `${plain(hwId)} has all of the file, and reports ${version}, not ${result.version}: it may want a restart.\n`,
  );
}

export interface CommunicationOptions {
  address?: number;
  baud?: number;
  yes?: boolean;
  json?: boolean;
}

/** False: the device is not where it was to be. */
export async function readdressDevice(
  device: string,
  { address, baud, yes = false, json = false }: CommunicationOptions,
  client: Client,
  shell: Shell,
): Promise<boolean> {
  if (address === undefined && baud === undefined)
    throw new CommandFailed('Say what to change: --address, --baud, or both.', EXIT.usage);
  const { deviceId, hwId } = await deviceNamed(device, client);
  const wish = [address !== undefined && `address ${address}`, baud !== undefined && `${baud} baud`];
  const question = `Give ${plain(hwId)} ${wish.filter(Boolean).join(' and ')}? It is lost to this bus if that is wrong.`;
  await askFirst(shell, yes, question, 'Nothing was changed.');
  const order = {
    path: `/network/rs485/${deviceId}/communication`,
    body: {
      ...(address !== undefined && { address }),
      ...(baud !== undefined && { baudRate: baud }),
      confirm: true,
    },
    cancelled: 'Cancelled. Whether the device has taken it is not known: scan the bus.',
    failed: 'The device is as it was, or not heard',
  };
  const result = (await runJob(order, client, shell)) as Moved;
  if (json) printJson(shell, result);
  else shell.stdout.write(`${plain(hwId)}: ${outcomeText(result)}\n`);
  return result.outcome === 'moved' || result.outcome === 'left';
}

interface Moved {
  bus: string;
  from: number;
  address: number;
  baudRate: number;
  outcome: 'moved' | 'stayed' | 'left' | 'lost';
}

function outcomeText({ bus, from, address, baudRate, outcome }: Moved): string {
  switch (outcome) {
    case 'moved':
      return from === address
        ? `answers at address ${address}.`
        : `answers at address ${address}. Where the configuration names ${from}, change that too.`;
    case 'stayed':
      return `has not taken it, and answers at address ${address}.`;
    case 'left':
      return `has ${baudRate} baud now, at address ${address}. It is heard again once bus ${bus} has that in the configuration.`;
    case 'lost':
      return `answers at neither address. Look at its power, then scan: gatehouse bus scan ${bus}`;
  }
}
