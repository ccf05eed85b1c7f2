/** `gatehouse osdp pair`: gives a device its key, while somebody stands at it. */
import type { Client } from './client.ts';
import { CommandFailed, printJson, type Shell } from './shell.ts';

const LOOK_EVERY_MS = 500;

interface Job {
  id: string;
  status: 'running' | 'done' | 'failed' | 'cancelled';
  error: { code: string; message: string } | null;
  result: { hwId: string; deviceId: string | null } | null;
}

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
  const { stdout, stderr, stopping, clock } = shell;
  const path = `/network/rs485/buses/${encodeURIComponent(bus)}/pair`;
  let job = await client.call<Job>('POST', path, { address, seconds });
  if (!json)
    stderr.write(
      `The window is open for ${seconds} s: put the device at address ${address} into its install mode.\n`,
    );
  while (job.status === 'running') {
    if (stopping.aborted) {
      await client.call('DELETE', `/jobs/${job.id}`);
      throw new CommandFailed('The window is closed. Whether the device has its key is not known.');
    }
    await clock.sleep(LOOK_EVERY_MS, stopping).catch(() => {});
    job = await client.call<Job>('GET', `/jobs/${job.id}`);
  }
  if (job.status !== 'done' || !job.result)
    throw new CommandFailed(`The device is not paired: ${job.error?.message ?? job.status}`);
  const { hwId } = job.result;
  if (json) printJson(shell, job.result);
  else
    stdout.write(
      `${hwId.replaceAll(/[^\x20-\x7e]/g, '?')} has its key, and is spoken to in its secure channel.\n`,
    );
}
