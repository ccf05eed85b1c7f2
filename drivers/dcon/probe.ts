/** Asks addresses who is there (drivers/contract/rs485.ts `probe`). */
import type { Order } from '../bus/exchange.ts';
import { ASKED_MAX, type Outstanding } from '../bus/reply-confirmation.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Probed } from '../contract/rs485.ts';
import type { ProbeAsking } from '../rs485/link.ts';
import { openTally } from '../rs485/prober.ts';
import type { Framing } from './frame.ts';
import { firmwareVersion, moduleName, type Question } from './messages.ts';
import { moduleTypeOf } from './module-types.ts';
import { exchangeOf } from './wire.ts';

/** No one there: more questions would only cost time. */
const REPEATS_UNHEARD_MAX = 2;
/** How long one question may wait for its turn. */
const TURN_WAIT_MS = 2_000;
/**
 * `!112200` is what module 11 says that is called 2200, and what any module says to $AA6 (outputs 11, inputs 22): such a name
 * counts while no late answer can come. Each counts as read twice.
 */
const LIKE_PINS = /^[0-9A-F]{2,}00$/;

export interface ProbeOptions extends Pick<ProbeAsking, 'bus' | 'signal'> {
  outstanding: Outstanding;
  framing: Framing;
  clock: Clock;
  hwIdOf(address: number): string;
}

export async function probeAddress(
  address: number,
  repeats: number,
  { bus, outstanding, framing, clock, signal, hwIdOf }: ProbeOptions,
): Promise<Probed['results'][number]> {
  const tally = openTally();
  /** undefined: no sound answer. */
  const ask = async <Reply>(question: Question<Reply>): Promise<Reply | undefined> => {
    const order: Order = {
      class: 'settings',
      deadline: clock.monotonic() + TURN_WAIT_MS,
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
  let last: string | undefined;
  const isAskedMore = () => last !== undefined && name === undefined;
  for (let asked = 0; asked < (isAskedMore() ? Math.max(repeats, ASKED_MAX) : repeats); asked += 1) {
    if (asked >= REPEATS_UNHEARD_MAX && !tally.hasHeard()) break;
    const reported = await ask(moduleName(address));
    if (reported === undefined || (LIKE_PINS.test(reported) && outstanding() > 0)) continue;
    if (reported === last) name = reported;
    last = reported;
  }
  const version = name === undefined ? undefined : await ask(firmwareVersion(address));
  const identity = name === undefined ? null : identityOf(hwIdOf(address), name, version ?? null);
  return { address, counters: tally.counters, turnaroundMs: tally.turnaround(), identity };
}

function identityOf(hwId: string, name: string, version: string | null) {
  const product = moduleTypeOf(name)?.product ?? null;
  return { hwId, type: product ?? name, version, profile: product };
}
