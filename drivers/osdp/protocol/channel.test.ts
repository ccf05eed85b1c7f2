/**
 * A session over wires that lose, damage, replay, reorder and forge. FUZZ_SEED repeats a run or makes another one.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KEY, openPanel, type Panel, POLL, type Wire } from '../../../test/drivers/osdp/protocol/panel.ts';
import { openRandom } from '../../../test/simulators/bus/random.ts';
import { type OsdpDevice, openOsdpDevice } from '../../../test/simulators/osdp/device.ts';
import { rechecked } from '../../../test/simulators/osdp/wire.ts';
import { type Command, OUTPUT, type OutputCode } from './messages.ts';

const DEFAULT_SEED = 20_261_121;
const SEED = Number(process.env.FUZZ_SEED ?? DEFAULT_SEED);

/** No two alike, so that each act of the device can be distinguished. */
const outNumber = (number: number, code: OutputCode = OUTPUT.onForTime): Command => ({
  kind: 'OUT',
  outputs: [{ output: number & 7, code, time: (number % 0xff_ff) + 1 }],
});
function dataOf(command: Command): string {
  if (command.kind !== 'OUT') return '';
  const [record] = command.outputs;
  return record
    ? Buffer.from([record.output, record.code, record.time & 0xff, record.time >> 8]).toString('hex')
    : '';
}

function openPd(random: () => number, options: { answersDamaged?: boolean } = {}): OsdpDevice {
  return openOsdpDevice({ address: 0, serial: 1, key: KEY, random, requiresSecurity: true, ...options });
}

/** In a frame with a mark. */
const CONTROL_AT = 5;
const USES_CRC = 4;

describe.each([
  { name: 'secure', security: { secure: 'required', key: KEY } as const },
  { name: 'plain', security: { secure: 'off' } as const },
])('a wire that loses one frame of 20 and damages one of 33, $name', ({ security }) => {
  it.each([
    { commands: 10_000, answersDamaged: false },
    { commands: 2_000, answersDamaged: true },
  ])(
    'carries $commands commands, each once (the device complains of damage: $answersDamaged)',
    ({ commands, answersDamaged }) => {
      const random = openRandom(SEED);
      const requiresSecurity = security.secure !== 'off';
      const pd = openOsdpDevice({
        address: 0,
        serial: 1,
        key: KEY,
        random,
        answersDamaged,
        requiresSecurity,
      });
      const disturbed = (bytes: Uint8Array | undefined): Uint8Array | undefined => {
        if (!bytes || random() < 0.05) return undefined;
        if (random() >= 0.03) return bytes;
        const damaged = Uint8Array.from(bytes);
        const at = Math.floor(random() * damaged.length);
        damaged[at] = (damaged[at] ?? 0) ^ (1 + Math.floor(random() * 255));
        // Without this bit the check is a sum, which one of 256 damaged frames has: a device believes that one, and
        // the command it loses count by ends as unknown. No panel can help it.
        if (at === CONTROL_AT) damaged[at] = (damaged[at] ?? 0) | USES_CRC;
        return random() < 0.2 ? damaged.subarray(0, at) : damaged;
      };
      const wire: Wire = (request) => {
        const heard = disturbed(request);
        return heard && disturbed(pd.answer(heard, 0));
      };
      const panel = openPanel({ security }, wire);
      const sent: string[] = [];
      for (let number = 0; number < commands; number += 1) {
        // In clear text one that closes a relay is sent once.
        const command = outNumber(number, requiresSecurity ? OUTPUT.onForTime : OUTPUT.offForTime);
        sent.push(dataOf(command));
        const outcome = panel.command(command);
        if (outcome.kind !== 'answered')
          throw new Error(`command ${number} ended ${JSON.stringify(outcome)}`);
        if (number % 3 === 0) panel.step(POLL);
      }
      expect(pd.peripheral.deeds.map(({ data }) => data)).toEqual(sent);
      // Now and then a damaged frame has a CRC that is right, or a refusal comes under the wrong number.
      expect(pd.sessions()).toBeLessThan(security.secure === 'off' ? 1 : 60);
      expect(panel.alarms()).toEqual([]);
    },
  );
});

/** Everything that went over the wire, for an adversary to use. */
interface Tapped {
  commands: Uint8Array[];
  replies: Uint8Array[];
  /** Not let through yet. */
  held: Uint8Array[];
}

type Trick = (tapped: Tapped, pick: number, request: Uint8Array, pd: OsdpDevice) => Uint8Array | undefined;

