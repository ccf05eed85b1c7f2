/**
 * The configuration: one zod schema is the type, the validation, the defaults and the JSON schema. It holds what needs
 * a restart (wiring, addresses, certificates); what changes over the interface lives in the database.
 * Reading a file, checks across settings and explaining mistakes are config-file.ts.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { HIGHEST_PORT, PORTS, portIn } from '../../../drivers/contract/port-number.ts';
import { dconOptions } from '../../../drivers/dcon/options.ts';
import { modbusOptions } from '../../../drivers/modbus/options.ts';
import { osdpOptions } from '../../../drivers/osdp/options.ts';
import { zigbeeLinkOptions } from '../../../drivers/zigbee/options.ts';
import { recipient } from '../age.ts';
import { isAddressOrNetwork } from '../http/address.ts';
import { access } from './access.ts';
import { cluster } from './cluster.ts';
import { duration } from './duration.ts';
import { encoderBroker } from './encoder-broker.ts';
import { path } from './path.ts';
import { sink, upstream } from './sinks.ts';

/** "host:port"; port 0 lets the system choose. */
const listenAddress = z
  .string('expected host:port, such as 0.0.0.0:8443')
  .regex(/^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, 'expected host:port, such as 0.0.0.0:8443')
  .transform((text) => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
  })
  .refine(({ port }) => port <= HIGHEST_PORT, `expected a port up to ${HIGHEST_PORT}`);

/** The port of a URL whose form a pattern has checked; none is fine. */
const portInRange = portIn(/:(\d+)$/);

const pathSegment = z.string().regex(/^[a-z0-9-]{1,32}$/, 'expected a path segment of a-z, 0-9 and -');

const http = z.strictObject({
  listen: listenAddress.prefault('0.0.0.0:8443').describe('Where the interface is served'),
  plain: z.boolean().default(false).describe('Serve without TLS; allowed on a loopback address only'),
  tls12: z.boolean().default(false).describe('Accept TLS 1.2, too, for clients without TLS 1.3'),
  names: z
    .array(z.string().regex(/^[A-Za-z0-9.:-]{1,253}$/, 'expected a host name or an IP address'))
    .default([])
    .describe('Further host names and addresses the HTTPS certificate is valid for'),
  certFile: path
    .optional()
    .describe(
      "PEM of the site's own HTTPS certificate, its chain behind it; for clients that ask for one of its names, the others get the site CA's",
    ),
  keyFile: path.optional().describe('PEM of its private key, RSA or ECDSA'),
  trustedProxies: z
    .array(
      z
        .string()
        .refine(isAddressOrNetwork, 'expected an IP address or a network, such as 10.0.0.7 or 10.0.0.0/24'),
    )
    .optional()
    .describe(
      'Proxies whose X-Forwarded-For is believed, by address or network; by default none, and this host with plain',
    ),
  corsOrigins: z
    .array(
      z
        .string()
        .refine(
          (text) => URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text,
          'expected an origin as browsers send it, such as https://desk.example: lower case, no path, no default port',
        ),
    )
    .max(16)
    .default([])
    .describe('Origins of other programs whose pages may use the interface, with a token; none by default'),
  basePath: z
    .string()
    .regex(/^(\/[A-Za-z0-9._~-]+)*$/, 'expected a path such as /api, without a slash at its end')
    .default('')
    .describe('Comes before every path of the interface'),
  productSegment: pathSegment.default('access').describe('The <product> segment of the door paths'),
  requestsPerSecond: z.number().int().min(1).max(100_000).default(20).describe('Sustained rate per caller'),
  requestBurst: z.number().int().min(1).max(100_000).default(40).describe('Burst per caller'),
  pmsRequestsPerSecond: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(50)
    .describe('Sustained rate of a caller with the role pms'),
  pmsRequestBurst: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(100)
    .describe('Burst of a caller with the role pms'),
});

