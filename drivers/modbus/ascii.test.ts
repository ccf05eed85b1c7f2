/** Modbus ASCII: its frames, and devices that have no other, on a manual clock. */
import { describe, expect, it } from 'vitest';
import { io, openTestLink, profileNamed, type TestDevice } from '../../test/drivers/modbus/link.ts';
import { fromAscii, toAscii } from '../../test/simulators/bus/modbus/ascii.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { asciiLength, encodeAscii, rtuOf } from './ascii.ts';
import { sendersOf } from './frame.ts';

const characters = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'));
/** Registers 108 to 110 of device 6 are read: PI-MBUS-300, figure 7; its LRC by Modbus over serial line 1.02, 6.2.1. */
const BODY = Uint8Array.of(0x06, 0x03, 0x00, 0x6b, 0x00, 0x03);
const TEXT = ':0603006B000389\r\n';

describe('a frame of Modbus ASCII', () => {
  it('has the characters of the standard, and is read from noise and with others', () => {
    expect(Buffer.from(encodeAscii(BODY)).toString()).toBe(TEXT);
    expect(TEXT).toHaveLength(asciiLength(BODY.length + 2));
    const frame = framed(BODY[0] ?? 0, [...BODY.subarray(1)]);
    expect(rtuOf(characters(`\0\xff:06${TEXT}`))).toEqual(Buffer.from(frame));
    expect(rtuOf(characters(`${TEXT}:0603${TEXT}`))).toEqual(Buffer.concat([frame, frame]));
  });

  it('is damaged when a digit is wrong', () => {
    const frame = rtuOf(characters(':0603006B000489\r\n'));
    expect(frame).toHaveLength(BODY.length + 2);
    expect(sendersOf(frame)).toEqual([]);
  });

  it.each([
    ['a digit is missing', ':0603006B00038\r\n'],
    ['a letter is small', ':0603006b000389\r\n'],
    ['it does not end', ':0603006B000389\n'],
    ['it is too short', ':06FA\r\n'],
    ['it is too long', `:${'0'.repeat(600)}\r\n`],
  ])('is none when %s', (_, text) => {
    expect(rtuOf(characters(text))).toHaveLength(0);
  });
});

describe('a device that has Modbus ASCII alone', () => {
  async function openAscii(options = {}, others: [number, TestDevice][] = []) {
    const device = io();
    const wire: { damaged: (reply: Buffer) => Buffer | null } = { damaged: (reply) => reply };
    const stations = new Map<number, TestDevice>([[17, device], ...others]);
    const devices = [...stations.keys()].map((unitId) => ({ unitId }));
    const link = await openTestLink({
      stations,
      profiles: { 'gatehouse-io': profileNamed('gatehouse-io') },
      options: { framing: 'ascii', dataBits: 7, devices, ...options },
      onWire(bytes, devices) {
        const request = fromAscii(bytes);
        const reply = request && devices(request);
        return reply ? wire.damaged(toAscii(reply)) : null;
      },
    });
    await link.clock.advance(2_000);
    return { link, device, wire };
  }

  it.each([9_600, 19_200, 115_200])('is read and fired, at %i baud', async (baudRate) => {
    const { link, device } = await openAscii({ baudRate });
    await using _ = link;
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 17 });
    const pulse = { hwId: 'GIO-0001', relay: 2, milliseconds: 1_000 };
    expect(await link.execute('pulse', pulse)).toMatchObject({ relay: 2 });
    await link.clock.advance(3_000);
    expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
    expect(link.bus()?.devices[0]?.counters).toMatchObject({
      timeouts: 0,
      crc: 0,
      framing: 0,
      collisions: 0,
    });
  });

  it('whose replies are damaged on the wire is counted so, and not believed', async () => {
    const { link, wire } = await openAscii();
    await using _ = link;
    wire.damaged = (reply) => {
      reply[7] = reply[7] === 0x30 ? 0x31 : 0x30;
      return reply;
    };
    await link.clock.advance(3_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    expect(link.bus()?.devices[0]?.counters.crc).toBeGreaterThan(2);
  });

  it('whose replies are no frames is heard as noise', async () => {
    const { link, wire } = await openAscii();
    await using _ = link;
    wire.damaged = (reply) => reply.subarray(1);
    await link.clock.advance(3_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    expect(link.bus()?.devices[0]?.counters.framing).toBeGreaterThan(2);
    const stray = link.bus()?.strayBytes ?? 0;
    link.wire.deliver(characters('01020304'));
    await link.clock.advance(1_000);
    expect(link.bus()?.strayBytes).toBe(stray + 8);
  });

  it('has the wire as soon as it begins to reply: no order is sent into it', async () => {
    const other = io('GIO-0002');
    const { link, wire } = await openAscii({ baudRate: 9_600 }, [[18, other]]);
    await using _ = link;
    other.behave = () => null;
    await link.clock.advance(10_000);
    expect(link.report('GIO-0002')).toMatchObject({ connected: false });
    // The next probe of it finds it back, and its reply comes as a UART hands it over.
    let spoken: { from: number; until: number } | undefined;
    other.behave = (_request, answer) => answer();
    wire.damaged = (reply) => {
      if (reply[2] !== 0x32 || spoken) return reply;
      const from = link.clock.monotonic();
      const characterMs = 10 / 9.6;
      spoken = { from, until: from + reply.length * characterMs };
      for (const [index, character] of reply.entries())
        void link.clock
          .sleep((index + 1) * characterMs)
          .then(() => link.wire.deliver(Uint8Array.of(character)));
      void link.clock.sleep(1).then(() => {
        pulsed = link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 1_000 });
      });
      return null;
    };
    let pulsed: Promise<unknown> | undefined;
    for (let time = 0; time < 60_000 && !pulsed; time += 5) await link.clock.advance(5);
    expect(await pulsed).toMatchObject({ relay: 2 });
    const during = link.wire.sent.filter(({ at }) => spoken && at > spoken.from && at < spoken.until);
    expect(during).toEqual([]);
  });

  it('has it also for a long reply that comes too late', async () => {
    const { link } = await openAscii({ baudRate: 9_600, pollEveryMs: 60_000 });
    await using _ = link;
    // A late reply, with 125 registers of a meter (application protocol 1.1b3, 6.3).
    const characterMs = 10 / 9.6;
    const reply = toAscii(framed(17, [3, 250, ...new Array(250).fill(0)]));
    const begun = link.clock.monotonic();
    for (const [index, character] of reply.entries())
      void link.clock.sleep(index * characterMs).then(() => link.wire.deliver(Uint8Array.of(character)));
    await link.clock.advance(50);
    expect(await link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 1_000 })).toMatchObject({
      relay: 2,
    });
    const end = begun + (reply.length - 1) * characterMs;
    expect(link.wire.sent.filter(({ at }) => at > begun && at < end)).toEqual([]);
  });
});
