/** What is on the air: how busy its channels are, and the map of radio links. */
import { type Clock, DriverError } from '../contract/driver.ts';
import { settles } from '../contract/waiting.ts';
import type { Energies, NetworkMap } from '../contract/zgate.ts';
import type { Page, Radio, RadioDevice } from './radio.ts';
import { isIeee } from './values.ts';

/** IEEE 802.15.4, 2.4 GHz. */
const FIRST_CHANNEL = 11;
const CHANNELS = Array.from({ length: 16 }, (_, index) => FIRST_CHANNEL + index);

/** How busy the channels are, as the coordinator hears them: before a move, and once a network was formed. */
export async function scanEnergies(radio: Pick<Radio, 'hwId' | 'energies'>): Promise<Energies> {
  const channels = await radio.energies(radio.hwId, CHANNELS);
  if (channels.length > 0) return { channels };
  throw new DriverError('BAD_REPLY', 'the coordinator named no channel in its energy scan');
}

/** Between two devices: they have better to do. */
const PAUSE_MS = 1_000;
/** Before a device that did not answer is asked once more. */
const AGAIN_MS = 5_000;
const PAGE_MS = 10_000;
/** A table has at most 255 entries, two or three a page; a device that claims more is wrong. */
const PAGES_MAX = 128;
const LINKS_MAX = 8_192;

/** The tables of the coordinator and of every router, one device at a time. */
export async function mapNetwork(radio: Radio, clock: Clock, signal: AbortSignal): Promise<NetworkMap> {
  const devices = radio.devices();
  const byAddress = new Map(devices.map(({ networkAddress, ieee }) => [networkAddress, ieee]));
  const map: NetworkMap = { nodes: devices.map(nodeOf), links: [], silent: [] };
  const asked = devices.filter(({ kind }) => kind === 'coordinator' || kind === 'router');
  for (const [index, { ieee }] of asked.entries()) {
    if (index > 0) await clock.sleep(PAUSE_MS, signal);
    const tables = await tablesOf(ieee).catch(async () => {
      signal.throwIfAborted();
      await clock.sleep(AGAIN_MS, signal);
      return tablesOf(ieee).catch(() => undefined);
    });
    signal.throwIfAborted();
    if (tables) map.links.push(...tables);
    else map.silent.push(ieee);
  }
  map.links.splice(LINKS_MAX);
  return map;

  async function tablesOf(ieee: string): Promise<NetworkMap['links']> {
    const pages = await all((from) => radio.neighbours(ieee, from));
    const hops = (await all((from) => radio.routes(ieee, from))).flatMap(({ nextHops }) => nextHops);
    const routes = new Set(hops.map((address) => byAddress.get(address)));
    return pages
      .flatMap(({ neighbours }) => neighbours)
      .filter((neighbour) => isIeee(neighbour.ieee))
      .map(({ ieee: to, lqi }) => ({ from: ieee, to, lqi, isRoute: routes.has(to) }));
  }

  async function all<P extends Page>(page: (from: number) => Promise<P>): Promise<P[]> {
    const pages: P[] = [];
    for (let from = 0; pages.length < PAGES_MAX; ) {
      const asking = page(from);
      if (!(await settles(asking, PAGE_MS, clock, signal))) throw new Error('no answer');
      const next = await asking;
      pages.push(next);
      from += next.count;
      if (next.count === 0 || from >= next.total) break;
    }
    return pages;
  }
}

function nodeOf({ ieee, kind }: RadioDevice): NetworkMap['nodes'][number] {
  return { hwId: ieee, type: kind };
}
