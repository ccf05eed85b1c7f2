/**
 * The codec against bytes of others: the examples of the Modbus application protocol 1.1b3 (PDUs, by section), the CRC
 * example of Modbus over serial line 1.02, 6.2.2, and frames that the manuals of bought modules print.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../bus/exchange.ts';
import { crc16 } from './frame.ts';
import { readBits, readIdentification, readRegisters, write } from './messages.ts';

/** Mutated frames in all; the seed too can be given, to repeat a run: FUZZ_RUNS=1000000 FUZZ_SEED=…. */
const FUZZ = {
  numRuns: Number(process.env.FUZZ_RUNS ?? 50_000),
  seed: Number(process.env.FUZZ_SEED ?? 20_261),
};

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'));
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** Bit by bit, unlike the product's. */
function referenceCrc(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1;
  }
  return crc;
}

function framed(unit: number, pdu: string): Uint8Array {
  const body = Uint8Array.of(unit, ...hex(pdu));
  const crc = referenceCrc(body);
  return Uint8Array.of(...body, crc & 0xff, crc >> 8);
}

const UNIT = 17;
const bits = (pattern: string) => [...pattern].map((bit) => bit === '1');

interface Example {
  section: string;
  exchange: Exchange<unknown>;
  request: string;
  reply: string;
  value: unknown;
}

const EXAMPLES: Example[] = [
  {
    section: '6.1 read coils 20 to 38',
    exchange: readBits(UNIT, { functionCode: 1, address: 0x13, quantity: 0x13 }),
    request: '01 0013 0013',
    reply: '01 03 CD6B05',
    value: bits('1011001111010110101'),
  },
  {
    section: '6.2 read discrete inputs 197 to 218',
    exchange: readBits(UNIT, { functionCode: 2, address: 0xc4, quantity: 0x16 }),
    request: '02 00C4 0016',
    reply: '02 03 ACDB35',
    value: bits('0011010111011011101011'),
  },
  {
    section: '6.3 read holding registers 108 to 110',
    exchange: readRegisters(UNIT, { functionCode: 3, address: 0x6b, quantity: 3 }),
    request: '03 006B 0003',
    reply: '03 06 022B 0000 0064',
    value: [555, 0, 100],
  },
  {
    section: '6.4 read input register 9',
    exchange: readRegisters(UNIT, { functionCode: 4, address: 8, quantity: 1 }),
    request: '04 0008 0001',
    reply: '04 02 000A',
    value: [10],
  },
  {
    section: '6.5 write coil 173 on',
    exchange: write(UNIT, { functionCode: 5, address: 0xac, value: true }),
    request: '05 00AC FF00',
    reply: '05 00AC FF00',
    value: null,
  },
  {
    section: '6.6 write register 2',
    exchange: write(UNIT, { functionCode: 6, address: 1, value: 3 }),
    request: '06 0001 0003',
    reply: '06 0001 0003',
    value: null,
  },
  {
    section: '6.11 write ten coils from 20 on',
    exchange: write(UNIT, { functionCode: 15, address: 0x13, values: bits('1011001110') }),
    request: '0F 0013 000A 02 CD01',
    reply: '0F 0013 000A',
    value: null,
  },
  {
    section: '6.12 write two registers from 2 on',
    exchange: write(UNIT, { functionCode: 16, address: 1, values: [10, 0x0102] }),
    request: '10 0001 0002 04 000A 0102',
    reply: '10 0001 0002',
    value: null,
  },
  {
    // The example gives the product code a length of 0x0D and 15 characters; here it has its 15.
    section: '6.21 read device identification',
    exchange: readIdentification(UNIT, 0),
    request: '2B 0E 01 00',
    reply: `2B 0E 01 01 00 00 03
      00 16 ${Buffer.from('Company identification').toString('hex')}
      01 0F ${Buffer.from('Product code XX').toString('hex')}
      02 05 ${Buffer.from('V2.11').toString('hex')}`.replaceAll(/\s/g, ''),
    value: expect.objectContaining({
      objects: new Map([
        [0, 'Company identification'],
        [1, 'Product code XX'],
        [2, 'V2.11'],
      ]),
      next: undefined,
    }),
  },
];

