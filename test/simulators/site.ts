/** A simulated site: encoders registered with a gateway, each in a process of its own, which tests may kill. */
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Child, openChild } from './child.ts';
import { type PhysicalRecord, readPhysicalLog } from './encoder/cards.ts';
import type { Command, EncoderEvent, Timings } from './encoder/commands.ts';
import type { Device } from './encoder/factory.ts';
import type { Bundle } from './encoder/registration.ts';

/** An encoder that may be running or not; its journal and its cards stay in its directory. */
export interface SiteEncoder extends AsyncDisposable {
  readonly id: string;
  readonly device: Device;
  readonly bundle: Bundle;
  /** The running process. Throws when there is none. */
  readonly process: Child<EncoderEvent>;
  /** Called with everything the encoder reports, in all its lives. */
  onMessage: (event: EncoderEvent) => void;
  start(options?: { clockOffsetDays?: number }): void;
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>;
  /** Ends it and takes its journal away, as a broken memory does. */
  loseJournal(): Promise<void>;
  /** New credentials, used from the next start on. */
  replaceBundle(bundle: Bundle): Promise<void>;
  command(command: Command): void;
  physicalLog(): PhysicalRecord[];
}

export interface SiteEncoderOptions {
  /** Made when it is not there; keeps bundle, journal and cards. */
  directory: string;
  bundle: Bundle;
  device: Device;
  timings?: Partial<Timings>;
  /** Whether the clerk never runs out of blank cards; true when absent. */
  endlessCards?: boolean;
}

const MAIN = join(import.meta.dirname, 'encoder', 'main.ts');

/** Prepares an encoder; `start` starts it. */
export async function openSiteEncoder(options: SiteEncoderOptions): Promise<SiteEncoder> {
  const { directory, device, timings = {}, endlessCards = true } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const bundleFile = join(directory, 'bundle.json');
  const cardsFile = join(directory, 'cards.jsonl');
  let bundle = options.bundle;
  let child: Child<EncoderEvent> | undefined;
  await replaceBundle(bundle);

  async function replaceBundle(next: Bundle): Promise<void> {
    bundle = next;
    await writeFile(bundleFile, JSON.stringify(next, null, 2), { mode: 0o600 });
  }
  function running(): Child<EncoderEvent> {
    if (!child) throw new Error(`encoder ${bundle.encoderId} is not running`);
    return child;
  }
  async function kill(): Promise<void> {
    child?.kill('SIGKILL');
    await child?.exited;
    child = undefined;
  }

  const encoder: SiteEncoder = {
    id: bundle.encoderId,
    device,
    get bundle() {
      return bundle;
    },
    get process() {
      return running();
    },
    onMessage: () => undefined,
    start({ clockOffsetDays = 0 } = {}) {
      child = openChild<EncoderEvent>({
        args: [
          MAIN,
          `--state=${directory}`,
          `--bundle=${bundleFile}`,
          `--timings=${JSON.stringify(timings)}`,
          `--clock-offset-days=${clockOffsetDays}`,
          ...(endlessCards ? [] : ['--no-cards']),
        ],
        onMessage: (event) => encoder.onMessage(event),
      });
    },
    kill,
    async loseJournal() {
      await kill();
      await rm(join(directory, 'journal.jsonl'), { force: true });
    },
    replaceBundle,
    command: (command) => running().say(command),
    physicalLog: () => (existsSync(cardsFile) ? readPhysicalLog(cardsFile) : []),
    async [Symbol.asyncDispose]() {
      await child?.[Symbol.asyncDispose]();
      child = undefined;
    },
  };
  return encoder;
}
