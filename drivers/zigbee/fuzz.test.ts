/**
 * Frames with something wrong with them, of locks and of a coordinator: nothing throws, and nothing is believed that was
 * not said. FUZZ_SEED repeats a run or makes another one; FUZZ_RUNS makes it shorter or longer: a million is what was
 * looked at.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { setLogger, Zcl } from 'zigbee-herdsman';
import { attributeKeyValue } from 'zigbee-herdsman/dist/controller/helpers/zclFrameConverter.js';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  MANUFACTURER,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { incoming, openWire } from '../../test/drivers/zigbee/wire.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import { encodeMt, readMt } from '../../test/simulators/zigbee/mt/frame.ts';
import { lockReport } from '../contract/settings.ts';
import { lockEvent } from '../contract/zgate.ts';
import { isCredible, isCredibleRecord } from './herdsman/credible.ts';
import { lockCluster } from './herdsman/custom-cluster.ts';
import { cutFrames } from './herdsman/parser.ts';
import { reportOf, transferStatus } from './lock-cluster.ts';
import { factsOf } from './messages.ts';
import { LOCK_CLUSTER } from './radio.ts';
import { redact } from './redact.ts';
import { actuationBegun, actuationStep } from './unlock.ts';
import { field } from './values.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 20_261_122);
/** A few seconds of a busy machine. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 20_000);
/** Each goes through the library, and some are answered. */
const WIRE_RUNS = Math.ceil(RUNS / 20);
const BATCH = 50;
const TIMEOUT_MS = 90_000 + RUNS;

/** What a lock says, by cluster (ZCL rev. 8, 2.4 and 7.3; spec of the own cluster). None of it says `unlocked` or `jammed`. */
const SOUND: readonly (readonly [cluster: number, hex: string])[] = [
  // Reports and a read response: locked, closed; battery; the signal at the lock.
  [0x0101, '18010a 0000 30 01 0300 30 01'],
  [0x0101, '180201 0000 00 30 01 2600 00 19 1f00'],
  [0x0001, '18030a 2100 20 ae'],
  [0x0b05, '180401 1d01 00 28 c4'],
  // Locked by radio, a PIN added, wrong codes.
  [0x0101, '190520 01 01 0300 00 00000000 00'],
  [0x0101, '190621 00 02 0300 0434373131 00 01 00000000 00'],
  [0x0009, '190700 04 0101'],
  // Responses: unlocked by command, a default response.
  [0x0101, '190801 00'],
  [0x0101, '18090b 01 81'],
  // The own cluster: a version, a name, a result.
  [0xfc11, '1c34120a0a 0000 23 07000000'],
  [0xfc11, '1c34120b01 1000 00 42 05342e322e30'],
  [0xfc11, '1d34120c00 05 00 07000000'],
];
const CLUSTERS = [0x0000, 0x0001, 0x0009, 0x0019, 0x0020, 0x0101, 0x0500, 0x0b05, 0xfc11, 0xfc99];

type Dice = (below: number) => number;
function openDice(): Dice {
  const random = openRandom(SEED);
  return (below) => Math.floor(random() * below);
}

const noise = (random: Dice, length: number) => Buffer.from(Array.from({ length }, () => random(256)));

const MUTATIONS: ((bytes: Buffer, random: Dice) => Buffer)[] = [
  (bytes, random) => {
    const place = random(bytes.length);
    bytes[place] = (bytes[place] ?? 0) ^ (1 << random(8));
    return bytes;
  },
  (bytes, random) => {
    for (let count = random(5); count >= 0; count -= 1) bytes[random(bytes.length)] = random(256);
    return bytes;
  },
  (bytes, random) => bytes.subarray(0, 1 + random(bytes.length)),
  (bytes, random) => {
    const place = random(bytes.length);
    return Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1 + random(3))]);
  },
  (bytes, random) => {
    const place = random(bytes.length);
    return Buffer.concat([bytes.subarray(0, place), noise(random, 1 + random(30)), bytes.subarray(place)]);
  },
  // Another type of value: of those that exist, most often.
  (bytes, random) => {
    const types = [0x08, 0x10, 0x18, 0x20, 0x23, 0x28, 0x30, 0x38, 0x39, 0x41, 0x42, 0x43, 0x48, 0x4c, 0xff];
    bytes[random(bytes.length)] = types[random(types.length)] ?? 0;
    return bytes;
  },
  // Small numbers are commands, states and codes.
  (bytes, random) => {
    bytes[random(bytes.length)] = random(6);
    return bytes;
  },
  (_, random) => noise(random, random(60)),
];

