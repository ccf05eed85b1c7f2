/**
 * Seeded campaigns against the relays of several readers on one wire: pulses, lost, damaged and late requests and replies,
 * readers whose power is cut, adapters that are pulled, hosts that die. Whatever happened: a relay is fired only for a pulse
 * that waits for its outcome, once and before its deadline; a pulse that is confirmed has fired it; one that says that
 * nothing was fired has not; and nothing but the way into a secure channel goes over the wire in clear text.
 */
import { describe, expect, it } from 'vitest';
import { openWireLink } from '../../test/drivers/osdp/wire.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { rechecked, writeReply } from '../../test/simulators/osdp/wire.ts';
import type { DriverEvent } from '../contract/driver.ts';

const SEEDS = Array.from({ length: Number(process.env.OSDP_CAMPAIGNS ?? 12) }, (_, index) => index + 1);
const STEPS = 30;
const ADDRESSES = [0, 1];
const RELAYS = 4;
const LONGEST_MS = 6_000;
/** A pulse waits for the one before it, and for the session. */
const SETTLED_MS = 60_000;
/** By then every session stands again, also of a device that was left alone. */
const QUIET_MS = 40_000;
const POLL_MS = 100;
/** More than turnaroundMaxMs at the least; longer than many poll intervals at the most. */
const LATE_MIN_MS = 210;
const LATE_MAX_MS = [300, 3_000];
const OUT = 0x68;
const SOM = 0x53;
/** ID and CAP (annex D.1: what is asked before a secure channel stands). */
const IN_CLEAR = [0x61, 0x62];
/** SCS_11 and SCS_13; their value 0 is the key that everybody knows (annex D.1.3). */
const HANDSHAKE = [0x11, 0x13];
/** Nothing was fired. */
const NOT_FIRED = ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED', 'NO_REPLY'];

/** What the wire does to a request or its reply. */
type Fate =
  | 'well'
  | 'unheard'
  | 'garbled'
  | 'lost'
  | 'damaged'
  | 'late'
  | 'power cut'
  | 'without power'
  | Attack;
const FAULTS: readonly Fate[] = ['unheard', 'garbled', 'lost', 'damaged', 'late', 'late', 'power cut'];

/** What somebody with access to the wire does to a reply. The device has done what it was asked. */
const ATTACKS = [
  'an earlier one in its place',
  'twice',
  'under another number',
  'another check of its sender',
  'acknowledged in clear text',
  'acknowledged in clear text before it',
  'refused in clear text',
  'busy',
  'the other device in its place',
] as const;
type Attack = (typeof ATTACKS)[number];
/** SIA OSDP 2.2, annex A: replies. */
const ACK = 0x40;
const NAK = 0x41;
const BUSY = 0x79;
const NAK_CODES = 9;
const REMEMBERED = 40;

interface Pulse {
  address: number;
  relay: number;
  begunAt: number;
  deadline: number;
}

interface Firing {
  address: number;
  relay: number;
  at: number;
  /** The pulses of this relay that waited for their outcome. */
  pulses: Pulse[];
}

const keyOf = (address: number) => Uint8Array.from({ length: 16 }, (_, index) => (0xa0 + index) ^ address);
const hwIdOf = (address: number) => `0a4748-1-${address + 1}`;

/** Why a request is less than the policy of its device wants; undefined: it is not. */
function leakIn(request: Uint8Array): string | undefined {
  const start = request.indexOf(SOM);
  const [control = 0, code = 0, type = 0, value = 0] = request.subarray(start + 4);
  if ((control & 8) === 0)
    return IN_CLEAR.includes(code) ? undefined : `command ${code.toString(16)} in clear text`;
  return HANDSHAKE.includes(type) && value === 0
    ? 'a handshake under the key that everybody knows'
    : undefined;
}

function isFalse({ kind, data }: DriverEvent): boolean {
  return kind === 'alarm' && (data as { alarm?: string }).alarm !== 'sessionLost';
}

/** Hears all replies, and knows no key. */
function openAttacker(random: () => number) {
  const heard = new Map<number, Uint8Array[]>();
  const pick = (list: readonly Uint8Array[] = []) => list[Math.floor(random() * list.length)];

  return (attack: Attack, address: number, request: Uint8Array, reply: Uint8Array): Uint8Array => {
    const sequence = (request[request.indexOf(SOM) + 4] ?? 0) & 3;
    const inClear = (code: number, data: number[] = [], number = sequence) =>
      writeReply({
        address,
        sequence: number,
        usesCrc: true,
        block: null,
        code,
        data: Uint8Array.from(data),
      });
    const message = reply.subarray(reply.indexOf(SOM));
    const changed = (at: number, to: number) => rechecked(message.with(at, to));
    const own = heard.get(address) ?? [];
    const others = [...heard].filter(([other]) => other !== address).flatMap(([, replies]) => replies);
    heard.set(address, [...own, reply].slice(-REMEMBERED));
    switch (attack) {
      case 'an earlier one in its place':
        return pick(own) ?? reply;
      case 'twice':
        return Buffer.concat([reply, reply]);
      case 'under another number':
        return changed(4, ((message[4] ?? 0) & ~3) | ((sequence + 1 + Math.floor(random() * 3)) & 3));
      case 'another check of its sender':
        return changed(message.length - 3, (message.at(-3) ?? 0) ^ 1);
      case 'acknowledged in clear text':
        return inClear(ACK);
      case 'acknowledged in clear text before it':
        return Buffer.concat([inClear(ACK), reply]);
      case 'refused in clear text':
        return inClear(NAK, [1 + Math.floor(random() * NAK_CODES)]);
      case 'busy':
        return inClear(BUSY, [], 0);
      case 'the other device in its place':
        return pick(others) ?? reply;
    }
  };
}

