/** Which broker stands between the gateway and its encoders: the embedded one, or one of the site. */
import { z } from 'zod';
import { PORTS, portIn } from '../../../drivers/contract/port-number.ts';
import type { Problem } from '../yaml/problem.ts';
import { path } from './path.ts';

const portInRange = portIn(/:(\d+)$/);
const HOST = String.raw`(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)`;
const LOOPBACK = String.raw`(127(\.\d{1,3}){3}|\[::1\]|localhost)`;

/** Key blocks go over it, so that without TLS it does not leave this host. */
const url = z
  .string()
  .regex(
    new RegExp(String.raw`^(mqtts://${HOST}|mqtt://${LOOPBACK})(:\d{1,5})?$`),
    'expected mqtts://host:port; mqtt:// on a loopback address only',
  )
  .refine(portInRange, PORTS);

const external = z.strictObject({
  urls: z.array(url).min(1).max(8).describe('Servers of the broker; when one fails the next is asked'),
  protocolVersion: z
    .literal([4, 5])
    .default(4)
    .describe('MQTT version of the gateway: 4 for 3.1.1, which every broker speaks, or 5'),
  clientId: z.string().min(1).max(64).optional().describe('By default gatehouse-<systemId>'),
  caFile: path
    .optional()
    .describe('PEM of the authority that signed the broker; encoders get it as what they trust'),
  certFile: path.optional().describe("PEM of the gateway's client certificate"),
  keyFile: path.optional().describe('PEM of its private key'),
  username: z.string().max(256).optional().describe('User name of the gateway'),
  passwordFile: path.optional().describe('File whose first line is its password'),
  administration: z
    .enum(['none', 'mosquitto-dynsec', 'crl-file'])
    .default('none')
    .describe(
      'Who lets encoders in and shuts them out: the operator (none), or the gateway by the dynamic security of mosquitto, or by a certificate revocation list, encoders.crl in dataDirectory',
    ),
});

export const encoderBroker = z
  .union([z.literal('embedded'), external])
  .default('embedded')
  .describe('The broker of the encoders: embedded, or one of the site');

export type EncoderBroker = z.output<typeof encoderBroker>;
export type ExternalBroker = z.output<typeof external>;

export const isExternal = (broker: EncoderBroker): broker is ExternalBroker => broker !== 'embedded';

/** The settings that name files. */
export const BROKER_FILES = ['caFile', 'certFile', 'keyFile', 'passwordFile'] as const;

/** The files that it names, with the setting of each. */
export function filesOfBroker(
  broker: EncoderBroker,
): { name: (typeof BROKER_FILES)[number]; file: string }[] {
  if (!isExternal(broker)) return [];
  return BROKER_FILES.flatMap((name) => {
    const file = broker[name];
    return file === undefined ? [] : [{ name, file }];
  });
}

/** What cannot be true together. */
export function contradictingBroker(broker: EncoderBroker, endpoint: string | undefined): Problem[] {
  if (!isExternal(broker)) return [];
  const at = ['encoders', 'broker'];
  const problems: Problem[] = [];
  const wrong = (name: string, message: string, other: string) =>
    problems.push({ path: [...at, name], message, others: [[...at, other]] });
  const needs = [
    ['certFile', 'keyFile'],
    ['keyFile', 'certFile'],
    ['passwordFile', 'username'],
  ] as const;
  for (const [name, needed] of needs)
    if (broker[name] && !broker[needed]) wrong(name, `needs ${needed} as well`, needed);
  const secure = broker.urls.filter((one) => one.startsWith('mqtts:')).length;
  if (secure > 0 && !broker.caFile) wrong('urls', 'mqtts:// needs caFile as well', 'caFile');
  if (secure === 0 && broker.certFile)
    wrong('certFile', 'has no effect without TLS: use mqtts:// in urls', 'urls');
  if (secure === 0 && endpoint === undefined)
    problems.push({
      path: [...at, 'urls'],
      message: 'encoders connect by TLS: say where in encoders.endpoint',
      others: [['encoders', 'endpoint']],
    });
  return problems;
}
