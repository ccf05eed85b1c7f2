/**
 * Seeded campaigns against the relays of several modules on one wire: pulses, lost requests, lost, damaged and late replies,
 * noise, modules without power, adapters that are pulled, hosts that die. Whatever happened: a relay closes only for a pulse
 * that waits for its outcome, once and before its deadline; a pulse that is confirmed has closed it; one that says that
 * nothing was switched has not; and no relay stays closed.
 */
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { Answer } from '../bus/test-port.ts';
import type { DriverError } from '../driver.ts';
import { openTestDriver, type TestSite } from './test-driver.ts';
import { playModules } from './test-modules.ts';

const SEEDS = Array.from({ length: Number(process.env.DCON_CAMPAIGNS ?? 12) }, (_, index) => index + 1);
const STEPS = 30;
const RELAYS = 4;
const LONGEST_MS = 6_000;
const WATCHDOG_MS = 10_000;
/** By then a pulse is over, and what an earlier host left closed was opened, also by its watchdog. */
const QUIET_MS = 90_000;
const GIVEN = {
  1: { name: '7060', kind: 'host' },
  2: { name: '4068', kind: 'safety' },
  3: { name: '7060', kind: 'host' },
} as const;
/** A pulse waits for the one before it, and for its module to be brought up. */
const SETTLED_MS = 60_000;
const ADDRESSES = [1, 2, 3];

/** What the wire does to a request or its reply. */
type Fate = 'well' | 'unheard' | 'lost' | 'damaged' | 'noise' | 'late' | 'without power';

interface Pulse {
  address: number;
  relay: number;
  begunAt: number;
  deadline: number;
}

interface Closing {
  address: number;
  relay: number;
  at: number;
  /** The pulses that waited for their outcome. */
  pulses: Pulse[];
}

function openSite(random: () => number) {
  const clock = manualClock();
  const modules = playModules(clock, GIVEN);
  const fates = new Map<number, () => Fate>();
  const waiting = new Set<Pulse>();
  const closings: Closing[] = [];
  let isConnected = true;

  const outputs = () => new Map(ADDRESSES.map((address) => [address, modules.module(address).now().outputs]));

  function heard(request: Uint8Array): Answer {
    const before = outputs();
    const answer = modules.answer(request);
    for (const [address, now] of outputs())
      for (let relay = 0; relay < 8; relay += 1)
        if ((now & ~(before.get(address) ?? 0) & (1 << relay)) !== 0)
          closings.push({ address, relay, at: clock.monotonic(), pulses: [...waiting] });
    return answer;
  }

  function carried(answer: Answer, fate: Fate): Answer {
    if (!(answer instanceof Uint8Array)) return answer;
    if (fate === 'lost') return null;
    if (fate === 'damaged') {
      const at = Math.floor(random() * (answer.length - 1));
      return answer.with(at, (answer[at] ?? 0) ^ (1 + Math.floor(random() * 127)));
    }
    if (fate === 'noise') return Uint8Array.of(0x00, 0xff, ...answer);
    return fate === 'late' ? { bytes: answer, turnaroundMs: 90 + 400 * random() } : answer;
  }

  return {
    clock,
    modules,
    fates,
    waiting,
    closings,
    outputs,
    connect(is: boolean) {
      isConnected = is;
    },
    answer(request: Uint8Array): Answer {
      if (!isConnected) return null;
      const address = Number.parseInt(Buffer.from(request).toString('latin1').slice(1, 3), 16);
      const fate = fates.get(address)?.() ?? 'well';
      if (fate === 'unheard' || fate === 'without power') return null;
      return carried(heard(request), fate);
    },
  } satisfies TestSite & Record<string, unknown>;
}

const FAULTS: readonly Fate[] = ['unheard', 'lost', 'damaged', 'noise', 'late', 'late'];
/** Nothing was switched. */
const NOT_SWITCHED = ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED'];