function mutated(sound: Uint8Array, random: Dice): Buffer {
  let bytes: Buffer = Buffer.from(sound);
  for (let count = random(3); count >= 0 && bytes.length > 0; count -= 1)
    bytes = Buffer.from(MUTATIONS[random(MUTATIONS.length)]?.(bytes, random) ?? bytes);
  return bytes;
}

const has = (bytes: Buffer, ...texts: string[]) =>
  texts.some((text) => bytes.includes(Buffer.from(text, 'hex')));
/** Whether there could be a record of this attribute in it, of this type and value. */
const hasRecord = (bytes: Buffer, id: string, type: string, value: number, size = 1) => {
  const raw = Buffer.alloc(size);
  raw.writeIntLE(value < 2 ** (8 * size - 1) ? value : value - 2 ** (8 * size), 0, size);
  const end = `${type}${raw.toString('hex')}`;
  return has(bytes, `${id}${end}`, `${id}00${end}`);
};
/** By the first bytes alone: by the lock, cluster-specific or not, of the standard. */
const isOf = (bytes: Buffer, isSpecific: boolean) =>
  ((bytes[0] ?? 0xff) & 0x0f) === (isSpecific ? 0x09 : 0x08);

const custom = { [LOCK_CLUSTER]: lockCluster(MANUFACTURER) } as unknown as Parameters<
  typeof Zcl.Frame.fromBuffer
>[3];

/** As herdsman/herdsman.ts hears it; undefined: not at all. */
function heard(cluster: number, bytes: Buffer) {
  try {
    const header = Zcl.Header.fromBuffer(bytes);
    const frame = Zcl.Frame.fromBuffer(cluster, header, bytes, custom);
    const { manufacturerCode, frameControl, isGlobal } = frame.header;
    const fromServer = frameControl.direction === Zcl.Direction.SERVER_TO_CLIENT;
    if (!isCredible({ cluster, manufacturerCode, fromServer }, MANUFACTURER)) return undefined;
    const { name } = frame.command;
    if (!isGlobal) {
      const type = `command${name.charAt(0).toUpperCase()}${name.slice(1)}`;
      return { cluster: frame.cluster.name, type, data: frame.payload as unknown };
    }
    if (name !== 'report' && name !== 'readRsp')
      return { cluster: '', type: name, data: frame.payload as unknown };
    const records = (frame.payload as unknown[]).filter((one) =>
      isCredibleRecord(cluster, field(one, 'attrId'), field(one, 'dataType')),
    );
    const data: unknown = attributeKeyValue(Object.assign(frame, { payload: records }), 0, custom);
    return {
      cluster: frame.cluster.name,
      type: name === 'report' ? 'attributeReport' : 'readResponse',
      data,
    };
  } catch {
    return undefined;
  }
}

/** An `expect` costs more than all of a run. */
function must(holds: boolean, shown: string): void {
  if (!holds) throw new Error(`this was not said: ${shown}`);
}

const partialReport = lockReport.partial();
const quiet = () => undefined;
setLogger({ debug: quiet, info: quiet, warning: quiet, error: quiet });