const encoders = z.strictObject({
  broker: encoderBroker,
  listen: listenAddress
    .prefault('0.0.0.0:8883')
    .describe('Where encoders connect (MQTT over TLS); without effect with a broker of the site'),
  endpoint: z
    .string()
    .regex(/^mqtts:\/\/(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, 'expected mqtts://host:port')
    .refine(portInRange, PORTS)
    .optional()
    .describe(
      'The address that encoders get at registration; by default this host and the port of listen, or the first of broker.urls',
    ),
  vendorRoots: z
    .array(path)
    .default([])
    .describe('PEM files of the vendor roots that encoder certificates must chain to'),
  vendorKey: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, _ or -')
    .default('vendor')
    .describe('Name of the vendor field in the registration answer'),
  acceptExpiredDeviceCertificates: z
    .boolean()
    .default(false)
    .describe('Admit factory certificates outside their validity, for sites whose clock cannot be trusted'),
  registrationsPerHour: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .default(6)
    .describe('Registrations per encoder and hour'),
  keepAlive: duration(1_000, 30_000)
    .refine((ms) => ms % 1_000 === 0, 'expected whole seconds, as MQTT counts them')
    .prefault('20s')
    .describe('MQTT keep-alive that encoders get at registration; silence of 1.5 times this is a lost link'),
  writeExpiry: duration(1_000, 86_400_000)
    .prefault('15m')
    .describe('How long an accepted write request may take'),
});

const claim = z.string().regex(/^[^\p{Cc}\s]{1,256}$/u, 'expected the name of a claim');

const oidc = z.strictObject({
  issuer: z.url('expected a URL').max(512).describe('The `iss` of its tokens, letter by letter'),
  audience: z.string().min(1).max(512).describe('What `aud` of a token must name'),
  algorithms: z
    .array(z.enum(['ES256', 'RS256', 'PS256', 'EdDSA']))
    .min(1)
    .default(['ES256', 'RS256', 'PS256', 'EdDSA'])
    .describe('Signatures that are accepted'),
  jwksUrl: z
    .string()
    .regex(
      /^(https:\/\/|http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost)[:/])/,
      'expected https://…; http:// on a loopback address only',
    )
    .max(2_048)
    .refine((url) => URL.canParse(url), 'expected a URL')
    .optional()
    .describe('Where its keys are fetched, in the background; they are kept on the disk'),
  jwksFile: path
    .optional()
    .describe('In place of jwksUrl: a file with its keys, at a site without a way to it'),
  caFile: path
    .optional()
    .describe('PEM of the authority that signed the server of jwksUrl; by default the system store'),
  systemClaim: claim.default('system_id').describe('Claim that must be the UUID of this system'),
  rolesClaim: claim.default('roles').describe('Claim with the roles, or a path to it: realm_access.roles'),
  leeway: duration(0, 300_000).prefault('60s').describe('By how much clocks may differ'),
  jwksMaxAge: duration(3_600_000, 3650 * 86_400_000)
    .prefault('180d')
    .describe('How long fetched keys are good while the provider cannot be reached'),
});

const auth = z.strictObject({
  oidc: oidc.optional().describe("The site's identity provider; without it only local tokens are accepted"),
  failureBurst: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(10)
    .describe('Wrong credentials from one address, at once, before the answer is 429'),
  failuresPerMinute: z.number().int().min(1).max(100_000).default(12).describe('And how many more a minute'),
});

const DAY_TIME = /^([01]\d|2[0-3]):[0-5]\d$/;
const backup = z.strictObject({
  recipients: z
    .array(recipient)
    .min(1, 'expected at least one public key')
    .max(16)
    .describe('Public keys (age1…) whose secret keys open the archives; gatehouse backup key makes one'),
  folder: path
    .optional()
    .describe(
      'Where archives are put; by default backups in dataDirectory. The service must be able to write there',
    ),
  schedule: z
    .string()
    .refine(
      (text) => DAY_TIME.test(text) || duration(3_600_000, 31 * 86_400_000).safeParse(text).success,
      'expected a time of the day such as 03:20, or an interval such as 6h (1h to 31d)',
    )
    .default('03:20')
    .describe('When the daemon makes one: each day at this time of the host, or after this interval'),
  keep: z
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(14)
    .describe('Archives kept there; the oldest are removed'),
});

const audit = z.strictObject({
  retentionDays: z
    .number()
    .int()
    .min(30)
    .max(3_650)
    .default(400)
    .describe('Entries older than so many days are removed, up to a signed checkpoint; export them before'),
});

const name = z.string().regex(/^[a-z0-9-]{1,32}$/, 'expected 1 to 32 of a-z, 0-9 and -');
const linkId = name.describe('Name of the link, unique');
const host = (byDefault: string) =>
  name.default(byDefault).describe('Links with the same host share one process');

const loopbackLink = z.strictObject({
  id: linkId,
  protocol: z.literal('loopback').describe('A link that answers itself, to check an installation'),
  host: host('field'),
  options: z
    .record(z.string().max(64), z.json())
    .default({})
    .describe('Settings of the protocol; the driver says what is wrong with them'),
});

const modbusLink = z.strictObject({
  id: linkId,
  protocol: z.literal('modbus').describe('Modbus RTU on an RS-485 bus'),
  host: host('rs485'),
  options: modbusOptions.describe('How the bus is wired, and what is on it'),
});

const dconLink = z.strictObject({
  id: linkId,
  protocol: z
    .literal('dcon')
    .describe('DCON, the ASCII protocol of ADAM-4000 and I-7000 modules, on an RS-485 bus'),
  host: host('rs485'),
  options: dconOptions.describe('How the bus is wired, and what is on it'),
});

const zigbeeLink = z
  .strictObject({
    id: linkId,
    protocol: z.literal('zigbee').describe('A Zigbee coordinator and its locks'),
    options: zigbeeLinkOptions.describe('Where the coordinator is; zgates gives it its network'),
  })
  // The library of Zigbee coordinators holds one in each process.
  .transform((own) => ({ ...own, host: `zigbee-${own.id}` }));

