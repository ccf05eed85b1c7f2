/** What a simulated bus is made of, and what can be done to it while it runs. Everything from outside is checked here. */
import { z } from 'zod';
import { REPLY_FAULTS } from '../osdp/faults.ts';

const MODBUS_KINDS = [
  'gatehouse-io',
  'waveshare-relay-8',
  'waveshare-io-8',
  'latching-relay-8',
  'icp-das-tm-r5',
  'wago-750-do8',
  'eletechsup-r421a08',
  'expertdaq-ex9060-m',
  'moxa-iologik-e1214',
  'advantech-adam-4150',
  'seneca-z-d-in',
  'novus-digirail-2r',
] as const;
const DCON_KINDS = ['adam-4055', 'adam-4060', 'adam-4068', 'i-7060', 'i-7050'] as const;
const OSDP_KINDS = ['osdp-io'] as const;
export const INPUTS = [
  'input0',
  'input1',
  'input2',
  'input3',
  'input4',
  'input5',
  'input6',
  'input7',
] as const;

const LONGEST_MS = 3_600_000;
const milliseconds = z.number().min(0).max(LONGEST_MS);
const hexBytes = z.string().regex(/^([0-9a-fA-F]{2}){1,64}$/, 'expected up to 64 bytes in hex, such as 00ff');

/** What is wrong with a device. An absent one is not there. */
const faultsSchema = z.strictObject({
  /** Hears nothing, says nothing. */
  dead: z.boolean(),
  /** Waits so much longer than its turnaround before every reply. */
  slowMs: milliseconds,
  /** The next so many replies begin so long after their request. */
  late: z.strictObject({ milliseconds, replies: z.int().min(1) }),
  /** This share of the replies begins somewhere between these times after its request. */
  unsteady: z.strictObject({
    share: z.number().min(0).max(1),
    fromMs: milliseconds,
    toMs: milliseconds,
    seed: z.int(),
  }),
  /** The next so many requests are carried out and not answered. */
  silent: z.int().min(1),
  /** Carries out the next request that would change it, and answers none from that on. */
  silentFromWrite: z.boolean(),
  /** Acknowledges each order to close a relay, counts its time, and closes none. */
  brokenOutputs: z.boolean(),
  /** Bytes before each reply, as an idle wire without bias makes them. */
  noise: hexBytes,
  /** So many bytes are missing at the end of each reply. */
  truncate: z.int().min(1).max(64),
  /** One bit of each reply is wrong, so that its check sum is too. */
  corrupt: z.boolean(),
  /** The same of this share of the replies. */
  damage: z.strictObject({ share: z.number().min(0).max(1), seed: z.int() }),
  /** Answers in the name of another. */
  wrongAddress: z.int().min(0).max(255),
  /** A second device has the same address: what both say at once is garbage. */
  duplicate: z.boolean(),
  /** A second device has the same address, and says the same, so long after the request: behind the first one, or into it. */
  twin: z.strictObject({ turnaroundMs: milliseconds }),
  /** Refuses everything: with this exception (Modbus), as invalid (DCON). */
  refuse: z.int().min(1).max(11),
  /** Refuses what would change it, as `refuse` does, and answers all else. */
  refuseWrites: z.int().min(1).max(11),
  /** This share of the requests is not heard. The same seed loses the same ones. */
  loss: z.strictObject({ share: z.number().min(0).max(1), seed: z.int() }),
});
const faults = faultsSchema.partial();
export type Faults = z.infer<typeof faults>;

/**
 * The line hands this share of the replies on so much later, and others before them, as a device server behind a lossy network does:
 * they come late, and in another order.
 */
const outOfOrderSchema = z.strictObject({
  share: z.number().min(0).max(1),
  fromMs: milliseconds,
  toMs: milliseconds,
  seed: z.int(),
});
export type OutOfOrder = z.infer<typeof outOfOrderSchema>;

/** A fault that is null ends; those not named stay. */
const faultChanges = z.strictObject(
  Object.fromEntries(
    Object.entries(faultsSchema.shape).map(([name, schema]) => [name, schema.nullable().optional()]),
  ),
);

const hwId = z.string().regex(/^[\x21-\x7e]{1,16}$/, 'expected 1 to 16 printable characters');
const inputNames = z.enum(INPUTS);