it(
  'believes nothing of a lock that it did not say',
  () => {
    const random = openDice();
    let believed = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const [home, hex] = SOUND[run % SOUND.length] ?? [0, ''];
      const cluster = random(8) === 0 ? (CLUSTERS[random(CLUSTERS.length)] ?? 0) : home;
      const bytes = mutated(Buffer.from(hex.replaceAll(' ', ''), 'hex'), random);
      const what = heard(cluster, bytes);
      if (!what) continue;
      const facts = factsOf(what);
      if (Object.keys(facts).length > 0) believed += 1;
      const shown = `${cluster.toString(16)} ${bytes.toString('hex')}`;
      if (facts.lockState !== undefined)
        must(hasRecord(bytes, '0000', '30', facts.lockState) && isOf(bytes, false), shown);
      if (facts.doorState !== undefined) must(hasRecord(bytes, '0300', '30', facts.doorState), shown);
      if (facts.rssi !== undefined) must(hasRecord(bytes, '1d01', '28', facts.rssi), shown);
      if (facts.unlockedByRadio) must(has(bytes, '200102') && isOf(bytes, true), shown);
      if (facts.jam) must(has(bytes, '00000101') && isOf(bytes, true), shown);
      if (facts.event) {
        must(isOf(bytes, true), shown);
        lockEvent.parse({ hwId: LOCK, ...facts.event, at: 0 });
      }
      const report = what.cluster === LOCK_CLUSTER ? reportOf(what.data) : {};
      if (Object.keys(report).length > 0) partialReport.parse(report);
      if (report.configVersion !== undefined)
        must(hasRecord(bytes, '0000', '23', report.configVersion, 4) && has(bytes, '3412'), shown);
      must(ended(what.data, facts.lockState, cluster, bytes), shown);
      // As the library writes it into its errors.
      if (run % 50 === 0) redact(JSON.stringify(what.data) ?? '');
    }
    // Most say the same with another number in it; a decoder that refuses everything proves nothing.
    expect(believed).toBeGreaterThan(RUNS / 20);
  },
  TIMEOUT_MS,
);

/** Takes it as the answer to an unlock and to a transfer: both end as they may. */
function ended(data: unknown, lockState: number | undefined, cluster: number, bytes: Buffer): boolean {
  const sent = actuationStep(actuationBegun('unlocked'), { kind: 'left' });
  const answered = actuationStep(sent, { kind: 'answered', payload: data });
  const isSuccess = answered.phase === 'accepted';
  const end = actuationStep(answered, { kind: 'lockState', value: lockState });
  const isConfirmed = end.phase === 'done' && end.outcome === 'confirmed';
  const result = { transferId: field(data, 'transferId'), status: field(data, 'status') };
  const status = transferStatus({ ...result, configVersion: field(data, 'configVersion') }, 5, 7);
  const isApplied = status === 'ok' && (cluster !== 0xfc11 || !has(bytes, '050007000000'));
  return (!isSuccess || has(bytes, '00')) && (!isConfirmed || lockState === 2) && !isApplied;
}

it(
  'cuts frames out of noise that are sound, and keeps little',
  () => {
    const random = openDice();
    let rest = Buffer.alloc(0);
    let found = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const [cluster, hex] = SOUND[run % SOUND.length] ?? [0, ''];
      const sound = encodeMt(incoming({ nwk: 1, cluster }, Buffer.from(hex.replaceAll(' ', ''), 'hex')));
      const bytes = Buffer.concat([rest, mutated(sound, random)]);
      const cut = cutFrames(bytes);
      for (const frame of cut.frames) must(isFrame(frame), bytes.toString('hex'));
      must(cut.rest.length < 255, bytes.toString('hex'));
      found += cut.frames.length;
      rest = Buffer.from(cut.rest);
    }
    expect(found).toBeGreaterThan(RUNS / 1_000);
  },
  TIMEOUT_MS,
);

const isFrame = (bytes: Buffer) => {
  const reading = readMt(bytes);
  // A type of message that does not exist is not the wire's business.
  return reading.kind === 'frame' || (reading.kind === 'garbage' && reading.length === bytes.length);
};