describe.each(EXAMPLES)('$section', ({ exchange, request, reply, value }) => {
  const answer = framed(UNIT, reply);

  it('is asked and understood as in the standard', () => {
    expect(text(exchange.request())).toBe(text(framed(UNIT, request)));
    expect(exchange.read(answer)).toEqual({ kind: 'reply', reply: value });
    expect(answer.length).toBeLessThanOrEqual(exchange.replyLength);
  });

  it('is understood in any pieces, and not before it is whole', () => {
    for (let length = 1; length < answer.length; length += 1)
      expect(exchange.read(answer.subarray(0, length))).toEqual({ kind: 'more', fault: 'framing' });
    expect(exchange.read(new Uint8Array())).toEqual({ kind: 'more' });
  });

  it('is understood after noise, also noise that looks like its head', () => {
    const heads = [answer.subarray(0, 2), answer.subarray(0, 3), answer.subarray(0, answer.length - 1)];
    for (const noise of [hex('00'), hex('FF FF 00'), hex(UNIT.toString(16)), ...heads])
      expect(exchange.read(Uint8Array.of(...noise, ...answer))).toEqual({ kind: 'reply', reply: value });
  });

  it('is not believed from another device, to another question, or with a wrong bit', () => {
    expect(exchange.read(framed(UNIT + 1, reply))).toEqual({ kind: 'more', fault: 'foreign' });
    const others = EXAMPLES.filter((other) => other.exchange !== exchange);
    for (const other of others)
      expect(exchange.read(framed(UNIT, other.reply))).toEqual({ kind: 'more', fault: 'foreign' });
    for (let bit = 0; bit < 8 * answer.length; bit += 1) {
      const wrong = answer.slice();
      wrong[bit >> 3] = (wrong[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(exchange.read(wrong).kind).toBe('more');
    }
  });

  it('is found behind the late answer of another device', () => {
    const late = framed(UNIT + 1, reply);
    expect(exchange.read(Uint8Array.of(...late, ...answer))).toEqual({ kind: 'reply', reply: value });
  });

  it('may be refused', () => {
    const code = (Number.parseInt(request.slice(0, 2), 16) | 0x80).toString(16);
    expect(exchange.read(framed(UNIT, `${code} 03`))).toEqual({
      kind: 'refused',
      reason: expect.stringMatching(/^exception 03 \(illegal data value\)/),
    });
    expect(exchange.read(framed(UNIT, `${code} 06`))).toEqual({ kind: 'busy' });
    expect(exchange.read(framed(UNIT + 1, `${code} 03`))).toEqual({ kind: 'more', fault: 'foreign' });
  });

  it.each(['04', '08', 'C8'])(
    'may report failure %s, which leaves open what a write has changed',
    (failure) => {
      const functionCode = Number.parseInt(request.slice(0, 2), 16);
      const isWrite = [5, 6, 15, 16].includes(functionCode);
      const answered = exchange.read(framed(UNIT, `${(functionCode | 0x80).toString(16)} ${failure}`));
      expect(answered.kind).toBe(isWrite ? 'failed' : 'refused');
    },
  );

  it('may come from a gateway that does not reach the device: only 0A says that nothing was passed on', () => {
    const code = (Number.parseInt(request.slice(0, 2), 16) | 0x80).toString(16);
    expect(exchange.read(framed(UNIT, `${code} 0A`))).toMatchObject({ kind: 'unreached' });
    expect(exchange.read(framed(UNIT, `${code} 0B`))).toMatchObject({ kind: 'unanswered' });
  });

  it('may say that the request is accepted, which is enough of a write, and nothing yet of a read', () => {
    const code = (Number.parseInt(request.slice(0, 2), 16) | 0x80).toString(16);
    const isWrite = value === null;
    expect(exchange.read(framed(UNIT, `${code} 05`))).toEqual(
      isWrite ? { kind: 'reply', reply: null } : { kind: 'busy' },
    );
  });
});

describe('what an answer repeats', () => {
  const flash = write(1, { functionCode: 5, address: 0x0200, value: 7 });

  it.each([
    ['another coil', flash, '05 0201 0007'],
    ['another time', flash, '05 0200 0008'],
    ['another register', write(UNIT, { functionCode: 6, address: 1, value: 3 }), '06 0002 0003'],
    ['another value', write(UNIT, { functionCode: 6, address: 1, value: 3 }), '06 0001 0004'],
    ['fewer registers', write(UNIT, { functionCode: 16, address: 1, values: [1, 2] }), '10 0001 0001'],
    ['more registers', readRegisters(UNIT, { functionCode: 3, address: 1, quantity: 1 }), '03 04 0001 0002'],
    ['other bits', readBits(UNIT, { functionCode: 1, address: 0, quantity: 8 }), '01 02 00 00'],
    ['other identification', readIdentification(UNIT, 0), '2B 0E 02 01 00 00 00'],
  ])('%s: not believed', (_, exchange, pdu) => {
    expect(exchange.read(framed(exchange.address, pdu))).toEqual({ kind: 'more', fault: 'foreign' });
  });

  it('reports what was wrong: the check sum', () => {
    const exchange = readRegisters(UNIT, { functionCode: 3, address: 1, quantity: 1 });
    const wrong = framed(UNIT, '03 02 0001');
    wrong[3] = 1;
    expect(exchange.read(wrong)).toEqual({ kind: 'more', fault: 'crc' });
  });

  it('asks for the rest of an identification', () => {
    const reading = readIdentification(UNIT, 0).read(framed(UNIT, '2B 0E 01 01 FF 02 01 00 01 41'));
    expect(reading).toEqual({ kind: 'reply', reply: expect.objectContaining({ next: 2 }) });
  });
});

describe('frames that manuals print', () => {
  it('Modbus over serial line 1.02, 6.2.2: the CRC of 02 07 is 41 12', () => {
    expect(crc16(hex('02 07'))).toBe(0x1241);
  });

  it.each([
    [
      'Waveshare Modbus RTU Relay: relays',
      readBits(1, { functionCode: 1, address: 0, quantity: 8 }),
      '01 01 00 00 00 08 3D CC',
      '01 01 01 00 51 88',
      bits('00000000'),
    ],
    [
      'Waveshare Modbus RTU Relay: flash relay 0 for 700 ms',
      write(1, { functionCode: 5, address: 0x0200, value: 7 }),
      '01 05 02 00 00 07 8D B0',
      '01 05 02 00 00 07 8D B0',
      null,
    ],
    [
      'Waveshare Modbus RTU Relay: version 2.00',
      readRegisters(1, { functionCode: 3, address: 0x8000, quantity: 1 }),
      '01 03 80 00 00 01 AD CA',
      '01 03 02 00 C8 B9 D2',
      [200],
    ],
    [
      'Waveshare Modbus RTU IO 8CH: inputs',
      readBits(1, { functionCode: 2, address: 0, quantity: 8 }),
      '01 02 00 00 00 08 79 CC',
      '01 02 01 00 A1 88',
      bits('00000000'),
    ],
    [
      'Waveshare Modbus RTU IO 8CH: all outputs on',
      write(1, { functionCode: 15, address: 0, values: bits('11111111') }),
      '01 0F 00 00 00 08 01 FF BE D5',
      '01 0F 00 00 00 08 54 0D',
      null,
    ],
  ])('%s', (_, exchange: Exchange<unknown>, request, reply, value) => {
    expect(text(exchange.request())).toBe(text(hex(request)));
    expect(exchange.read(hex(reply))).toEqual({ kind: 'reply', reply: value });
  });

  it('Waveshare Modbus RTU IO 8CH: an exception', () => {
    const exchange = write(1, { functionCode: 5, address: 0, value: true });
    expect(exchange.read(hex('01 85 03 02 91')).kind).toBe('refused');
  });
});

/** Contiguous sound frames in what was received, by a search of its own. */
function soundFrames(received: Uint8Array): Set<string> {
  const found = new Set<string>();
  for (let from = 0; from < received.length; from += 1)
    for (let to = from + 5; to <= received.length; to += 1) {
      const body = received.subarray(from, to - 2);
      const crc = (received[to - 2] ?? 0) | ((received[to - 1] ?? 0) << 8);
      if (referenceCrc(body) === crc) found.add(text(received.subarray(from, to)));
    }
  return found;
}

describe('mutated frames', () => {
  const example = fc.constantFrom(...EXAMPLES);
  const noise = fc.uint8Array({ maxLength: 12 });

  /** CRC-16 detects every burst of up to 16 bits: such a frame may be waited on, and never believed. */
  it('with a burst of up to 16 wrong bits are not believed', () => {
    fc.assert(
      fc.property(
        example,
        fc.nat(),
        fc.integer({ min: 1, max: 0xffff }),
        ({ exchange, reply }, place, burst) => {
          const frame = framed(UNIT, reply);
          const start = place % (8 * frame.length);
          for (let bit = 0; bit < 16 && start + bit < 8 * frame.length; bit += 1) {
            const at = start + bit;
            if (burst & (1 << bit)) frame[at >> 3] = (frame[at >> 3] ?? 0) ^ (1 << (at & 7));
          }
          const isSame = text(frame) === text(framed(UNIT, reply));
          const { kind } = exchange.read(frame);
          // A longer frame that the mutation has made into a shorter one cannot be distinguished from one that was sent.
          return isSame ? kind === 'reply' : kind === 'more' || soundFrames(frame).size > 0;
        },
      ),
      FUZZ,
    );
  });

  it('give only what a sound frame among them says, whatever surrounds it', () => {
    const mutation = fc.tuple(example, noise, noise, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 6 }));
    fc.assert(
      fc.property(mutation, ([{ exchange, reply }, before, after, place, bytes]) => {
        const frame = Array.from(framed(UNIT, reply));
        frame.splice(place % frame.length, place % 3, ...bytes);
        const received = Uint8Array.of(...before, ...frame, ...after);
        const reading = exchange.read(received);
        if (reading.kind === 'more') return true;
        const believed = [...soundFrames(received)].map((sound) => exchange.read(hex(sound)));
        return believed.some((one) => isDeepStrictEqual(one, reading));
      }),
      FUZZ,
    );
  });

  it('do no harm as mere noise of any length', () => {
    fc.assert(
      fc.property(example, fc.uint8Array({ maxLength: 300 }), ({ exchange }, received) => {
        const { kind } = exchange.read(received);
        return (
          kind === 'more' ||
          kind === 'refused' ||
          kind === 'busy' ||
          kind === 'reply' ||
          kind === 'failed' ||
          kind === 'unreached' ||
          kind === 'unanswered'
        );
      }),
      FUZZ,
    );
  });
});
