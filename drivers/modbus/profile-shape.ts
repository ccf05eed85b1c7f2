/** The vocabulary of profiles (profile.ts). What is absent the product does not have. */
import { z } from 'zod';
import { HOLD_MS } from '../contract/rs485.ts';

export interface ProfileFault {
  path: PropertyKey[];
  message: string;
  /** The other one of two that cannot be together. */
  see?: PropertyKey[];
}

/** What one read can bring, application protocol 1.1b3, 6.3. */
export const REGISTERS_READ_MAX = 125;
/** The same of coils and discrete inputs, 6.1. */
export const BITS_READ_MAX = 2_000;
const HIGHEST_ADDRESS = 0xffff;
/** 0xFF00 as the value of function 5 is plain on (application protocol 1.1b3, 6.5): a relay would stay closed. */
const PULSE_UNITS_MAX = 0xfeff;
export const REGISTER_MAX = 0xffff;
/** The requests that feed it come several times as often. */
export const WATCHDOG_MIN_MS = 1_000;
const WATCHDOG_MAX_MS = 60_000;

const address = z
  .int()
  .min(0)
  .max(HIGHEST_ADDRESS, 'expected an address up to 65535 (0xFFFF)')
  .describe('As on the wire, from 0');
const registers = z
  .literal([1, 2])
  .default(1)
  .describe('How many it takes; of two, the first is the high one');

const register = z.strictObject({ address, registers });
const anyRegister = z.strictObject({
  table: z.enum(['holding', 'input']).default('holding').describe('Read with function 3, or 4'),
  address,
  registers,
});
const table = z
  .enum(['holding', 'input', 'coil', 'discrete'])
  .default('holding')
  .describe('Holding and input registers, coils, discrete inputs');
const bit = z.int().min(0).max(15).default(0).describe('Of the register; 0 is the lowest');
const oneBit = z.strictObject({ table, address, bit });
const bits = (most: number) =>
  z.strictObject({
    table,
    address,
    bit,
    count: z.int().min(1).max(most).describe('How many, from here on'),
    each: z
      .literal('register')
      .optional()
      .describe('Each has a register of its own, one after the other; absent: they are bits of one'),
  });
const inputs = bits(4)
  .extend({ inverted: z.literal(true).optional().describe('0 is active') })
  .describe('Levels now, input0 first; further ones are not used');
const outputs = bits(8)
  .extend({
    readOnly: z
      .literal(true)
      .optional()
      .describe(
        'They are shown, and never fired: nothing opens a relay of this product when the gateway is dead, or nothing that can be read back',
      ),
  })
  .describe('Levels now, output0 first');

const label = z
  .strictObject({
    table: anyRegister.shape.table,
    address,
    registers: z
      .int()
      .min(1)
      .max(
        REGISTERS_READ_MAX,
        `expected up to ${REGISTERS_READ_MAX} registers, which is all one read can bring`,
      ),
    divisor: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe('It is a number, this many times the version; absent: two characters in each register'),
  })
  .describe('A text in registers, or a version as a number');

const identity = z.strictObject({
  hwId: label.optional().describe('Names the device for good; absent: <link>-<unit id> does'),
  type: label.optional().describe('Absent: product'),
  platformVersion: label.optional(),
  apps: z
    .array(z.strictObject({ name: label, version: label }))
    .max(8)
    .default([]),
  standard: z
    .literal(true)
    .optional()
    .describe(
      'It answers function 43 (basic identification): product code and revision are its type and platformVersion, where those are absent',
    ),
  shown: z
    .array(
      z.strictObject({ table: anyRegister.shape.table, address, value: z.int().min(0).max(REGISTER_MAX) }),
    )
    .max(4)
    .optional()
    .describe(
      'Registers that name the product, and what it shows there: read before anything is written. Where it shows something else, another product is there, and nothing is written to it',
    ),
});

const inputCounters = z
  .strictObject({ ...anyRegister.shape, count: z.int().min(1).max(4) })
  .describe(
    'Counters of activations that run all the time, input0 first, each in as many registers; used while the pin memory is on. One that is lower than before has begun again',
  );

const inputEdges = z
  .strictObject({
    ...anyRegister.omit({ registers: true }).shape,
    bit,
    width: z.int().min(1).max(16).describe('Bits of each counter'),
    count: z.int().min(1).max(4),
  })
  .describe('Counters of activations while the pin memory is on, input0 lowest');

const settings = z
  .strictObject({
    inForce: anyRegister.describe('Version of the settings in force, read at each poll'),
    version: register.describe('Version, as part of the block'),
    inputsInUse: z.strictObject({ address, bit }).optional().describe('One bit for each input'),
    outputsInUse: z.strictObject({ address, bit }).optional().describe('One bit for each output'),
    relayIndex: register.optional(),
    unlockDurationMilliseconds: register.optional(),
    useInputPinMemory: z.strictObject({ address, bit }).optional(),
  })
  .describe('Holding registers, written as one block; absent: the gateway keeps the settings of the product');