/** As a gatehouse-io comes from the factory, where nothing else is said. */
export const settingsSchema = z.strictObject({
  /** Bits as in register 0x0100: 0 to 3 inputs, 8 to 15 outputs. */
  ioPins: z.int().min(0).max(0xffff).default(0),
  relayIndex: z.int().min(0).max(7).default(0),
  unlockDurationMilliseconds: z.int().min(100).max(600_000).default(5_000),
  useInputPinMemory: z.boolean().default(false),
  settingsVersion: z.int().min(0).max(0xffff_ffff).default(0),
});
export type DeviceSettings = z.infer<typeof settingsSchema>;

const osdpKey = z.string().regex(/^[0-9a-f]{32}$/, 'expected a key of 16 bytes in hex');

export const deviceSchema = z.strictObject({
  address: z.int().min(0).max(255),
  kind: z.enum([...MODBUS_KINDS, ...DCON_KINDS, ...OSDP_KINDS]),
  /** On the wire of a gatehouse-io only; digits are the serial number of an osdp-io; others have none. */
  hwId: hwId.optional(),
  /** Of the product; gatehouse-io only. */
  type: z.string().max(16).optional(),
  platformVersion: z.string().max(16).optional(),
  app: z.strictObject({ name: z.string().max(16), version: z.string().max(16) }).optional(),
  /** In force from the beginning; gatehouse-io only. */
  settings: settingsSchema.optional(),
  /** What else an osdp-io is. */
  osdp: z
    .strictObject({
      /** Absent: it has none, and takes the one that everybody knows. */
      key: osdpKey.optional(),
      /** Knows no secure channel. */
      isPlain: z.boolean().optional(),
      requiresSecurity: z.boolean().optional(),
      /** Restarts once it has taken a key, and is silent for so long. */
      keyRestartMs: z.int().min(1).optional(),
      /** Another maker's, as a number. */
      vendorCode: z.int().min(0).max(0xff_ff_ff).optional(),
      /** How it takes files (test/simulators/osdp/files.ts). */
      files: z
        .strictObject({
          messageMax: z.int().min(0).max(0xff_ff),
          delayMs: z.int().min(0).max(0xff_ff),
          finishing: z.int().min(0),
          endsWith: z.literal([1, 2]),
          refuses: z.strictObject({ status: z.int(), at: z.int() }),
          keeps: z.boolean(),
          isExclusive: z.boolean(),
        })
        .partial()
        .optional(),
    })
    .optional(),
  /** Between the end of a request, as the device sees it, and its reply. Not waited for when pacing is none. */
  turnaroundMs: milliseconds.default(1),
  faults: faults.default({}),
});
export type DevicePlan = z.infer<typeof deviceSchema>;

/** Noise while no one sends. */
const noiseSchema = z.strictObject({ everyMs: z.number().min(1).max(LONGEST_MS), bytes: hexBytes });
export type IdleNoise = z.infer<typeof noiseSchema>;

const KINDS: Record<'modbus' | 'dcon' | 'osdp', readonly string[]> = {
  modbus: MODBUS_KINDS,
  dcon: DCON_KINDS,
  osdp: OSDP_KINDS,
};