const at = (list: readonly Uint8Array[], pick: number) => list[pick % Math.max(1, list.length)];
const message = (frame: Uint8Array) => frame.subarray(frame.indexOf(0x53));

/** As if there were no security: the block and the MAC cut out, the check made right. */
function stripped(frame: Uint8Array): Uint8Array {
  const bytes = message(frame);
  if (((bytes[4] ?? 0) & 8) === 0) return frame;
  const length = bytes[5] ?? 0;
  const mac = (bytes[6] ?? 0) >= 0x15 ? 4 : 0;
  const kept = Buffer.concat([
    bytes.subarray(0, 5),
    bytes.subarray(5 + length, bytes.length - 2 - mac),
    Buffer.alloc(2),
  ]);
  kept[4] = (kept[4] ?? 0) & ~8;
  kept.writeUInt16LE(kept.length, 2);
  return rechecked(kept);
}
function changed(frame: Uint8Array, pick: number): Uint8Array {
  const bytes = Uint8Array.from(message(frame));
  const place = 1 + (pick % (bytes.length - 3));
  bytes[place] = (bytes[place] ?? 0) ^ (1 << (pick % 8));
  return rechecked(bytes);
}
function forged(request: Uint8Array, code: number, data: readonly number[]): Uint8Array {
  const [, address = 0, , , control = 0] = message(request);
  const length = 8 + data.length;
  return rechecked(Uint8Array.from([0x53, address | 0x80, length, 0, control & 7, code, ...data, 0, 0]));
}

const TRICKS: Record<string, Trick> = {
  pass: (_tapped, _pick, request, pd) => pd.answer(request, 0),
  dropCommand: () => undefined,
  dropReply(_tapped, _pick, request, pd) {
    pd.answer(request, 0);
    return undefined;
  },
  replayReply: ({ replies }, pick) => at(replies, pick),
  replayReplyAfterwards({ replies }, pick, request, pd) {
    pd.answer(request, 0);
    return at(replies, pick);
  },
  replayCommandFirst({ commands }, pick, request, pd) {
    pd.answer(at(commands, pick) ?? request, 0);
    return pd.answer(request, 0);
  },
  replayCommandAfter({ commands }, pick, request, pd) {
    const reply = pd.answer(request, 0);
    pd.answer(at(commands, pick) ?? request, 0);
    return reply;
  },
  twice(_tapped, _pick, request, pd) {
    pd.answer(request, 0);
    return pd.answer(request, 0);
  },
  stripCommand: (_tapped, _pick, request, pd) => pd.answer(stripped(request), 0),
  stripReply(_tapped, _pick, request, pd) {
    const reply = pd.answer(request, 0);
    return reply && stripped(reply);
  },
  /** The reply to the command before, and this one's to the next. */
  lateReply({ held }, _pick, request, pd) {
    const reply = pd.answer(request, 0);
    if (reply) held.push(reply);
    return held.length > 1 ? held.shift() : undefined;
  },
  changeCommand: (_tapped, pick, request, pd) => pd.answer(changed(request, pick), 0),
  changeReply(_tapped, pick, request, pd) {
    const reply = pd.answer(request, 0);
    return reply && changed(reply, pick);
  },
  bothReplies({ replies }, pick, request, pd) {
    const reply = pd.answer(request, 0);
    return Buffer.concat([at(replies, pick) ?? new Uint8Array(), reply ?? new Uint8Array()]);
  },
  forgeAck: (_tapped, _pick, request) => forged(request, 0x40, []),
  forgeOutputs: (_tapped, _pick, request) => forged(request, 0x4a, [1, 1, 1, 1, 1, 1, 1, 1]),
  forgeInputs: (_tapped, _pick, request) => forged(request, 0x49, [3, 3, 3, 3]),
  forgeCard: (_tapped, _pick, request) => forged(request, 0x50, [0, 1, 16, 0, 0xde, 0xad]),
  forgeIdentity: (_tapped, _pick, request) => forged(request, 0x45, [0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9]),
  forgeNak: (_tapped, pick, request) => forged(request, 0x41, [pick % 12]),
  forgeBusy: (_tapped, _pick, request) => forged(request, 0x79, []),
  executeThenNak(_tapped, pick, request, pd) {
    pd.answer(request, 0);
    return forged(request, 0x41, [pick % 12]);
  },
};
const NAMES = Object.keys(TRICKS);