/** Of the coordinator itself: a stranger who announces itself, joins, leaves; confirmations, resets, descriptors. */
const STICK = [
  '45c1 abcd abcd 99887766554433 22 80',
  '45ca abcd 9988776655443322 0000',
  '45c9 abcd 9988776655443322 000000',
]
  .concat([
    '4480 00 01 07',
    '4180 000201020701',
    '4582 abcd 00 abcd 02408037107f6400002c640000',
    '45b1 0000 00 00 00 00',
  ])
  .map((text) => Buffer.from(text.replaceAll(' ', ''), 'hex'))
  .map(([command = 0, id = 0, ...data]) =>
    encodeMt({ type: 'AREQ', subsystem: command & 0x1f, id, data: Buffer.from(data) }),
  );

it(
  'goes on after a coordinator that talks nonsense, and reports no door as unlocked because of it',
  async () => {
    const random = openDice();
    const site = await simulated({ locks: [{ ieee: LOCK }] });
    const wire = await openWire(site.port);
    const stateDirectory = folder();
    const gateway = await opened(wire, { stateDirectory });
    await joined(gateway, site);
    const { nwk } = await site.state(LOCK);
    const battery = () => (gateway.reports.get(`device:${LOCK}`) as { battery?: number }).battery;
    // The lock opens, and nothing that it says arrives.
    wire.tamper = (frame) => (frame.subsystem === 4 && frame.id === 0x81 ? undefined : frame);
    const unlocking = gateway.execute('unlock', unlockOf(LOCK)).catch((error) => error);
    let tail = Buffer.alloc(0);
    for (let run = 0, percent = 1; run < WIRE_RUNS; run += BATCH, percent = (percent % 80) + 1) {
      const batch = Buffer.concat(Array.from({ length: BATCH }, () => wrong(nwk, random)));
      // Who knows what a frame begins in: what could say that the lock is unlocked is not sent.
      if (has(Buffer.concat([tail, batch]), '003002', '200102')) continue;
      tail = batch.subarray(-256);
      await wire.inject(batch);
      const report = Buffer.from([0x18, 0x55, 0x0a, 0x21, 0x00, 0x20, 2 * percent]);
      // Ends whatever has begun.
      const sound = [Buffer.alloc(256), encodeMt(incoming({ nwk, cluster: 0x0001 }, report))];
      await wire.inject(Buffer.concat(sound));
      await expect.poll(battery, { timeout: 20_000, interval: 5 }).toBe(percent);
    }
    const outcome = await unlocking;
    expect(outcome).not.toMatchObject({ outcome: 'confirmed' });
    const reported = gateway.events
      .filter(({ kind }) => kind === 'lockEvent')
      .map(({ data }) => lockEvent.parse(data));
    expect(reported.filter(({ what, source }) => what === 'unlocked' && source === 'rf')).toEqual([]);
    expect(gateway.events.filter(({ kind }) => kind === 'lockLeft' || kind === 'lockJoined')).toHaveLength(1);
    lockReport.parse(gateway.reports.get(`device:${LOCK}`));
    // What a device makes up is not kept.
    expect(statSync(join(stateDirectory, 'database.db')).size).toBeLessThan(64_000);
    wire.tamper = (frame) => frame;
    await site.set(LOCK, { manual: 'lock' });
    // The library may still be answering the nonsense, one frame after the other.
    const again = () => gateway.execute('unlock', unlockOf(LOCK)).catch(() => undefined);
    await expect.poll(again, { timeout: 60_000 }).toEqual(CONFIRMED);
  },
  TIMEOUT_MS,
);

/** A frame of the lock, or of the coordinator, with something wrong in it or around it. */
function wrong(nwk: number, random: Dice): Buffer {
  if (random(6) === 0) return mutated(STICK[random(STICK.length)] ?? Buffer.alloc(1), random);
  const [home, hex] = SOUND[random(SOUND.length)] ?? [0, ''];
  const cluster = random(4) === 0 ? (CLUSTERS[random(CLUSTERS.length)] ?? 0) : home;
  const zcl = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  const endpoint = random(8) === 0 ? random(256) : 1;
  if (random(3) === 0) return mutated(encodeMt(incoming({ nwk, cluster, endpoint }, zcl)), random);
  return encodeMt(incoming({ nwk, cluster, endpoint }, mutated(zcl, random).subarray(0, 200)));
}
