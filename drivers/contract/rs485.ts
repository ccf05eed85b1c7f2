/**
 * Commands and reports of RS-485 links, beside settings (settings.ts); one contract for Modbus, DCON and OSDP.
 *
 * Commands (DriverCommand.kind, data → answer):
 *  - `watch`   Watch → null        poll these devices too, besides those of the options; a new list replaces the old
 *  - `probe`   Probe → Probed      ask addresses who is there, and how well it can be heard: discovery and bus doctor
 *  - `pulse`   Pulse → Pulsed      close a relay for a time. At most once: OUTCOME_UNKNOWN when no one knows whether
 *  - `endPulse` EndPulse → null     open a relay before its pulse is over. REFUSED: the device has no way to do so
 *  - `testWatchdog` WatchdogTest → WatchdogTested   close a relay that the gateway times, ask its device nothing, and see that its
 *                                  watchdog has opened it. REFUSED: it has not
 *  - `pair`    Pair → Paired       OSDP: give the device at an address its key, within a window of time. NO_REPLY, REFUSED:
 *                                  no KEYSET was sent; OUTCOME_UNKNOWN: one was, and the device has not proved the key
 *  - `trace`   Trace → Traced      what went over the bus since the last time; the first one begins it. BUSY: another
 *                                  one goes on
 *
 * State reports: `device:<hwId>` (Rs485Report of settings.ts), when something of it changes and every few seconds ·
 * `bus` (BusReport), every second. Figures are rounded as they are taken in: people read them.
 * Events (DriverEvent.kind → data): `input` InputEvent · `alarm` AlarmEvent · `credential` CredentialEvent
 */

import { z } from 'zod';
import { BAUD_RATES, PARITIES } from '../bus/options.ts';
import { busWarningSchema } from './bus-warnings.ts';
import { hwId, INPUT_PINS, RELAY_MAX, rs485Apply, UNLOCK_MAX_MS, UNLOCK_MIN_MS } from './settings.ts';

/** Milliseconds of each pulse that holds the relay of a door that stands open: so long it stays closed after the gateway died. */
export const HOLD_MS = 20_000;

const text = z.string().max(128);
const count = z.int().min(0);
/** Unit id, module address. 0 is a device only where the protocol has it so. */
export const address = z.int().min(0).max(255);

const WATCHED_MAX = 256;
/** AES-128. */
const key = z.instanceof(Uint8Array).refine(({ length }) => length === 16, 'expected a key of 16 bytes');
export const watch = z.strictObject({
  devices: z.array(z.strictObject({ address, hwId })).max(WATCHED_MAX),
  /**
   * OSDP: the keys (SCBK) of the devices that have one. `pending`: a key that was drawn for the device and that it has not
   * proved; a KEYSET may have reached it. Never to be logged.
   */
  keys: z
    .array(z.strictObject({ address, key: key.optional(), pending: key.optional() }))
    .max(WATCHED_MAX)
    .optional(),
});
export type Watch = z.infer<typeof watch>;

export const baudRate = z.literal(BAUD_RATES);
export const parity = z.enum(PARITIES);
export const lineSettings = z.strictObject({ baudRate, parity, stopBits: z.literal([1, 2]) });
export type LineSettings = z.infer<typeof lineSettings>;

/** Few at a time, so that a scan shows its progress and ends soon after it was cancelled. */
export const PROBE_MAX = 16;
export const probe = z.strictObject({
  addresses: z.array(address).min(1).max(PROBE_MAX),
  /** How often each is asked; a device that never answered is asked no more than twice. */
  repeats: z.int().min(1).max(100),
  /** Ask with these characters instead of those of the configuration, which all else goes on with. */
  line: lineSettings.optional(),
});
export type Probe = z.infer<typeof probe>;

/** What became of the exchanges with one address. */
export const wireCounters = z.object({
  /** Good ones. */
  replies: count,
  timeouts: count,
  crc: count,
  framing: count,
  /** The device answered with an error. */
  refusals: count,
  /** Sound frames that were no answer to the open question, and local echo that differed from what was sent. */
  collisions: count,
  /** Replies that came after their time; the exchange itself counts among `timeouts`. */
  late: count,
});
export type WireCounters = z.infer<typeof wireCounters>;

