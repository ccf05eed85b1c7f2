/** A cluster: two gateways of one site, of which one is active and the other follows it (docs/architecture.md). */
import { z } from 'zod';
import type { Problem } from '../yaml/problem.ts';
import { path } from './path.ts';
import { natsUrl, signIn, tlsFiles } from './sinks.ts';

const label = (what: string) =>
  z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'expected 1 to 32 of a-z, 0-9 and -')
    .describe(what);

export const cluster = z.strictObject({
  name: label('Of this gateway; the other one has another name'),
  urls: z
    .array(natsUrl)
    .min(1)
    .max(8)
    .describe('NATS servers with JetStream, the same ones on both gateways'),
  bucket: label('Of this site in JetStream; both gateways have the same').default('gatehouse'),
  replicas: z
    .literal([1, 3, 5])
    .default(3)
    .describe('Servers that keep each message: 3 in a cluster of three, 1 with a single server'),
  durability: z
    .enum(['local', 'quorum'])
    .default('local')
    .describe(
      'When a change is answered: local, once it is on this disk; quorum, once JetStream has it as well, and 503 while NATS is away',
    ),
  ...tlsFiles,
  ...signIn,
  tokenFile: path
    .optional()
    .describe('File whose first line is a token; with it user name and password are not sent'),
});

export type ClusterConfig = z.output<typeof cluster>;

export const CLUSTER_FILES = ['caFile', 'certFile', 'keyFile', 'passwordFile', 'tokenFile'] as const;

/** What cannot be true together. */
export function contradictingCluster(settings: ClusterConfig | undefined): Problem[] {
  if (!settings) return [];
  const needs = [
    ['certFile', 'keyFile'],
    ['keyFile', 'certFile'],
    ['passwordFile', 'username'],
  ] as const;
  return needs
    .filter(([name, needed]) => settings[name] !== undefined && settings[needed] === undefined)
    .map(([name, needed]) => ({
      path: ['cluster', name],
      message: `needs ${needed} as well`,
      others: [['cluster', needed]],
    }));
}
