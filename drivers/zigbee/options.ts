/** What a Zigbee gateway is configured with, and what the daemon adds to it. */
import { z } from 'zod';
import { PORTS, portIn } from '../contract/port-number.ts';
import { channel } from '../contract/settings.ts';
import { archive, ieeeAddress, networkName } from '../contract/zgate.ts';

/** Locks of one gateway that are known by name: more than a coordinator takes. */
const KNOWN_MAX = 1_024;

const port = z
  .string('expected a device such as /dev/serial/by-id/…, tcp://host:port or tls://host:port')
  .max(4_096)
  .regex(
    /^(\/[^\0]+|(tcp|tls):\/\/(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5})$/,
    'expected a device such as /dev/serial/by-id/…, tcp://host:port or tls://host:port of a gateway',
  )
  .refine(portIn(/^t(?:cp|ls):.*:(\d+)$/), PORTS);

/** Adapters of zigbee-herdsman that could not be made safe; undefined: zod's own words. */
function refusedAdapter({ input }: { input?: unknown }): string | undefined {
  if (input !== 'deconz') return undefined;
  return 'deconz (ConBee, RaspBee) is not supported: its driver in zigbee-herdsman keeps what is to be sent in a queue without a time limit, so that an unlock could be sent late; connect a coordinator with Z-Stack (zstack) or EmberZNet (ember)';
}

/** `links[].options` of the configuration. */
export const zigbeeLinkOptions = z.strictObject({
  port: port.describe(
    "Serial device (by-id paths survive replugging); tls://host:port of a gateway, verified against its network's cert; or tcp://host:port, which is neither secret nor verified",
  ),
  adapter: z
    .enum(['zstack', 'ember'], { error: refusedAdapter })
    .default('zstack')
    .describe(
      'What the coordinator speaks: zstack, Z-Stack ZNP of Texas Instruments; ember, EmberZNet (EZSP 13 or newer) of Silicon Labs',
    ),
  baudRate: z
    .literal([115_200, 230_400, 460_800, 921_600])
    .default(115_200)
    .describe('Of a serial coordinator'),
  rtscts: z
    .boolean()
    .default(false)
    .describe(
      'Hardware flow control of a serial coordinator, where its maker says so; without it EmberZNet is given XON/XOFF',
    ),
  manufacturerCode: z
    .int()
    .min(1)
    .max(0xff_fe)
    .optional()
    .describe("Of the locks' own cluster; without it locks are taken for standard ones"),
  unlockBehindRouters: z
    .boolean()
    .default(true)
    .describe(
      'false: a lock that may sleep behind a router is not unlocked, since routers of some makers hold an unlock for up to 30 s',
    ),
});

/** What the driver is opened with. */
export const zigbeeOptions = zigbeeLinkOptions.extend({
  /** Drawn at random by the daemon, once for good. */
  network: z.strictObject({
    panId: z.int().min(1).max(0xff_fe),
    extPanId: ieeeAddress,
    networkKey: z.string().regex(/^[0-9a-f]{32}$/),
  }),
  /** Where a network may be formed; the first is taken. One that is formed moves by `moveChannel` only. */
  allowedChannels: z.array(channel).min(1).max(16),
  /** PEM: the authority, or the very certificate, of a gateway on tls://. */
  cert: z.string().max(65_536).nullable(),
  /** The latest snapshot (zgate.ts), put back when the files of the network are gone or damaged. */
  snapshot: archive.nullable(),
  /** Puts the network of the snapshot on the coordinator, whatever is on that. Only ever because a person asked. */
  restore: z.boolean(),
  /** A snapshot of a coordinator of the other make is put there without the link keys of its locks. Only ever because a person asked. */
  withoutKeys: z.boolean().default(false),
  /** Forms a network also on a coordinator that carries this one of another gateway. Only ever because a person asked. */
  newNetwork: networkName.nullable().default(null),
  /** Nothing of what a person asked for is done from then on, epoch milliseconds; null: nothing was asked. */
  askedUntil: z.int().nullable().default(null),
  /** Locks that doors are bound to: a network without them is not theirs. */
  knownLocks: z.array(ieeeAddress).max(KNOWN_MAX),
  /** When locks were last heard of, epoch milliseconds; what the driver keeps itself may be older. */
  lastSeen: z.record(ieeeAddress, z.int().min(0)),
  /** The channel of the network at that time. */
  heardOn: z.record(ieeeAddress, channel).default({}),
  /** Locks that were not there by their last report: they are not, until they are heard of. */
  missed: z.array(ieeeAddress).max(KNOWN_MAX).default([]),
  /** For this link alone; made (0700) when it does not exist. */
  stateDirectory: z.string().min(1).max(4_096),
});
export type ZigbeeOptions = z.output<typeof zigbeeOptions>;
