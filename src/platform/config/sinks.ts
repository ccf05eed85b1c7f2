/** Where events go: `upstream`, the one sink of most sites, and `sinks`, any number beside it. */
import { z } from 'zod';
import { PORTS, portIn } from '../../../drivers/contract/port-number.ts';
import type { Problem } from '../yaml/problem.ts';
import { duration } from './duration.ts';
import { path } from './path.ts';

/** The port of a URL whose form a pattern has checked; none is fine. */
const portInRange = portIn(/:(\d+)$/);
const HOST_AND_PORT = String.raw`(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$`;

const urlOf = (schemes: string, expected: string) =>
  z
    .string()
    .regex(new RegExp(`^(${schemes})://${HOST_AND_PORT}`), expected)
    .refine(portInRange, PORTS);
const mqttUrl = urlOf('mqtts?', 'expected mqtts://host:port or mqtt://host:port');
const urls = <Url extends z.ZodType<string>>(url: Url) =>
  z.array(url).min(1).max(8).describe('Its servers; when one fails the next is asked');

export const tlsFiles = {
  caFile: path
    .optional()
    .describe('PEM of the authority that signed the service; by default the system store'),
  certFile: path.optional().describe('PEM of the client certificate'),
  keyFile: path.optional().describe('PEM of its private key'),
};
export const signIn = {
  username: z.string().max(256).optional().describe('User name at the service'),
  passwordFile: path.optional().describe('File whose first line is the password'),
};
const mqtt = {
  protocolVersion: z.literal([4, 5]).default(5).describe('MQTT version: 5, or 4 for 3.1.1'),
  clientId: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('By default gatehouse-<systemId>, and of one in sinks -<name> behind it'),
};
const keeping = {
  maxAge: duration(60_000, 3650 * 86_400_000)
    .prefault('30d')
    .describe('Older events are dropped, with a gap record'),
  maxBytes: z
    .number()
    .int()
    .min(1_000_000)
    .max(100_000_000_000)
    .default(1_000_000_000)
    .describe('Bound on events waiting; the oldest are dropped first, with a gap record'),
};

const bounds = {
  window: z.number().int().min(1).max(1_000).default(256).describe('Events in flight'),
  ...keeping,
};

export const upstream = z.strictObject({
  url: mqttUrl.describe('The notification service'),
  ...mqtt,
  ...tlsFiles,
  ...signIn,
  ...bounds,
});

const common = {
  name: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'expected 1 to 32 of a-z, 0-9 and -')
    .describe('Unique; a sink that is renamed begins again at the oldest event that is kept'),
  format: z
    .enum(['structured', 'binary'])
    .default('structured')
    .describe('CloudEvents content mode: one JSON text, or the data alone with attributes beside it'),
};

const PLACEHOLDERS = /\{(systemId|encoderId)\}/g;
/** A topic or subject, with `{systemId}` and `{encoderId}` for what is put in. */
const template = (byDefault: string, forbidden: RegExp, what: string) =>
  z
    .string()
    .min(1)
    .max(512)
    .refine((text) => !forbidden.test(text.replace(PLACEHOLDERS, 'x')), what)
    .default(byDefault);

const TOPIC = 'gatehouse/1/{systemId}/encoders/{encoderId}/events';
const GAP_TOPIC = 'gatehouse/1/{systemId}/gaps';

const topic = (byDefault: string) =>
  template(
    byDefault,
    /[#+{}\p{Cc}]/u,
    'expected a topic without # and +; {systemId} and {encoderId} are put in',
  );

const mqttSink = z.strictObject({
  kind: z.literal('mqtt').describe('MQTT 5 or 3.1.1, QoS 1'),
  ...common,
  urls: urls(mqttUrl),
  ...mqtt,
  ...tlsFiles,
  ...signIn,
  topic: topic(TOPIC).describe('Of events'),
  gapTopic: topic(GAP_TOPIC).describe('Of gap records'),
  ...bounds,
});

const tokenFile = path
  .optional()
  .describe('File whose first line is a token; with it user name and password are not sent');

export const httpsUrl = z
  .string()
  .max(2_048)
  .regex(
    /^(https:\/\/|http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost)[:/])[^@\s]*$/,
    'expected https://host/path; http:// on a loopback address only',
  )
  .refine((url) => URL.canParse(url), 'expected a URL');

export const signingKeyFile = path
  .optional()
  .describe('File whose first line is the key of the HMAC in webhook-signature (Standard Webhooks)');

