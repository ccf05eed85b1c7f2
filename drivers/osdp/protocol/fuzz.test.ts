/**
 * Frames with something wrong with them, plain and inside a session: nothing throws, nothing is believed that the device
 * did not say, and the session stands again within two polls. FUZZ_SEED repeats a run or makes another one; FUZZ_RUNS
 * makes it shorter or longer: a million is what was looked at.
 */
import { expect, it } from 'vitest';
import { KEY, openPanel, POLL } from '../../../test/drivers/osdp/protocol/panel.ts';
import { openRandom } from '../../../test/simulators/bus/random.ts';
import { openOsdpDevice } from '../../../test/simulators/osdp/device.ts';
import { rechecked } from '../../../test/simulators/osdp/wire.ts';
import { checksum, crc16, type Frame, scan } from './frame.ts';
import { decodeReply } from './messages.ts';

const DEFAULT_SEED = 20_261_121;
const SEED = Number(process.env.FUZZ_SEED ?? DEFAULT_SEED);
/** A few seconds of a busy machine. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 20_000);
/** Each may cost a handshake, at both ends. */
const SESSION_RUNS = Math.ceil(RUNS / 10);
const TIMEOUT_MS = 60_000 + RUNS;

type Mutate = (bytes: Buffer, random: (below: number) => number) => Buffer;

const MUTATIONS: Mutate[] = [
  (bytes, random) => {
    const place = random(bytes.length);
    bytes[place] = (bytes[place] ?? 0) ^ (1 << random(8));
    return bytes;
  },
  (bytes, random) => {
    for (let count = random(6); count >= 0; count -= 1) bytes[random(bytes.length)] = random(256);
    return bytes;
  },
  (bytes, random) => bytes.subarray(0, random(bytes.length)),
  (bytes, random) => {
    const place = random(bytes.length);
    return Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1 + random(4))]);
  },
  (bytes, random) => {
    const place = random(bytes.length);
    const extra = Buffer.from(Array.from({ length: 1 + random(40) }, () => random(256)));
    return Buffer.concat([bytes.subarray(0, place), extra, bytes.subarray(place)]);
  },
  (bytes, random) => Buffer.concat([bytes.subarray(0, random(bytes.length)), bytes]),
  (bytes, random) => {
    if (bytes.length > 4) bytes.writeUInt16LE(random(1_500), 2);
    return bytes;
  },
  (bytes, random) => {
    // Another security block, or none, or one where there was none.
    if (bytes.length > 7) bytes.set([(bytes[4] ?? 0) ^ (random(2) * 8), random(5), 0x10 + random(10)], 4);
    return bytes;
  },
  (bytes, random) => {
    if (bytes.length > 7)
      bytes[5 + 2 * random(2)] = [0x40, 0x41, 0x49, 0x4a, 0x50, 0x79, 0x76][random(7)] ?? 0;
    return bytes;
  },
  (_bytes, random) => Buffer.from(Array.from({ length: random(80) }, () => random(256))),
];

/** As it came, with something wrong; half of them with a check that is right again, and a length. */
function mutated(frame: Uint8Array, random: (below: number) => number): Buffer {
  let bytes = Buffer.from(frame.subarray(frame.indexOf(0x53)));
  for (let count = random(3); count >= 0 && bytes.length > 0; count -= 1) {
    bytes = Buffer.from(MUTATIONS[random(MUTATIONS.length)]?.(bytes, random) ?? bytes);
  }
  if (random(2) === 0 || bytes.length < 8) return bytes;
  if (random(2) === 0) bytes.writeUInt16LE(bytes.length, 2);
  return rechecked(bytes);
}

function openDice() {
  const random = openRandom(SEED);
  return (below: number) => Math.floor(random() * below);
}

function isSound({ check, authenticated, mac }: Frame, received: Buffer): boolean {
  const covered = Buffer.concat([authenticated, mac]);
  for (let at = received.indexOf(covered); at >= 0; at = received.indexOf(covered, at + 1)) {
    const end = at + covered.length;
    if (
      check === 'checksum'
        ? checksum(covered) === received[end]
        : crc16(covered) === received.readUInt16LE(end)
    )
      return true;
  }
  return false;
}

it(
  'reads frames of which something is wrong',
  () => {
    const random = openDice();
    const frames = [
      '53801400064500 0EE31010000074972306061B88',
      '53E5070001 4080',
      '53E51B000D031401 78A0A1A2A3A4A5A6A7A8A9AAABACADAEAFCABA',
      '53E52A000903120176101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F19',
    ].map((text) => Buffer.from(text.replaceAll(' ', ''), 'hex'));
    for (let run = 0; run < RUNS; run += 1) {
      const bytes = mutated(frames[run % frames.length] ?? Buffer.alloc(1), random);
      for (const frame of scan(bytes).frames) {
        expect(isSound(frame, bytes)).toBe(true);
        decodeReply(frame.code, frame.data);
      }
    }
  },
  TIMEOUT_MS,
);

it.each([
  ['inside a session', { secure: 'required', key: KEY } as const],
  ['in clear text', { secure: 'off' } as const],
])(
  'survives replies of which something is wrong %s',
  (_name, security) => {
    const random = openDice();
    const pd = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: () => random(256) / 256 });
    let isDisturbed = false;
    const panel = openPanel({ security }, (request) => {
      const reply = pd.answer(request, 0);
      return reply && isDisturbed ? mutated(reply, random) : reply;
    });
    panel.establish();
    const isSecure = security.secure === 'required';
    let lost = 0;
    for (let run = 0; run < SESSION_RUNS; run += 1) {
      panel.effects.length = 0;
      isDisturbed = true;
      panel.step(POLL);
      isDisturbed = false;
      if (panel.session.stage.kind !== 'online') {
        lost += 1;
        for (let poll = 0; poll < 2; poll += 1) panel.step(POLL);
      }
      // In clear text any refusal is believed, and some of them for a while.
      if (!isSecure) panel.establish();
      expect(panel.session.stage.kind).toBe('online');
      if (isSecure) expectTrue(panel);
    }
    expect(lost).toBeLessThan(SESSION_RUNS / 4);
    expect(panel.command({ kind: 'ISTAT' })).toMatchObject({ kind: 'answered' });
  },
  TIMEOUT_MS,
);

/** All that this device has to say. */
function expectTrue({ effects }: ReturnType<typeof openPanel>): void {
  for (const effect of effects) {
    if (effect.kind === 'identity') expect(effect.identity.serial).toBe(1);
    if (effect.kind !== 'reported') continue;
    const { reply } = effect;
    if (reply.kind === 'ISTATR') expect(reply.inputs).toEqual([0, 0, 0, 0]);
    else if (reply.kind === 'OSTATR') expect(reply.outputs).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    else expect(reply).toEqual({ kind: 'LSTATR', tamper: false, powerFault: false });
  }
}
