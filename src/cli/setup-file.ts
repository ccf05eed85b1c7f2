/** The text that `gatehouse setup` writes: what the file has, with what is wanted in it. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigInput } from '../platform/config/config.ts';
import { type Edit, edited, roughlyParsed } from '../platform/yaml/yaml-file.ts';
import { coordinatorOptions } from './coordinators.ts';
import type { WantedLink } from './setup-link.ts';

export interface Wanted {
  /** Of this machine, as clients and encoders will write it. */
  name: string;
  /** host:port. */
  listen: string;
  encoders: string;
  /** Files, as the configuration is to name them; added to those it names. */
  vendorRoots: readonly string[];
  /** URL; undefined: as it is. */
  upstream: string | undefined;
  /** Those whose port the configuration has already are left as they are. */
  links: readonly WantedLink[];
}

/** What a site's file begins with; what is wanted is put into it. */
export const BEGINNING = `# Made by gatehouse setup. Every setting is explained in /etc/gatehouse/gatehouse.example.yaml;
# after a change by hand: gatehouse config check && systemctl reload gatehouse
adminSocket: /run/gatehouse/admin.sock

http:
  listen: 0.0.0.0:8443
  # As clients will write it; goes into the certificate.
  names: []

encoders:
  listen: 0.0.0.0:8883
  # From the vendor of the encoders. While there is none, no encoder can be registered.
  vendorRoots: []

# What is wired to this host.
links: []
`;

/** Of a text without a mistake. */
export function settingsIn(text: string): ConfigInput {
  return (roughlyParsed(text) ?? {}) as ConfigInput;
}

/** The text with what is wanted, and the ids of the links that were added. */
export function withWanted(text: string, wanted: Wanted): { text: string; added: string[] } {
  const has = settingsIn(text);
  const { edits, added } = linkEdits(has, wanted.links);
  const all = [...addressEdits(has, wanted), ...edits].filter(
    ({ path, value }) => !isDeepStrictEqual(valueAt(has, path), value),
  );
  return { text: all.length === 0 ? text : edited(text, all), added };
}

function addressEdits({ http, encoders, upstream }: ConfigInput, wanted: Wanted): Edit[] {
  const names = http?.names ?? [];
  const roots = encoders?.vendorRoots ?? [];
  const former = names[0];
  const endpointOf = (name: string, listen: string) => `mqtts://${name}:${portOf(listen)}`;
  const isOurs =
    encoders?.endpoint === undefined ||
    encoders.endpoint === endpointOf(former ?? '', encoders.listen ?? wanted.encoders);
  return [
    { path: ['http', 'listen'], value: wanted.listen },
    {
      path: ['http', 'names'],
      value: names.includes(wanted.name) ? names : [wanted.name, ...names],
    },
    { path: ['encoders', 'listen'], value: wanted.encoders },
    // One of the site's own, such as that of a router in front, stays.
    ...(isOurs ? [{ path: ['encoders', 'endpoint'], value: endpointOf(wanted.name, wanted.encoders) }] : []),
    { path: ['encoders', 'vendorRoots'], value: [...new Set([...roots, ...wanted.vendorRoots])] },
    ...(wanted.upstream !== undefined
      ? [{ path: ['upstream'], value: { ...upstream, url: wanted.upstream } }]
      : []),
  ];
}

/** A link for each port that has none; a coordinator also is a gateway in a network. */
function linkEdits(
  { links = [], networks = [], zgates = [] }: ConfigInput,
  wanted: readonly WantedLink[],
): { edits: Edit[]; added: string[] } {
  const ports = links.map(({ options }) => (options as { port?: unknown } | undefined)?.port);
  const ids = links.map(({ id }) => id);
  const edits: Edit[] = [];
  const added: string[] = [];
  let networkId = networks[0]?.id;
  let gateways = zgates.length;
  for (const { protocol, port } of wanted) {
    if (ports.includes(port)) continue;
    const id = freeId(protocol === 'zigbee' ? 'zigbee' : 'bus', ids);
    const options = { port, ...(protocol === 'zigbee' && coordinatorOptions(port)) };
    edits.push({ path: ['links', links.length + added.length], value: { id, protocol, options } });
    ports.push(port);
    ids.push(id);
    added.push(id);
    if (protocol !== 'zigbee') continue;
    if (networkId === undefined) {
      networkId = randomUUID();
      edits.push({ path: ['networks'], value: [{ id: networkId }] });
    }
    const zgate = { deviceId: randomUUID(), link: id, networkId };
    edits.push(
      gateways === 0 ? { path: ['zgates'], value: [zgate] } : { path: ['zgates', gateways], value: zgate },
    );
    gateways += 1;
  }
  return { edits: links.length === 0 ? gathered(edits) : edits, added };
}

/** Where the file has no list of links, it gets one: a path cannot lead into nothing. */
function gathered(edits: readonly Edit[]): Edit[] {
  const isLink = ({ path }: Edit) => path[0] === 'links';
  const links = edits.filter(isLink).map(({ value }) => value);
  return [
    ...(links.length > 0 ? [{ path: ['links'], value: links }] : []),
    ...edits.filter((edit) => !isLink(edit)),
  ];
}

function freeId(kind: string, taken: readonly string[]): string {
  for (let number = 1; ; number += 1) if (!taken.includes(`${kind}-${number}`)) return `${kind}-${number}`;
}

const portOf = (listen: string) => listen.slice(listen.lastIndexOf(':') + 1);

function valueAt(settings: unknown, path: Edit['path']): unknown {
  let value: unknown = settings;
  for (const step of path) value = (value as Record<string | number, unknown> | undefined | null)?.[step];
  return value;
}