const httpsSink = z.strictObject({
  kind: z.literal('https').describe('POST over HTTPS'),
  ...common,
  urls: urls(httpsUrl),
  ...tlsFiles,
  ...signIn,
  tokenFile,
  signingKeyFile,
  batch: z
    .number()
    .int()
    .min(1)
    .max(256)
    .default(1)
    .describe('Most events of one POST; with more than 1 the body is a CloudEvents batch'),
  ...keeping,
});

const subject = (byDefault: string) =>
  template(byDefault, /[*>{}\s\p{Cc}]|^\.|\.$|\.\./u, 'expected a subject without wildcards and spaces');

export const natsUrl = urlOf('tls|nats', 'expected tls://host:port, or nats://host:port without TLS');

const natsSink = z.strictObject({
  kind: z.literal('nats').describe('NATS JetStream; its stream must be there'),
  ...common,
  urls: urls(natsUrl),
  ...tlsFiles,
  ...signIn,
  tokenFile,
  subject: subject('gatehouse.1.{systemId}.encoders.{encoderId}.events').describe('Of events'),
  gapSubject: subject('gatehouse.1.{systemId}.gaps').describe('Of gap records'),
  ...bounds,
});

export const sink = z.discriminatedUnion('kind', [mqttSink, httpsSink, natsSink]);

export type SinkConfig = z.output<typeof sink>;

const SECURE = { mqtt: 'mqtts', https: 'https', nats: 'tls' } as const;

interface Sections {
  upstream?: z.output<typeof upstream> | undefined;
  sinks: readonly SinkConfig[];
}

export interface PlacedSink {
  sink: SinkConfig;
  /** Where it stands in the configuration. */
  at: PropertyKey[];
}

/** All of them, in order; upstream is the first, and a list of one for most. */
export function placedSinks({ upstream, sinks }: Sections): PlacedSink[] {
  const first: PlacedSink[] = [];
  if (upstream) {
    const { url, ...rest } = upstream;
    const usual = { format: 'structured', topic: TOPIC, gapTopic: GAP_TOPIC } as const;
    const sink: SinkConfig = { kind: 'mqtt', name: 'upstream', urls: [url], ...usual, ...rest };
    first.push({ sink, at: ['upstream'] });
  }
  return [...first, ...sinks.map((sink, index) => ({ sink, at: ['sinks', index] }))];
}

export const sinksOf = (sections: Sections): SinkConfig[] => placedSinks(sections).map(({ sink }) => sink);

/** The settings that name files. */
export const SINK_FILES = [
  'caFile',
  'certFile',
  'keyFile',
  'passwordFile',
  'tokenFile',
  'signingKeyFile',
] as const;

/** The files that a sink names, with the setting of each. */
export function filesOfSink(sink: SinkConfig): { name: string; file: string }[] {
  const settings = sink as Partial<Record<string, unknown>>;
  return SINK_FILES.flatMap((name) => {
    const file = settings[name];
    return typeof file === 'string' ? [{ name, file }] : [];
  });
}

/** What cannot be true together. */
export function contradictingSinks(sections: Sections): Problem[] {
  const all = placedSinks(sections);
  return all.flatMap(({ sink, at }, index): Problem[] => {
    const settings = sink as Partial<Record<string, unknown>>;
    const problem = (name: string, message: string, ...others: string[]): Problem => ({
      path: [...at, name],
      message,
      others: others.map((other) => [...at, other]),
    });
    const needs = [
      ['certFile', 'keyFile'],
      ['keyFile', 'certFile'],
      ['passwordFile', 'username'],
    ] as const;
    const alone = needs.filter(([name, needed]) => settings[name] && !settings[needed]);
    const urlsName = at[0] === 'upstream' ? 'url' : 'urls';
    const isPlain = sink.urls.every((url) => !/^(mqtts|tls|https):/.test(url));
    const twice = all.findIndex((other) => other.sink.name === sink.name) < index;
    return [
      ...alone.map(([name, needed]) => problem(name, `needs ${needed} as well`, needed)),
      ...(['caFile', 'certFile'] as const)
        .filter((name) => isPlain && settings[name])
        .map((name) =>
          problem(name, `has no effect without TLS: use ${SECURE[sink.kind]}:// in ${urlsName}`, urlsName),
        ),
      ...(sink.kind === 'mqtt' && sink.format === 'binary' && sink.protocolVersion === 4
        ? [problem('format', 'binary needs MQTT 5', 'protocolVersion')]
        : []),
      ...(sink.kind === 'https' && sink.format === 'binary' && sink.batch > 1
        ? [problem('format', 'a batch is always structured', 'batch')]
        : []),
      ...(twice ? [problem('name', 'another sink has this name')] : []),
    ];
  });
}
