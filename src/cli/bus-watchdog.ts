/** `gatehouse bus watchdog-test`: proves that a relay opens when the gateway is dead. */
import { type Client, runJob } from './client.ts';
import { deviceNamed, plain } from './device.ts';
import { askFirst, CommandFailed, confirmed, EXIT, printJson, type Shell } from './shell.ts';

export interface WatchdogTestOptions {
  yes?: boolean;
  json?: boolean;
  /** What was seen in the test that has just ended; none is run. */
  opened?: string;
}

interface Tested {
  relay: number;
  waitedMilliseconds: number;
}

/** Throws CommandFailed when the relay stayed closed, or no one saw it open. */
export async function testWatchdog(
  device: string,
  { yes = false, json = false, opened }: WatchdogTestOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  if (opened !== undefined && opened !== 'yes' && opened !== 'no')
    throw new CommandFailed('--opened takes yes or no.', EXIT.usage);
  const { deviceId, hwId } = await deviceNamed(device, client);
  const path = `/network/rs485/${deviceId}/watchdog-test`;
  const name = plain(hwId);
  if (opened === undefined) {
    const question = `The relay of ${name} closes twice until its watchdog opens it. Is nothing connected to it, and can you see or hear it?`;
    await askFirst(shell, yes, question, 'Nothing was tested.');
    const waits = `The relay of ${name} is closed, and the device is asked nothing until its watchdog has run out; then the same again. Watch it: it must open by itself each time, a few seconds after it closed.\n`;
    const order = {
      path,
      body: { confirm: true },
      started: () => void (json || shell.stderr.write(waits)),
      cancelled: 'Cancelled: the relay was switched off, and nothing is proved.',
      failed: 'The watchdog is not proved, and the relay is not fired',
    };
    const tested = (await runJob(order, client, shell)) as unknown as Tested;
    if (json) printJson(shell, tested);
    const waited = (tested.waitedMilliseconds / 1_000).toFixed(1);
    if (!json)
      shell.stdout.write(
        `${name} showed relay ${tested.relay} open ${waited} s after the last request, twice. A device may open it only because it is asked: that is for you to say.\n`,
      );
    if (!shell.stdin.isTTY)
      throw new CommandFailed(
        `Not proved yet. If the relay opened by itself both times: gatehouse bus watchdog-test ${name} --opened yes`,
      );
  }
  const isSeen =
    opened === undefined
      ? await confirmed(shell, 'Did you see or hear the relay open by itself, both times?')
      : opened === 'yes';
  const order = {
    path,
    body: { openedByItself: isSeen },
    started: () => undefined,
    cancelled: 'Cancelled.',
    failed: 'What was seen could not be stored',
  };
  const stored = await runJob(order, client, shell);
  if (!isSeen)
    throw new CommandFailed(
      `The watchdog of ${name} is not proved, and its relay is not fired: compare its profile with the manual.`,
    );
  if (json) return printJson(shell, stored);
  shell.stdout.write(
    `The watchdog of ${name} is proved: its relay may be fired. Test again after each exchange of the device; a product without a serial number has to be tested again when it was away for 5 minutes.\n`,
  );
}