const word = z.int().min(0).max(0xffff);
const STEPS_MAX = 8;
const written = z.strictObject({
  table: z.enum(['holding', 'coil']).default('holding'),
  address,
  count: z.int().min(1).max(16).default(1).describe('How many, from here on; each gets the value'),
  value: word.describe('Of a coil: 1 or 0'),
});
const shown = z.strictObject({
  table,
  address,
  value: word.describe('Of a coil or discrete input: 1 or 0'),
  shows: z
    .literal('enabled')
    .optional()
    .describe('This place is the status of the watchdog itself, and has the value only while it is enabled'),
});

/** A watchdog counts only while it is read back: its time always is, what enables it by `inForce`. */
const watchdog = z
  .strictObject({
    milliseconds: z
      .int()
      .min(WATCHDOG_MIN_MS)
      .max(WATCHDOG_MAX_MS)
      .describe('Without a request; then all outputs are off'),
    release: z
      .array(written)
      .max(STEPS_MAX)
      .default([])
      .describe('Written first: stops one that runs, and clears one that has run out'),
    time: z
      .strictObject({
        address,
        unitMilliseconds: z.int().min(1).max(60_000),
        unitsMax: z
          .int()
          .min(1)
          .max(REGISTER_MAX)
          .optional()
          .describe('The highest value that the product takes; absent: 65535'),
      })
      .describe('Holding register with its time; written after release, and read back'),
    enabledBy: z
      .enum(['time', 'writes'])
      .describe('time: any time but 0 puts it in force. writes: what enable says does'),
    enable: z.array(written).max(STEPS_MAX).default([]).describe('Written after the time'),
    inForce: z
      .array(shown)
      .max(STEPS_MAX)
      .default([])
      .describe(
        'What the device shows while it is enabled and has not run out; read again and again. Has what enable writes, or a place that shows: enabled',
      ),
    fedBy: z
      .enum(['requests', 'writes'])
      .describe('requests: each request to the device is enough. writes: what feed says is'),
    feed: z
      .strictObject({
        address,
        values: z
          .array(word)
          .min(1)
          .max(2)
          .describe('Two are written in turns, where a change is what counts'),
      })
      .optional()
      .describe('Holding register that is written three times as often as the watchdog needs'),
  })
  .describe('What opens the relays when the gateway is dead');

const unitMilliseconds = z
  .int()
  .min(1)
  .refine((unit) => HOLD_MS % unit === 0, `must divide ${HOLD_MS}, the time that a relay is held for`)
  .describe(`A divisor of ${HOLD_MS}: so long the relay of a door that stands open outlives the gateway`);

const pulse = z
  .discriminatedUnion('way', [
    z
      .strictObject({
        way: z.literal('block'),
        id: z.strictObject({ address }).describe('The same again does nothing'),
        relay: z.strictObject({ address }),
        milliseconds: register,
        lastId: anyRegister.omit({ registers: true }).describe('Of the last one accepted, read at each poll'),
        remaining: anyRegister.describe('Milliseconds left, read at each poll'),
      })
      .describe('One write of holding registers starts it, and the device times it'),
    z
      .strictObject({
        way: z.literal('flash'),
        address: address.describe('Coil of output0; the others follow'),
        unitMilliseconds,
        unitsMax: z.int().min(1).max(PULSE_UNITS_MAX),
      })
      .describe('Function 5 with a time in place of on starts it, and the device times it'),
    z
      .strictObject({
        way: z.literal('command'),
        address: address.describe('Holding register of output0; the others follow'),
        on: z
          .int()
          .min(0)
          .max(REGISTER_MAX)
          .describe('The command that closes it, to which its time is added'),
        off: z.int().min(0).max(REGISTER_MAX).describe('The command that opens it'),
        unitMilliseconds,
        unitsMax: z.int().min(1).max(REGISTER_MAX),
      })
      .describe('Function 6 with a command and its time starts it, and the device times it'),
    z
      .strictObject({
        way: z.literal('switched'),
        watchdog,
      })
      .describe(
        'The coils of outputs are switched, and the gateway times it; refused until its watchdog was tested at the device',
      ),
  ])
  .describe('How a relay is closed for a time');

export const profileShape = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, 'expected 1 to 64 of a-z, 0-9 and -')
    .describe('Its file is <name>.yaml'),
  product: z.string().min(1).max(64).describe('What it is called; the type of a device that gives none'),
  source: z.string().min(1).max(1_024).describe('Where its register map is published'),
  identity: identity.prefault({}),
  inputs: inputs.optional(),
  outputs: outputs.optional(),
  inputEdges: inputEdges.optional(),
  inputCounters: inputCounters.optional(),
  bootCount: anyRegister.optional().describe('Changes at each restart'),
  tamper: oneBit.optional(),
  supplyFault: oneBit.optional(),
  settings: settings.optional(),
  pulse: pulse.optional(),
});
export type Profile = z.output<typeof profileShape>;
export type Watchdog = z.output<typeof watchdog>;