function adversary(pd: OsdpDevice, next: () => { trick: string; pick: number }) {
  const tapped: Tapped = { commands: [], replies: [], held: [] };
  const wire: Wire = (request) => {
    const { trick, pick } = next();
    const reply = TRICKS[trick]?.(tapped, pick, request, pd);
    tapped.commands.push(request);
    if (reply) tapped.replies.push(reply);
    return reply;
  };
  return wire;
}

/** What a card reader, an input and a relay can have said, if no one else spoke. */
function expectNothingForged(panel: Panel, issued: readonly string[], pd: OsdpDevice): void {
  const deeds = pd.peripheral.deeds.map(({ data }) => data);
  expect(new Set(deeds).size).toBe(deeds.length);
  expect(issued.filter((data) => deeds.includes(data))).toEqual(deeds);
  for (const reported of panel.reported('ISTATR')) expect(reported).toMatchObject({ inputs: [0, 0, 0, 0] });
  expect(panel.reported('RAW')).toEqual([]);
  for (const effect of panel.effects)
    if (effect.kind === 'identity' && effect.isProven) expect(effect.identity.serial).toBe(1);
}

/** The panel asks ever more rarely after it was refused. */
const RECOVERY_POLLS = 80;

describe('somebody between panel and device', () => {
  it('achieves nothing, whatever he does', () => {
    const move = fc.record({ trick: fc.constantFrom(...NAMES), pick: fc.nat(0xff_ff), isOut: fc.boolean() });
    fc.assert(
      fc.property(fc.array(move, { minLength: 5, maxLength: 60 }), (moves) => {
        const pd = openPd(openRandom(SEED));
        let current = { trick: 'pass', pick: 0 };
        const panel = openPanel(
          {},
          adversary(pd, () => current),
        );
        panel.establish();
        const issued: string[] = [];
        const done: string[] = [];
        for (const [number, made] of moves.entries()) {
          current = made;
          const command = made.isOut ? outNumber(number) : POLL;
          const outcome = panel.command(command, 3);
          if (made.isOut) issued.push(dataOf(command));
          if (made.isOut && outcome.kind === 'answered') done.push(dataOf(command));
        }
        expectNothingForged(panel, issued, pd);
        for (const data of done) expect(pd.peripheral.deeds.map((deed) => deed.data)).toContain(data);

        current = { trick: 'pass', pick: 0 };
        for (let poll = 0; poll < RECOVERY_POLLS; poll += 1) panel.step();
        expect(panel.session.stage.kind).toBe('online');
        expect(panel.command(outNumber(50_000))).toMatchObject({ kind: 'answered' });
      }),
      { seed: SEED, numRuns: 60 },
    );
  });

  /** Each trick alone, in every exchange of a session that stands. */
  const NAMED: Record<string, string> = {
    replayReply: 'replayed',
    replayReplyAfterwards: 'replayed',
    bothReplies: 'replayed',
    lateReply: 'replayed',
    replayCommandFirst: 'sessionLost',
    replayCommandAfter: 'sessionLost',
    changeCommand: 'sessionLost',
    stripCommand: 'sessionLost',
    stripReply: 'clearText',
    changeReply: 'forged',
    forgeAck: 'clearText',
    forgeOutputs: 'clearText',
    forgeCard: 'clearText',
    forgeIdentity: 'clearText',
    forgeNak: 'sessionLost',
    executeThenNak: 'sessionLost',
  };
  it.each(Object.entries(NAMED))('is named in the alarm: %s is %s', (trick, alarm) => {
    const pd = openPd(openRandom(SEED));
    let current = 'pass';
    let pick = 0;
    const panel = openPanel(
      {},
      adversary(pd, () => {
        pick += 7;
        return { trick: current, pick };
      }),
    );
    for (let round = 0; round < 20; round += 1) {
      current = 'pass';
      for (let poll = 0; poll < 8; poll += 1) panel.step();
      current = trick;
      for (let poll = 0; poll < 3; poll += 1) panel.step();
    }
    expect(panel.alarms()).toContain(alarm);
    expectNothingForged(panel, [], pd);
  });

  it('cannot have a command carried out twice by hiding that it was', () => {
    const pd = openPd(openRandom(SEED));
    let trick = 'pass';
    const panel = openPanel(
      {},
      adversary(pd, () => ({ trick, pick: 6 })),
    );
    panel.establish();
    trick = 'executeThenNak';
    expect(panel.command(outNumber(1))).toEqual({ kind: 'unknown' });
    trick = 'pass';
    for (let poll = 0; poll < 10; poll += 1) panel.step();
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
});
