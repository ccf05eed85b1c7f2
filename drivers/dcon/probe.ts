/** Asks addresses who is there (drivers/rs485.ts `probe`). */
import type { Bus } from '../bus/bus.ts';
import type { Order } from '../bus/exchange.ts';
import { type Clock, DriverError } from '../driver.ts';
import { openTally } from '../rs485/tally.ts';
import type { Probe, Probed } from '../rs485.ts';
import type { Framing } from './frame.ts';
import { firmwareVersion, moduleName, type Question } from './messages.ts';
import { moduleTypeOf } from './module-types.ts';
import { exchangeOf } from './wire.ts';

/** Nobody there: more questions would only cost time. */
const REPEATS_UNHEARD_MAX = 2;
/** How long one question may wait for its turn. */
const PATIENCE_MS = 2_000;

export interface ProbeOptions {
  bus: Pick<Bus, 'exchange'>;
  framing: Framing;
  clock: Clock;
  hwIdOf(address: number): string;
}

export async function probeAddresses(
  { addresses, repeats }: Probe,
  options: ProbeOptions,
  signal: AbortSignal,
): Promise<Probed> {
  const results: Probed['results'] = [];
  for (const address of addresses) results.push(await probeAddress(address, repeats, options, signal));
  return { results };
}

async function probeAddress(
  address: number,
  repeats: number,
  { bus, framing, clock, hwIdOf }: ProbeOptions,
  signal: AbortSignal,
): Promise<Probed['results'][number]> {
  const tally = openTally();
  /** undefined: no sound answer. */
  const ask = async <Reply>(question: Question<Reply>): Promise<Reply | undefined> => {
    const order: Order = {
      class: 'settings',
      deadline: clock.monotonic() + PATIENCE_MS,
      attempts: 1,
      insists: true,
      observe: tally.observe,
    };
    try {
      return await bus.exchange(exchangeOf(question, framing), order, signal);
    } catch (error) {
      if (!(error instanceof DriverError) || error.code === 'LINK_LOST') throw error;
      return undefined;
    }
  };
  let name: string | undefined;
  for (let asked = 0; asked < repeats; asked += 1) {
    if (asked >= REPEATS_UNHEARD_MAX && !tally.hasHeard()) break;
    name = (await ask(moduleName(address))) ?? name;
  }
  const version = name === undefined ? undefined : await ask(firmwareVersion(address));
  const identity = name === undefined ? null : identityOf(hwIdOf(address), name, version ?? null);
  return { address, counters: tally.counters, turnaroundMs: tally.turnaround(), identity };
}

function identityOf(hwId: string, name: string, version: string | null) {
  const product = moduleTypeOf(name)?.product ?? null;
  return { hwId, type: product ?? name, version, profile: product };
}