export const planSchema = z
  .strictObject({
    protocol: z.enum(['modbus', 'dcon', 'osdp']),
    /** modbus-tcp: a gateway in the place of a device server. */
    transport: z.enum(['pty', 'tcp', 'modbus-tcp']).default('pty'),
    /** Where it listens without a pty; 0 takes a free one. */
    tcpPort: z.int().min(0).max(65_535).default(0),
    /** Path of a symlink to the pty, so that it comes back at the same path. */
    link: z.string().min(1).optional(),
    baudRate: z.int().min(300).max(1_000_000),
    parity: z.enum(['none', 'even', 'odd']),
    stopBits: z.literal([1, 2]),
    /** exact: each byte at its time · cheap: a whole reply at the time of its last byte · none: at once. */
    pacing: z.enum(['exact', 'cheap', 'none']),
    /** What an adapter gathers before it hands it over: 16 is an FTDI as it comes, 1 one that was set to it. */
    latencyMs: z.number().min(0).max(255).default(0),
    localEcho: z.boolean().default(false),
    /**
     * Devices take what is sent at another baud rate than theirs for noise. On a pty alone, and of no parity: a pty has
     * none (pty_set_termios of Linux clears PARENB).
     */
    strictBaudRate: z.boolean().default(false),
    /** DCON only. */
    checksum: z.boolean().default(true),
    devices: z.array(deviceSchema).max(256),
  })
  .superRefine((plan, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    const isTcp = plan.transport !== 'pty';
    if (plan.transport === 'modbus-tcp' && plan.protocol !== 'modbus')
      refuse(`there is no gateway of Modbus TCP for ${plan.protocol}`);
    if (isTcp && plan.pacing === 'exact')
      refuse('exact pacing needs a pty: a serial device server sends what it has gathered');
    if (isTcp && plan.link !== undefined) refuse('a link is for a pty');
    if (isTcp && plan.strictBaudRate) refuse('a serial device server has its own baud rate');
    const seen = new Set<number>();
    for (const { address, kind } of plan.devices) {
      if (seen.has(address)) refuse(`two devices at ${address}: give one of them the fault duplicate`);
      seen.add(address);
      if (!KINDS[plan.protocol].includes(kind)) refuse(`${kind} does not speak ${plan.protocol}`);
      if (plan.protocol === 'modbus' && (address === 0 || address > 247))
        refuse(`${address} is no unit id: 1 to 247`);
      if (plan.protocol === 'osdp' && address > 126) refuse(`${address} is no address: 0 to 126`);
    }
  });
export type BusPlan = z.input<typeof planSchema>;
export type CheckedPlan = z.output<typeof planSchema>;

export const deviceChange = z.strictObject({
  /** Presses (true) and releases inputs; those not named stay. */
  inputs: z.partialRecord(inputNames, z.boolean()).optional(),
  /** Presses an input and releases it again. */
  pulseInput: z.strictObject({ input: inputNames, milliseconds: milliseconds.default(200) }).optional(),
  tamper: z.boolean().optional(),
  supplyFault: z.boolean().optional(),
  turnaroundMs: milliseconds.optional(),
  /** An osdp-io only. */
  osdp: z
    .strictObject({
      /** The next `times` replies have this fault. */
      break: z.strictObject({ fault: z.enum(REPLY_FAULTS), times: z.int().min(0).default(1) }).optional(),
      /** Somebody shows a card to reader 0. */
      card: z.strictObject({ bits: z.int().min(1).max(1_024), data: hexBytes }).optional(),
      /** Somebody presses these. */
      keys: z
        .string()
        .regex(/^[0-9*#]{1,16}$/)
        .optional(),
      /** null: it has none any more, and takes the one that everybody knows. */
      key: osdpKey.nullable().optional(),
      /** Somebody sets another address at its switch, and it restarts. */
      address: z.int().min(0).max(126).optional(),
    })
    .optional(),
  /** null: there are none any more. */
  faults: faultChanges.nullable().optional(),
  /** Off and on again; what is kept in the device's memory stays. */
  restart: z.literal(true).optional(),
  /** Another one in its place, as it came from the factory. */
  swap: z.strictObject({ hwId }).optional(),
});
export type DeviceChange = Omit<z.input<typeof deviceChange>, 'faults'> & {
  faults?: { [Name in keyof Faults]?: Faults[Name] | null } | null;
};

export const busChange = z.strictObject({
  /** false: pulls the adapter; true: plugs it in again at the same path. */
  plugged: z.boolean().optional(),
  localEcho: z.boolean().optional(),
  idleNoise: noiseSchema.nullable().optional(),
  outOfOrder: outOfOrderSchema.nullable().optional(),
  /** false: takes nothing more from the port until it is true again. */
  reading: z.boolean().optional(),
  /** So much time passes at once for the devices, and for no one else. */
  skipMs: milliseconds.optional(),
  resetStats: z.literal(true).optional(),
});
export type BusChange = z.input<typeof busChange>;

/** Bits of one character over bits per second. */
export function characterMs({
  baudRate,
  parity,
  stopBits,
}: Pick<CheckedPlan, 'baudRate' | 'parity' | 'stopBits'>) {
  return ((1 + 8 + (parity === 'none' ? 0 : 1) + stopBits) * 1_000) / baudRate;
}