const osdpLink = z.strictObject({
  id: linkId,
  protocol: z.literal('osdp').describe('OSDP, the protocol of readers and I/O controllers, on an RS-485 bus'),
  host: host('rs485'),
  options: osdpOptions.describe('How the bus is wired, and what is on it'),
});

const link = z.discriminatedUnion('protocol', [loopbackLink, modbusLink, dconLink, osdpLink, zigbeeLink]);

const uuid = z.guid('expected a UUID').transform((id) => id.toLowerCase());

const zgate = z.strictObject({
  deviceId: uuid.describe('UUID the gateway has on the interface, drawn once for good (uuidgen)'),
  link: name.describe('Id of the link it is on'),
  networkId: uuid.describe('UUID of its network, one of networks'),
  name: z.string().min(1).max(128).optional().describe('Its name until the interface gives it another'),
  type: z.string().min(1).max(128).optional().describe('Its type until the gateway reports its own'),
});

const network = z.strictObject({
  id: uuid.describe('UUID the network has on the interface, drawn once for good (uuidgen)'),
  description: z
    .string()
    .min(1)
    .max(1_024)
    .optional()
    .describe('Its description until the interface gives it another'),
});

const doors = z.strictObject({
  lqiMin: z.int().min(0).max(255).default(60).describe('Link quality from which on a lock is lqiOK'),
  rssiMin: z.int().min(-128).max(0).default(-85).describe('dBm from which on a lock is rssiOK'),
  expectedCheckIn: duration(1_000, 30 * 86_400_000)
    .prefault('1h')
    .describe('How often a lock is heard of: it is recentlySeen within twice this'),
  eventWindow: duration(60_000, 3650 * 86_400_000)
    .prefault('7d')
    .describe('A lock with an event within this is lastReceivedEvent'),
});

const firmware = z.strictObject({
  batteryMin: z
    .int()
    .min(0)
    .max(65_535)
    .default(4_800)
    .describe('Millivolts a lock must have to be given new firmware: of four alkaline cells, 1.2 V each'),
  batteryPercentMin: z
    .int()
    .min(0)
    .max(100)
    .default(30)
    .describe('The same in percent, of a lock that reports no voltage'),
});

export const configSchema = z.strictObject({
  dataDirectory: path
    .default('/var/lib/gatehouse')
    .describe('Database, keys and certificates; nothing else may write here'),
  adminSocket: path
    .optional()
    .describe('Unix socket of the command line; by default admin.sock in dataDirectory'),
  systemId: z
    .guid('expected a UUID')
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('UUID of the system; drawn at first start when absent'),
  http: http.prefault({}).describe('The interface for clients'),
  auth: auth.prefault({}).describe('Who may use the interface'),
  backup: backup.optional().describe('Archives that the daemon makes; without it only gatehouse backup does'),
  audit: audit.prefault({}).describe('How long it is kept who did what'),
  encoders: encoders.prefault({}).describe('The link to card encoders'),
  upstream: upstream
    .optional()
    .describe('The notification service; without it and sinks events stay on this host'),
  sinks: z
    .array(sink)
    .max(16)
    .default([])
    .describe('Further places that get all events, each at its own pace'),
  cluster: cluster
    .optional()
    .describe('A second gateway that takes over when this one is gone; without it this one is alone'),
  links: z.array(link).max(64).default([]).describe('Field links: what is wired to this host'),
  networks: z.array(network).max(64).default([]).describe('Networks that group Zigbee gateways'),
  zgates: z.array(zgate).max(64).default([]).describe('Zigbee gateways, each on a link of its own'),
  doors: doors.prefault({}).describe('When the connection of a lock counts as good'),
  access: access.prefault({}).describe('Who decides about cards that are read'),
  firmwareDirectory: path
    .optional()
    .describe('Folder with the firmware files that locks and OSDP devices may be given'),
  firmware: firmware.prefault({}).describe('When a lock may be given new firmware'),
  log: z
    .strictObject({
      level: z.enum(['debug', 'info', 'warn', 'error']).default('info').describe('Least severity'),
    })
    .prefault({})
    .describe('What is logged'),
});

export type Config = z.output<typeof configSchema>;
/** What a file or a test may write. */
export type ConfigInput = z.input<typeof configSchema>;

/** What editors check a file against; config/gatehouse.schema.json is this. */
export function configJsonSchema(): z.core.JSONSchema.BaseSchema {
  return { title: 'Gatehouse configuration', ...z.toJSONSchema(configSchema, { io: 'input' }) };
}

/** In dataDirectory, by default. */
export const ADMIN_SOCKET = 'admin.sock';

/** The unix socket of the command line. */
export function adminSocketOf(config: Config): string {
  return config.adminSocket ?? join(config.dataDirectory, ADMIN_SOCKET);
}
