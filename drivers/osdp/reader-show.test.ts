/** What is shown at a reader by order: on the wire of a simulated device, and by what a device says that it can. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { keyAt, openTestLink, patience } from '../../test/drivers/osdp/link.ts';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { ShowOnReader } from '../contract/osdp.ts';
import type { Capability, Command } from './protocol/messages.ts';
import { showAtReader } from './reader-show.ts';

const hwId = '0a4748-1-4700';

it('is shown by the device for a time, and what it does not have is named', async () => {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [
      { address: 0, kind: 'osdp-io', hwId: '4700', osdp: { key: Buffer.from(keyAt(0)).toString('hex') } },
    ],
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const link = await openTestLink({ port: bus.port, keyed: [0], more: { devices: [{ address: 0 }] } });
  await link.connected(hwId);
  const led = { led: 0, colour: 'amber', milliseconds: 1_500 };
  const buzzer = { beeps: 2, onMilliseconds: 200, offMilliseconds: 150 };
  expect(await link.execute('showOnReader', { hwId, reader: 0, led, buzzer })).toEqual({
    shown: ['led', 'buzzer'],
    refused: null,
  });
  await vi.waitFor(
    async () =>
      expect(await bus.state(0)).toMatchObject({
        // SIA OSDP 2.2, 6.10 and 6.11: temporary 2 (set), on, off, both colours amber (3), 15 tenths; tone 2, tenths, two times.
        lamps: { '0.0': '02010003030f000000000000' },
        buzzer: '0002020202',
      }),
    patience,
  );
  // Its PDCAP has no function 6: nothing of it is sent, the light neither.
  const text = { text: 'Open', row: 1, column: 1, seconds: 5 };
  expect(await link.execute('showOnReader', { hwId, reader: 0, text, led })).toEqual({
    shown: [],
    refused: { part: 'text', reason: expect.stringContaining('no display') },
  });
  await expect(
    link.execute('showOnReader', { hwId, reader: 0, text: { ...text, text: 'Tür' } }),
  ).rejects.toMatchObject({
    code: 'INVALID_COMMAND',
  });
});

describe('a device that says of itself', () => {
  const ALL: Capability[] = [
    { code: 4, compliance: 4, count: 2 },
    { code: 5, compliance: 2, count: 1 },
    { code: 6, compliance: 2, count: 1 },
    { code: 13, compliance: 0, count: 2 },
  ];
  const without = (code: number, ...changed: Capability[]) => [
    ...ALL.filter((one) => one.code !== code),
    ...changed,
  ];
  const wanted: ShowOnReader = {
    hwId,
    reader: 1,
    text: { text: 'Door 7', row: 2, column: 3, seconds: 4 },
    led: { led: 1, colour: 'red', milliseconds: 250 },
    buzzer: { beeps: 1, onMilliseconds: 100, offMilliseconds: 100 },
  };
  async function shown(
    capabilities: readonly Capability[],
    more: Partial<ShowOnReader> = {},
    answers = true,
  ) {
    const sent: Command[] = [];
    const device = {
      address: 0,
      connected: () => answers,
      state: { capability: (code: number) => capabilities.find((one) => one.code === code) },
      session: { ask: async (command: Command) => void sent.push(command) },
    } as unknown as Parameters<typeof showAtReader>[0];
    const until = { deadline: 1_000, signal: new AbortController().signal };
    return { sent, answer: await showAtReader(device, { ...wanted, ...more }, until) };
  }

  it('that it has all, is sent each part once, in tenths rounded up', async () => {
    const { sent, answer } = await shown(ALL);
    expect(answer).toEqual({ shown: ['text', 'led', 'buzzer'], refused: null });
    expect(sent).toEqual([
      { kind: 'TEXT', reader: 1, text: 'Door 7', row: 2, column: 3, seconds: 4 },
      {
        kind: 'LED',
        reader: 1,
        led: 1,
        temporary: { on: 1, off: 0, onColour: 1, offColour: 1, time: 3 },
        permanent: null,
      },
      { kind: 'BUZ', reader: 1, tone: 2, on: 1, off: 1, count: 1 },
    ]);
  });

  it.each([
    ['one reader', without(13, { code: 13, compliance: 0, count: 1 }), {}, 'reader', /readers 0 to 0/],
    ['no display', without(6), {}, 'text', /no display/],
    ['one row', without(6, { code: 6, compliance: 1, count: 1 }), {}, 'text', /1 rows of 16/],
    [
      '16 columns',
      ALL,
      { text: { text: 'Too long for it', row: 1, column: 3, seconds: 1 } },
      'text',
      /2 rows of 16/,
    ],
    ['one LED', without(4, { code: 4, compliance: 4, count: 1 }), {}, 'led', /has 1 LEDs/],
    ['LEDs that take no time', without(4, { code: 4, compliance: 1, count: 2 }), {}, 'led', /take no time/],
    ['no buzzer', without(5), {}, 'buzzer', /no buzzer/],
    [
      'a buzzer that takes no time',
      without(5, { code: 5, compliance: 1, count: 1 }),
      {},
      'buzzer',
      /would not end/,
    ],
  ])('that it has %s is sent nothing of more', async (_, capabilities, more, part, reason) => {
    const { sent, answer } = await shown(capabilities, more);
    expect({ sent, answer }).toEqual({
      sent: [],
      answer: { shown: [], refused: { part, reason: expect.stringMatching(reason) } },
    });
  });

  it('nothing, for it does not answer, is sent nothing', async () => {
    await expect(shown(ALL, {}, false)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  });
});