async function campaign(seed: number) {
  const random = openRandom(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const site = openSite(random);
  const { clock } = site;
  const open = async () => {
    const opened = await openTestDriver(GIVEN, { site, options: { hostWatchdogMs: WATCHDOG_MS } });
    await clock.advance(2_000);
    return opened;
  };
  let host = await open();
  const faults: string[] = [];
  const outcomes = new Map<string, number>();
  const pending: Promise<void>[] = [];

  function judge(pulse: Pulse, code: string): void {
    outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
    const { address, relay, begunAt } = pulse;
    const isSame = (other: Pulse) => other.address === address && other.relay === relay;
    // Where two pulses of one relay waited, either may have closed it.
    const own = site.closings.filter(({ pulses }) => pulses.includes(pulse));
    const closed = own.filter((one) => isSame({ ...pulse, ...one })).length;
    const closedAlone = own.some(
      (one) => isSame({ ...pulse, ...one }) && one.pulses.filter(isSame).length === 1,
    );
    const what = `pulse of ${address}/${relay} at ${begunAt}`;
    const isOn = (((site.outputs().get(address) ?? 0) >> relay) & 1) === 1;
    if (code === 'confirmed' && closed === 0 && !isOn) faults.push(`${what}: confirmed, and never closed`);
    // Its watchdog may have opened it before it was read.
    const isSaidOpen = NOT_SWITCHED.includes(code) || (code === 'NO_REPLY' && isOn);
    if (isSaidOpen && closedAlone) faults.push(`${what}: ${code}, and it closed`);
  }

  function fire(): void {
    const begunAt = clock.monotonic();
    const address = ADDRESSES[draw(ADDRESSES.length)] ?? 1;
    const withinMs = 100 + draw(2_000);
    const pulse = { address, relay: draw(RELAYS), begunAt, deadline: begunAt + withinMs };
    const data = { hwId: `lobby-0${address}`, relay: pulse.relay, milliseconds: 200 + draw(LONGEST_MS) };
    site.waiting.add(pulse);
    const done = host
      .execute('pulse', data, { withinMs })
      .then(
        () => 'confirmed',
        (error: DriverError) => error.code ?? String(error),
      )
      .then((code) => {
        site.waiting.delete(pulse);
        judge(pulse, code);
      });
    pending.push(done);
  }

  async function reopen(): Promise<void> {
    await clock.advance(draw(8_000));
    site.connect(true);
    host = await open();
  }

  async function step(): Promise<void> {
    const kind = draw(9);
    if (kind < 4) fire();
    await clock.advance(draw(kind < 4 ? 700 : 2_500));
    if (kind === 4 || kind === 5) {
      const [share, fault] = [random(), FAULTS[draw(FAULTS.length)] ?? 'lost'];
      const address = ADDRESSES[draw(ADDRESSES.length)] ?? 1;
      const isMixed = draw(2) === 0;
      site.fates.set(address, () =>
        random() >= share ? 'well' : isMixed ? (FAULTS[draw(FAULTS.length)] ?? 'lost') : fault,
      );
    }
    if (kind === 6) site.fates.clear();
    if (kind === 7 && draw(3) === 0) site.fates.set(ADDRESSES[draw(3)] ?? 1, () => 'without power');
    if (kind === 8 && draw(2) === 0) {
      if (draw(2) === 0) {
        // kill -9: nothing that is said from now on reaches the wire.
        site.connect(false);
        await host[Symbol.asyncDispose]();
      } else {
        host.wire.lose();
        await clock.advance(100);
        await host[Symbol.asyncDispose]();
      }
      await reopen();
    }
  }
  for (let count = 0; count < STEPS; count += 1) await step();
  let left = pending.length;
  for (const one of pending) void one.then(() => left--);
  for (let waited = 0; left > 0 && waited < SETTLED_MS; waited += 100) await clock.advance(100);
  if (left > 0) faults.push(`${left} pulses have no outcome`);
  for (const { address, relay, at, pulses } of site.closings) {
    const asked = pulses.filter((one) => one.address === address && one.relay === relay);
    if (asked.length === 0) faults.push(`${address}/${relay} closed at ${at}, and no pulse waits`);
    else if (asked.every(({ deadline }) => at > deadline))
      faults.push(`${address}/${relay} closed late at ${at}`);
  }
  for (const pulse of new Set(site.closings.flatMap(({ pulses }) => pulses))) {
    const times = site.closings.filter(
      (one) => one.address === pulse.address && one.relay === pulse.relay && one.pulses.includes(pulse),
    );
    const others = new Set(
      times.flatMap(({ pulses }) =>
        pulses.filter((one) => one.relay === pulse.relay && one.address === pulse.address),
      ),
    );
    if (times.length > others.size)
      faults.push(`${pulse.address}/${pulse.relay} closed ${times.length} times for ${others.size}`);
  }
  site.fates.clear();
  return { host, site, faults, outcomes };
}

describe('relays of DCON modules', () => {
  it.each(SEEDS)('close for their pulses alone, and open again (seed %d)', async (seed) => {
    const { host, site, faults, outcomes } = await campaign(seed);
    await using _ = host;
    await site.clock.advance(QUIET_MS);
    expect(faults).toEqual([]);
    expect([...site.outputs().values()]).toEqual([0, 0, 0]);
    expect(outcomes.get('confirmed')).toBeGreaterThan(0);
  });

  it.each(SEEDS)('open when the gateway dies for good (seed %d)', async (seed) => {
    const { host, site, faults } = await campaign(seed + 1_000);
    site.connect(false);
    await host[Symbol.asyncDispose]();
    await site.clock.advance(LONGEST_MS + QUIET_MS);
    expect(faults).toEqual([]);
    expect([...site.outputs().values()]).toEqual([0, 0, 0]);
  });
});