/** The clock of a computer measures a wire to a tenth of a millisecond. */
const milliseconds = z.number().min(0).transform(rounded(10));

function rounded(perUnit: number): (value: number) => number {
  return (value) => Math.round(value * perUnit) / perUnit;
}

export const probed = z.object({
  results: z.array(
    z.object({
      address,
      counters: wireCounters,
      /** Between the end of the request and the beginning of the reply. */
      turnaroundMs: z.object({ min: milliseconds, median: milliseconds, max: milliseconds }).nullable(),
      /** null: no one answered, or it cannot say who it is by this protocol. */
      identity: z
        .object({ hwId, type: text.nullable(), version: text.nullable(), profile: text.nullable() })
        .nullable(),
    }),
  ),
});
export type Probed = z.infer<typeof probed>;

export const pulse = z.strictObject({
  hwId,
  relay: z.int().min(0).max(RELAY_MAX),
  milliseconds: z.int().min(UNLOCK_MIN_MS).max(UNLOCK_MAX_MS),
  /** Of the settings that name this relay and time. REFUSED, and nothing is sent, where the device has others, or was sent others and has not shown since which it has. */
  settingsVersion: rs485Apply.shape.settingsVersion,
});
export type Pulse = z.infer<typeof pulse>;
export const pulsed = z.object({
  relay: z.int(),
  /** As the device can do it, rounded up. */
  milliseconds: z.int(),
  /** Who opens the relay again, also when the other one dies. */
  timedBy: z.enum(['device', 'gateway']),
});
export type Pulsed = z.infer<typeof pulsed>;

export const endPulse = z.strictObject({ hwId, relay: pulse.shape.relay });
export type EndPulse = z.infer<typeof endPulse>;

export const watchdogTest = z.strictObject({ hwId, relay: pulse.shape.relay });
export type WatchdogTest = z.infer<typeof watchdogTest>;
/** So often a test lets it run out: the second time shows that one which has run out can be armed again. */
export const WATCHDOG_EXPIRIES = 2;
export const watchdogTested = z.object({
  relay: z.int(),
  /** Without a request, before the relay was looked at. */
  waitedMilliseconds: z.int(),
  /** As in the report of the device (settings.ts). */
  proof: z.string().max(128),
});
export type WatchdogTested = z.infer<typeof watchdogTested>;

/** Longer than a technician stands at one reader. */
export const PAIRING_MAX_MS = 300_000;
export const pair = z.strictObject({
  address,
  /** Drawn for this device alone, and stored before it is sent. */
  key,
  milliseconds: z.int().min(1_000).max(PAIRING_MAX_MS),
});
export type Pair = z.infer<typeof pair>;
export const paired = z.object({ hwId });
export type Paired = z.infer<typeof paired>;

/** Of one answer. */
export const TRACE_PACKETS_MAX = 512;
export const trace = z.strictObject({
  /** Drawn for this trace: another one meanwhile is refused. */
  id: z.string().min(1).max(64),
  /** The last command of the trace: what is left is returned at once. */
  last: z.boolean(),
  /** Show in clear what is encrypted (OSDP), from the first one on; keys, cards and what is typed are blanked. */
  decrypt: z.boolean().optional(),
});
export type Trace = z.infer<typeof trace>;
export const traced = z.object({
  /** Packets that went over the bus before these and were not kept, for no one came for them in time. */
  dropped: count,
  /** Packets that are kept for the next answer. */
  left: count,
  packets: z
    .array(
      z.object({
        /** Epoch microseconds: when it was handed to the port, or its first byte was read from there. */
        at: z.int().min(0),
        /** By us; else it was heard. */
        sent: z.boolean(),
        bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array, 'expected bytes'),
        /** Some of the bytes are blanked: they hold a key, or what opens a door. */
        concealed: z.boolean(),
        /** Not as on the wire: what was encrypted is in clear. */
        decrypted: z.boolean(),
      }),
    )
    .max(TRACE_PACKETS_MAX),
});
export type Traced = z.infer<typeof traced>;