const isAttack = (fate: Fate): fate is Attack => (ATTACKS as readonly Fate[]).includes(fate);

function openSite(random: () => number) {
  const clock = manualClock();
  const devices = new Map(
    ADDRESSES.map((address) => {
      const key = keyOf(address);
      return [
        address,
        openOsdpDevice({ address, serial: address + 1, key, random, requiresSecurity: true }),
      ] as const;
    }),
  );
  const fates = new Map<number, () => Fate>();
  const waiting = new Set<Pulse>();
  const firings: Firing[] = [];
  const faults: string[] = [];
  const lastAt = new Map<number, number>();
  const attacked = openAttacker(random);
  let port: Awaited<ReturnType<typeof openWireLink>>['port'] | undefined;

  function damaged(bytes: Uint8Array): Uint8Array {
    // Without bit 2 of the control byte the check is a sum, which one of 256 damaged frames has.
    const at = Math.floor(random() * bytes.length);
    return at === bytes.indexOf(SOM) + 4
      ? bytes.slice(1)
      : bytes.with(at, (bytes[at] ?? 0) ^ (1 + Math.floor(random() * 255)));
  }

  function heard(address: number, request: Uint8Array): Uint8Array | undefined {
    const device = devices.get(address);
    const before = device?.peripheral.deeds.length;
    const reply = device?.answer(request, clock.monotonic());
    for (const { code, data } of device?.peripheral.deeds.slice(before) ?? []) {
      const relay = Number.parseInt(data.slice(0, 2), 16);
      const pulses = [...waiting].filter((one) => one.address === address && one.relay === relay);
      if (code === OUT) firings.push({ address, relay, at: clock.monotonic(), pulses });
    }
    return reply;
  }

  /** In the order of the requests, and to the host that is there then. */
  function later(address: number, reply: Uint8Array): null {
    const latestMs = LATE_MAX_MS[Math.floor(random() * LATE_MAX_MS.length)] ?? 0;
    const at = Math.max(lastAt.get(address) ?? 0, clock.monotonic() + LATE_MIN_MS + latestMs * random());
    lastAt.set(address, at);
    void clock.sleep(at - clock.monotonic()).then(() => port?.deliver(reply));
    return null;
  }

  /** What it was and did until now is over. */
  function cutPower(address: number): void {
    const backAt = clock.monotonic() + 3_000 * random() ** 3;
    const before = fates.get(address);
    devices.get(address)?.restart(clock.monotonic());
    fates.set(address, () => {
      if (clock.monotonic() < backAt) return 'without power';
      if (before) fates.set(address, before);
      else fates.delete(address);
      return 'well';
    });
  }

  return {
    clock,
    devices,
    fates,
    waiting,
    firings,
    faults,
    cutPower,
    connect(next: typeof port) {
      port = next;
    },
    answer(request: Uint8Array) {
      const leak = leakIn(request);
      if (leak) faults.push(`${leak} at ${clock.monotonic()}`);
      const address = request[request.indexOf(SOM) + 1] ?? 0;
      const fate = fates.get(address)?.() ?? 'well';
      if (fate === 'unheard' || fate === 'without power') return null;
      const reply = heard(address, fate === 'garbled' ? damaged(request) : request);
      if (fate === 'power cut') cutPower(address);
      if (!reply || fate === 'lost' || fate === 'power cut') return null;
      if (fate === 'late') return later(address, reply);
      if (isAttack(fate)) return attacked(fate, address, request, reply);
      return fate === 'damaged' ? damaged(reply) : reply;
    },
  };
}

