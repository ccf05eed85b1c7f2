/** `gatehouse bus watchdog-test`: proves that a relay opens when the gateway is dead. */
import { type Client, runJob } from './client.ts';
import { deviceNamed, plain } from './device.ts';
import { askFirst, printJson, type Shell } from './shell.ts';

export interface WatchdogTestOptions {
  yes?: boolean;
  json?: boolean;
}

interface Tested {
  relay: number;
  waitedMilliseconds: number;
}

/** Throws CommandFailed when the relay stayed closed. */
export async function testWatchdog(
  device: string,
  { yes = false, json = false }: WatchdogTestOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const { deviceId, hwId } = await deviceNamed(device, client);
  const question = `The relay of ${plain(hwId)} closes until its watchdog opens it. Is nothing connected to it?`;
  await askFirst(shell, yes, question, 'Nothing was tested.');
  const waits = `The relay of ${plain(hwId)} is closed, and the device is asked nothing until its watchdog has run out.\n`;
  const order = {
    path: `/network/rs485/${deviceId}/watchdog-test`,
    body: { confirm: true },
    started: () => void (json || shell.stderr.write(waits)),
    cancelled: 'Cancelled: the relay was told to open, and nothing is proved.',
    failed: 'The watchdog is not proved, and the relay is not fired',
  };
  const result = (await runJob(order, client, shell)) as unknown as Tested;
  if (json) return printJson(shell, result);
  const { relay, waitedMilliseconds } = result;
  shell.stdout.write(
    `${plain(hwId)} opened relay ${relay} by itself, seen ${(waitedMilliseconds / 1_000).toFixed(1)} s after the last request: it may be fired.\n`,
  );
}
