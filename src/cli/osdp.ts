/** `gatehouse osdp pair`: gives a device its key, while somebody stands at it. */
import { type Client, runJob } from './client.ts';
import { printJson, type Shell } from './shell.ts';

export interface PairOptions {
  seconds?: number;
  json?: boolean;
}

/** Runs the job to its end; a signal closes the window. */
export async function pairDevice(
  bus: string,
  address: number,
  { seconds = 60, json = false }: PairOptions,
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
  else
    stdout.write(
      `${result.hwId.replaceAll(/[^\x20-\x7e]/g, '?')} has its key, and is spoken to in its secure channel.\n`,
    );
}