async function campaign(seed: number, kinds = FAULTS) {
  const random = openRandom(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const site = openSite(random);
  const { clock, faults } = site;
  const outcomes = new Map<string, number>();
  const pending: Promise<void>[] = [];
  const events: DriverEvent[] = [];

  const open = async () => {
    const life = { isOver: false };
    const link = await openWireLink({
      answer: (request) => (life.isOver ? null : site.answer(request)),
      devices: ADDRESSES.map((address) => ({ address })),
      clock,
      pollEveryMs: POLL_MS,
    });
    site.connect(link.port);
    await link.watch(ADDRESSES.map((address) => ({ address, key: keyOf(address) })));
    await clock.advance(3_000);
    return { ...link, life };
  };
  let host = await open();

  function judge(pulse: Pulse, code: string): void {
    outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
    const own = site.firings.filter(({ pulses }) => pulses.includes(pulse));
    const what = `pulse of ${pulse.address}/${pulse.relay} at ${pulse.begunAt}`;
    if (code === 'confirmed' && own.length === 0) faults.push(`${what}: confirmed, and never fired`);
    if (NOT_FIRED.includes(code) && own.some(({ pulses }) => pulses.length === 1))
      faults.push(`${what}: ${code}, and it was fired`);
  }

  function fire(): void {
    const begunAt = clock.monotonic();
    const address = ADDRESSES[draw(ADDRESSES.length)] ?? 0;
    const withinMs = 100 + draw(2_000);
    const pulse = { address, relay: draw(RELAYS), begunAt, deadline: begunAt + withinMs };
    const data = { hwId: hwIdOf(address), relay: pulse.relay, milliseconds: 200 + draw(LONGEST_MS) };
    site.waiting.add(pulse);
    const done = host.execute('pulse', data, undefined, withinMs).then((outcome) => {
      site.waiting.delete(pulse);
      judge(pulse, typeof outcome === 'string' ? outcome : 'confirmed');
    });
    pending.push(done);
  }

  function disturb(): void {
    const [share, fault] = [random(), kinds[draw(kinds.length)] ?? 'lost'];
    const isMixed = draw(2) === 0;
    site.fates.set(ADDRESSES[draw(ADDRESSES.length)] ?? 0, () =>
      random() >= share ? 'well' : isMixed ? (kinds[draw(kinds.length)] ?? 'lost') : fault,
    );
  }

  /** kill -9: nothing that is said from now on reaches the wire; or a hang-up. */
  async function die(): Promise<void> {
    if (draw(2) === 0) host.life.isOver = true;
    else host.port.lose();
    await host.close();
    events.push(...host.events);
    await clock.advance(draw(8_000));
    host = await open();
  }

  async function step(): Promise<void> {
    const kind = draw(9);
    if (kind < 4) fire();
    if (kind === 7 && draw(2) === 0) {
      fire();
      await clock.advance(draw(60));
      site.cutPower(ADDRESSES[draw(ADDRESSES.length)] ?? 0);
    }
    await clock.advance(draw(kind < 4 ? 700 : 2_500));
    if (kind === 4 || kind === 5) disturb();
    if (kind === 6) site.fates.clear();
    if (kind === 8 && draw(2) === 0) await die();
  }
  for (let count = 0; count < STEPS; count += 1) await step();
  let left = pending.length;
  for (const one of pending) void one.then(() => left--);
  for (let waited = 0; left > 0 && waited < SETTLED_MS; waited += 100) await clock.advance(100);
  if (left > 0) faults.push(`${left} pulses have no outcome`);
  for (const { address, relay, at, pulses } of site.firings) {
    if (pulses.length === 0) faults.push(`${address}/${relay} fired at ${at}, and no pulse waits`);
    else if (pulses.every(({ deadline }) => at > deadline))
      faults.push(`${address}/${relay} fired late at ${at}`);
  }
  for (const pulse of new Set(site.firings.flatMap(({ pulses }) => pulses))) {
    const times = site.firings.filter(({ pulses }) => pulses.includes(pulse));
    const others = new Set(times.flatMap(({ pulses }) => pulses));
    if (times.length > others.size)
      faults.push(`${pulse.address}/${pulse.relay} fired ${times.length} times for ${others.size}`);
  }
  site.fates.clear();
  return { host, site, faults, outcomes, events };
}

describe('relays of readers', () => {
  it.each(SEEDS)('are fired by their pulses alone, in secure channels (seed %d)', async (seed) => {
    const { host, site, faults, outcomes, events } = await campaign(seed);
    await site.clock.advance(QUIET_MS);
    // No one attacks. Power cuts alone end sessions by refusals that no one signed.
    expect([...events, ...host.events].filter(isFalse)).toEqual([]);
    expect(faults).toEqual([]);
    expect(outcomes.get('confirmed')).toBeGreaterThan(0);
    for (const address of ADDRESSES)
      expect(host.report(hwIdOf(address))).toMatchObject({ connected: true, security: 'secure' });
    for (const [, { pins }] of site.devices) expect(pins?.outputs()).toBe(0);
  });
});

describe('relays of readers on a wire with an attacker', () => {
  it.each(SEEDS)(
    'are fired by their pulses alone, and what is forged confirms none (seed %d)',
    async (seed) => {
      const { host, site, faults, outcomes } = await campaign(seed + 1_000, [...ATTACKS, ...FAULTS]);
      await site.clock.advance(QUIET_MS);
      expect(faults).toEqual([]);
      expect(outcomes.get('confirmed')).toBeGreaterThan(0);
      for (const address of ADDRESSES)
        expect(host.report(hwIdOf(address))).toMatchObject({ connected: true, security: 'secure' });
      for (const [, { pins }] of site.devices) expect(pins?.outputs()).toBe(0);
    },
  );
});
