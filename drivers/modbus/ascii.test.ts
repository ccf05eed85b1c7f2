/** Modbus ASCII: its frames, and devices that have no other, on a manual clock. */
import { describe, expect, it } from 'vitest';
import { fromAscii, toAscii } from '../../test/simulators/bus/modbus/ascii.ts';
import { encodeAscii, openAsciiFrames } from './ascii-frame.ts';
import { io, openTestLink, profileNamed, type TestDevice } from './test-link.ts';

const characters = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'));
/** Registers 108 to 110 of device 6 are read: PI-MBUS-300, figure 7; its LRC by Modbus over serial line 1.02, 6.2.1. */
const BODY = Uint8Array.of(0x06, 0x03, 0x00, 0x6b, 0x00, 0x03);
const TEXT = ':0603006B000389\r\n';

describe('a frame of Modbus ASCII', () => {
  it('has the characters of the standard, and is read from pieces and noise', () => {
    expect(Buffer.from(encodeAscii(BODY)).toString()).toBe(TEXT);
    const take = openAsciiFrames();
    const pieces = [...`\0\xff:06${TEXT}`].map(characters);
    expect(pieces.flatMap(take)).toEqual([{ body: BODY, isSound: true }]);
  });

  it.each([
    ['a digit is wrong', ':0603006B000489\r\n', [{ body: expect.anything(), isSound: false }]],
    ['a digit is missing', ':0603006B00038\r\n', []],
    ['a letter is small', ':0603006b000389\r\n', []],
    ['it does not end', ':0603006B000389\n', []],
    ['it is too short', ':06FA\r\n', []],
    ['it is too long', `:${'0'.repeat(600)}\r\n`, []],
  ])('is not sound when %s', (_, text, frames) => {
    expect(openAsciiFrames()(characters(text))).toEqual(frames);
  });
});

describe('a device that has Modbus ASCII alone', () => {
  async function openAscii(options = {}) {
    const device = io();
    const wire: { damaged: (reply: Buffer) => Buffer } = { damaged: (reply) => reply };
    const link = await openTestLink({
      stations: new Map<number, TestDevice>([[17, device]]),
      profiles: { 'gatehouse-io': profileNamed('gatehouse-io') },
      options: { framing: 'ascii', dataBits: 7, devices: [{ unitId: 17 }], ...options },
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
});
