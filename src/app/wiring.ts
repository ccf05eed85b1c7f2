/**
 * What the configuration says of links, gateways and networks, and how it is changed while the gateway runs: links that are
 * new are opened, links that are gone are closed, links with other settings are closed and opened again. The others go on.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Plain } from '../../drivers/contract/driver.ts';
import type { Config } from '../platform/config/config.ts';
import { linkOptions } from '../platform/config/profiles.ts';
import type { Field, LinkSpec } from '../platform/field/field.ts';
import type { Networks } from '../resources/networks/networks.ts';
import type { Buses } from '../resources/rs485/buses.ts';
import type { Zgates } from '../resources/zgates/zgates.ts';

export type Wiring = Pick<Config, 'links' | 'networks' | 'zgates'>;

/** Ids of links. */
export interface Rewired {
  opened: string[];
  reopened: string[];
  closed: string[];
  /** Changed or gone in the configuration, but left as they were: they are executing a command. */
  busy: string[];
}

export interface WiringOptions {
  networks: Pick<Networks, 'declare'>;
  zgates: Pick<Zgates, 'declare' | 'startOptions'>;
  rs485: { buses: Pick<Buses, 'declare'> };
  field: Pick<Field, 'specs' | 'isBusy' | 'close' | 'open'>;
}

/** Of one change at a time. Resolves when the links are requested; they come up later. */
export async function rewire(
  { networks, zgates, rs485, field }: WiringOptions,
  before: Wiring,
  wanted: Wiring,
): Promise<{ wiring: Wiring; rewired: Rewired }> {
  const present = field.specs();
  const specs = new Map(linkSpecs(wanted, zgates.startOptions).map((spec) => [spec.id, spec]));
  const other = present.filter((spec) => !isSame(spec, specs.get(spec.id)));
  const busy = other.map(({ id }) => id).filter(field.isBusy);
  const closing = other.filter(({ id }) => !busy.includes(id));
  const goesOn = new Set(present.filter((spec) => !closing.includes(spec)).map(({ id }) => id));
  const opening = [...specs.values()].filter(({ id }) => !goesOn.has(id));
  const wiring = keeping(busy, before, wanted);

  await networks.declare(wiring.networks);
  await field.close(closing.map(({ id }) => id));
  try {
    await zgates.declare(wiring.zgates);
  } catch (error) {
    field.open(closing);
    throw error;
  }
  rs485.buses.declare(busesOf(wiring));
  field.open(opening);

  const gone = closing.map(({ id }) => id);
  const back = opening.map(({ id }) => id);
  return {
    wiring,
    rewired: {
      opened: back.filter((id) => !gone.includes(id)),
      reopened: back.filter((id) => gone.includes(id)),
      closed: gone.filter((id) => !back.includes(id)),
      busy,
    },
  };
}

/** What is wanted, but for links that stay as they were, with their gateways and networks. */
function keeping(ids: readonly string[], before: Wiring, wanted: Wiring): Wiring {
  if (ids.length === 0) return wanted;
  const gateways = before.zgates.filter(({ link }) => ids.includes(link));
  const isKept = ({ link, deviceId }: Wiring['zgates'][number]) =>
    ids.includes(link) || gateways.some((gateway) => gateway.deviceId === deviceId);
  const zgates = [...wanted.zgates.filter((gateway) => !isKept(gateway)), ...gateways];
  const missing = before.networks.filter(
    ({ id }) =>
      gateways.some(({ networkId }) => networkId === id) && !wanted.networks.some((one) => one.id === id),
  );
  return {
    links: [
      ...wanted.links.filter(({ id }) => !ids.includes(id)),
      ...before.links.filter(({ id }) => ids.includes(id)),
    ],
    zgates,
    networks: [...wanted.networks, ...missing],
  };
}

function isSame(present: LinkSpec, wanted: LinkSpec | undefined): boolean {
  return (
    wanted !== undefined &&
    present.protocol === wanted.protocol &&
    present.host === wanted.host &&
    isDeepStrictEqual(present.wiring, wanted.wiring)
  );
}

/** `startOptions` of a gateway beside what the configuration says, at each start of its link. Throws FileError. */
export function linkSpecs({ links, zgates }: Wiring, startOptions: Zgates['startOptions']): LinkSpec[] {
  return links.map((link) => {
    const { id, protocol, host } = link;
    const own = linkOptions(link) as { [key: string]: Plain };
    const gateway = zgates.find((one) => one.link === id);
    if (!gateway) return { id, protocol, host, options: own, wiring: own };
    const { deviceId, networkId } = gateway;
    // Of its start, and not of ours: the latest snapshot, and the certificates that are trusted now.
    const options = () => ({ ...own, ...startOptions(deviceId) });
    return { id, protocol, host, options, wiring: { own, deviceId, networkId } };
  });
}

/** Links of Zigbee gateways aside, also of those that a loopback plays, every link is a bus. */
export function busesOf({ links, zgates }: Wiring) {
  return links
    .filter(({ id, protocol }) => protocol !== 'zigbee' && !zgates.some(({ link }) => link === id))
    .map(({ id, protocol, options }) => ({
      id,
      protocol,
      port: 'port' in options ? String(options.port) : null,
      turnaroundMaxMs: 'turnaroundMaxMs' in options ? Number(options.turnaroundMaxMs) : 0,
      line: lineOf(options),
    }));
}

/** The links of the gateways of a network that are reached by TLS. One whose port has no name is one that plays a gateway. */
export function linksByTls({ links, zgates }: Wiring, netId: string): string[] {
  const isByTls = (linkId: string) => {
    const options = links.find(({ id }) => id === linkId)?.options ?? {};
    return !('port' in options) || String(options.port).startsWith('tls://');
  };
  return zgates.filter(({ networkId, link }) => networkId === netId && isByTls(link)).map(({ link }) => link);
}

function lineOf(options: object) {
  if (!('baudRate' in options && 'parity' in options && 'stopBits' in options)) return null;
  const { baudRate, parity, stopBits } = options;
  return { baudRate: Number(baudRate), parity: String(parity), stopBits: Number(stopBits) };
}
