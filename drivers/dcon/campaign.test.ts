/**
 * Seeded campaigns against the relays of several modules on one wire: pulses, lost requests, lost, damaged and late replies,
 * noise, modules without power, adapters that are pulled, hosts that die. Whatever happened: a relay closes only for a pulse
 * that waits for its outcome, once and before its deadline; a pulse that is confirmed has closed it; one that says that
 * nothing was switched has not; no relay stays closed; and a relay that is switched off opens when its pulse is over, whatever is sent to its
 * module at that time.
 */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { openTestDriver, type TestSite } from '../../test/drivers/dcon/driver.ts';
import { playModules } from '../../test/drivers/dcon/modules.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { DriverError } from '../contract/driver.ts';

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

/** A request that leaves within its deadline is heard so much later: eleven characters at 9600 baud. */
const REQUEST_MS = 12;

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
    cutPower: (address: number) => modules.module(address).restart(),
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
const NOT_SWITCHED = ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED', 'NO_REPLY'];

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
    if (NOT_SWITCHED.includes(code) && closedAlone) faults.push(`${what}: ${code}, and it closed`);
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
    if (kind === 7 && draw(2) === 0) {
      fire();
      await clock.advance(draw(120));
      site.cutPower(ADDRESSES[draw(ADDRESSES.length)] ?? 1);
    }
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
    else if (asked.every(({ deadline }) => at > deadline + REQUEST_MS))
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

const BAUD_RATES = [1_200, 2_400, 9_600];
/** What else is said to the module, or to others, when the pulse is over. */
const MEANWHILE = ['nothing', 'a scan', 'a pulse without answers', 'a restart'] as const;
/** An exchange that is under way, also one without an answer, and the request that opens the relay. */
const opensWithinMs = (baudRate: number) => 250 + (50 * 10_000) / baudRate;

/** The answers to what closes a relay are lost, so that its module is brought up again during the pulse. */
async function broughtUpAgain(seed: number) {
  const random = openRandom(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const site = openSite(random);
  const { clock, modules } = site;
  const baudRate = BAUD_RATES[draw(BAUD_RATES.length)] ?? 9_600;
  const host = await openTestDriver(GIVEN, { site, options: { baudRate, hostWatchdogMs: WATCHDOG_MS } });
  await clock.advance(30_000);
  const [address, milliseconds] = [1 + draw(ADDRESSES.length), 300 + draw(4_000)];
  const [lost, isUnread, meanwhile] = [1 + draw(3), draw(3) === 0, MEANWHILE[draw(MEANWHILE.length)]];
  const module = modules.module(address);
  const on = `#0${address}1001`;
  /** When ON was sent, and when the relay closed and opened. */
  const sent: number[] = [];
  const edges: { at: number; isClosed: boolean }[] = [];
  let isOver = false;
  const relay = () => (module.now().outputs & 1) === 1;
  const { answer } = site;
  site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1').slice(0, -3);
    const before = relay();
    const answered = answer(request);
    if (relay() !== before) edges.push({ at: clock.monotonic(), isClosed: !before });
    if (text === on) sent.push(clock.monotonic());
    const isMute =
      (text === on && sent.length <= lost) ||
      text === `#0${address}1101` ||
      (isUnread && isOver && text === `$0${address}6`);
    return isMute ? null : answered;
  };
  const fire = (output: number) =>
    host
      .execute('pulse', { hwId: `lobby-0${address}`, relay: output, milliseconds }, { withinMs: 4_000 })
      .then(
        () => 'confirmed',
        (error: DriverError) => error.code,
      );
  const outcome = await host.settled(fire(0), 20_000);
  isOver = true;
  // The first one was carried out, and its answer lost.
  const dueAt = (sent[0] ?? 0) + milliseconds;
  await clock.advance(Math.max(0, dueAt - clock.monotonic() - draw(500)));
  if (meanwhile === 'a scan')
    host
      .execute('probe', { addresses: [0x20, 0x21, 0x22, 0x23, 0x24, 0x25], repeats: 3 })
      .catch(() => undefined);
  if (meanwhile === 'a pulse without answers') void fire(1);
  if (meanwhile === 'a restart') modules.module(1 + (address % ADDRESSES.length)).restart();
  await clock.advance(10_000);
  const fed = host.sentAt('~**');
  return { host, baudRate, milliseconds, outcome, edges, dueAt, fed };
}

describe('a relay of a DCON module that is brought up again', () => {
  it.each(SEEDS)('opens when its pulse is over (seed %d)', async (seed) => {
    const { host, ...seen } = await broughtUpAgain(seed);
    await using _ = host;
    const [closed, opened, ...more] = seen.edges;
    expect(more).toEqual([]);
    expect(seen.outcome).toMatch(/confirmed|OUTCOME_UNKNOWN/);
    const lasts = (opened?.at ?? Number.POSITIVE_INFINITY) - (closed?.at ?? 0);
    if (seen.outcome === 'confirmed') expect(lasts).toBeGreaterThanOrEqual(seen.milliseconds);
    expect(opened?.at).toBeLessThan(seen.dueAt + opensWithinMs(seen.baudRate));
    expect(seen.fed.filter((at) => at > seen.dueAt && at < (opened?.at ?? 0))).toEqual([]);
  });
});
