/**
 * `npm run demo`: Gatehouse with a simulated site around it. Starts the daemon, a notification broker, two encoders,
 * buses and Zigbee gateways, registers the encoders, writes three keys while every card shows its progress and forty
 * locks join, and stays up to be tried.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from './demo/flags.ts';
import { openScreen } from './demo/screen.ts';

const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

const screen = openScreen(process.stdout);
const interruption = Promise.withResolvers<void>();
const pids: number[] = [];
let isInterrupted = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
// Nothing is left to do after it; a socket that lingers somewhere must not keep the terminal.
process.exit(await main());

/** The first one ends everything in order, the second at once. */
function onSignal(): void {
  if (isInterrupted) {
    for (const pid of pids) killNow(pid);
    process.exit(EXIT.interrupted);
  }
  isInterrupted = true;
  screen.print('Ending …');
  interruption.resolve();
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}

async function main(): Promise<number> {
  const { readFlags, USAGE, UsageError } = await import('./demo/flags.ts');
  try {
    const flags = await readFlags(process.argv.slice(2));
    if (flags) return await demo(flags);
    screen.print(USAGE);
    return EXIT.ok;
  } catch (error) {
    screen.fail(error instanceof Error ? error.message : String(error));
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

/** Keeps a temporary folder only when something went wrong in it. */
async function demo(flags: Flags): Promise<number> {
  try {
    const code = await run(flags);
    if (flags.isTemporary) await rm(flags.directory, { recursive: true, force: true });
    return code;
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    const log = join(flags.directory, 'gatehouse.log');
    throw new Error(existsSync(log) ? `${message}\nThe log is ${log}` : message, { cause: error });
  }
}

async function run({ directory, ...flags }: Flags): Promise<number> {
  const working = screen.working('Starting a simulated site: encoders, buses, Zigbee locks …');
  // They load in a second, in which something is to be seen already.
  const { demoFile, guide, writeDemoFile } = await import('./demo/guide.ts');
  const { describe, openSite, unexpectedEnd, writeThreeKeys } = await import('./demo/simulated-site.ts');
  await rm(demoFile(directory), { force: true });
  await using stack = new AsyncDisposableStack();
  const gone = interruption.promise.then(() => undefined);
  const opening = openSite({ directory, ...flags }, screen, stack, (pid) => pids.push(pid));
  const site = await Promise.race([opening, gone]).finally(() => working[Symbol.dispose]());
  if (!site) return EXIT.interrupted;
  const showing = Promise.race([writeThreeKeys(site, screen).then(() => site.doors), unexpectedEnd(site)]);
  const doors = await Promise.race([showing, gone]);
  if (!doors) return EXIT.interrupted;

  const description = await describe(site, doors);
  await writeDemoFile(directory, description);
  if (flags.once) {
    screen.done('Three keys are written and their events have arrived upstream');
    return EXIT.ok;
  }
  screen.print(guide(directory, description));
  await Promise.race([gone, unexpectedEnd(site)]);
  return EXIT.ok;
}