const COMMAND_BOUNDS_MAX = 16;
const histogramReading = z.object({
  atMost: z.array(z.object({ bound: z.number(), count })).max(COMMAND_BOUNDS_MAX),
  count,
  sum: z.number().min(0),
});

export const busReport = z.object({
  /** 0 to 1: how much of the last seconds the wire was busy. */
  utilisation: z.number().min(0).max(1).transform(rounded(100)),
  pollsPerSecond: z.number().min(0).transform(rounded(10)),
  /** Bytes that came while no question was open. */
  strayBytes: count,
  /**
   * Commands of people and what ends their pulses, since the bus was opened: from when one was queued to its reply. Those
   * without a reply are in the counters.
   */
  commandSeconds: histogramReading,
  /** What a technician should mend. */
  warnings: z.array(busWarningSchema).max(16),
  devices: z
    .array(
      z.object({
        address,
        alive: z.boolean(),
        /** Learned; null until it answered. */
        turnaroundMs: milliseconds.nullable(),
        /** From poll to poll, as it was lately. */
        refreshMs: milliseconds.nullable(),
        /** Since its last answer; null: there was none since the link came up. */
        heardMsAgo: milliseconds.nullable(),
        counters: wireCounters,
      }),
    )
    .max(WATCHED_MAX),
});
export type BusReport = z.infer<typeof busReport>;

/**
 * Monotonic milliseconds, of the clock that all processes share: it did not happen before, to within one exchange. The device was asked
 * then and had nothing to say. null: not known, as of the first reading; such an event is old for all that is known.
 */
const since = z.number().nullable().default(null);

/** An input became active. `total` counts its activations since the driver began. */
export const inputEvent = z.object({
  hwId,
  since,
  input: z.enum(INPUT_PINS),
  /** More than one when several came between two readings. */
  activations: z.int().min(1),
  total: count,
  /** Epoch milliseconds. */
  at: z.int(),
});
export type InputEvent = z.infer<typeof inputEvent>;

/** Of OSDP: the wire to a device is suspect, or the device does not do what is required. */
export const SECURITY_ALARMS = [
  /** A reply whose MAC is false: somebody else speaks. */
  'forged',
  /** A reply without security inside a session. */
  'clearText',
  /** Replies to questions long answered. */
  'replayed',
  /** Two devices answer to one address, or one to another's. */
  'duplicateAddress',
  /** The session is lost again and again, by refusals that no one signed. */
  'sessionLost',
  /** The device does not know the key, or is another one. */
  'wrongKey',
  /** The device, or somebody between, wants less security than is required. */
  'downgrade',
  /** The device wants a secure channel, and none is configured. */
  'securityRequired',
  /** The device did not take the key it was given. */
  'keyRefused',
] as const;
/** A supervised line is cut, or shorted. */
const INPUT_FAULTS = ['input0Fault', 'input1Fault', 'input2Fault', 'input3Fault'] as const;
/** relay: one is closed after its pulse (`relayFault` of the report, stillClosed). */
export const ALARMS = ['tamper', 'supply', 'relay', ...INPUT_FAULTS, ...SECURITY_ALARMS] as const;

export const alarmEvent = z.object({
  hwId,
  alarm: z.enum(ALARMS),
  raised: z.boolean(),
  at: z.int(),
});
export type AlarmEvent = z.infer<typeof alarmEvent>;

/** A card was shown, or keys were pressed. Keys may be a PIN, so only their number is reported. */
export const credentialEvent = z.object({
  hwId,
  since,
  reader: z.int().min(0).max(255),
  format: z.enum(['raw', 'wiegand', 'keypad']),
  /** Of a card, in hex, the first bit highest; null for keys. */
  bits: z
    .string()
    .regex(/^[0-9a-f]{0,2800}$/)
    .nullable(),
  /** Bits of the card, or keys. */
  count,
  at: z.int(),
});
export type CredentialEvent = z.infer<typeof credentialEvent>;
