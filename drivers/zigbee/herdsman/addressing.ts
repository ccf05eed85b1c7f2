/**
 * Where the coordinator believes a device to be: its network address, its route, and its entry in the table of associated
 * devices. The library repairs these while it sends, and keeps the device to itself meanwhile, for up to a minute: an unlock
 * behind it would be too late. Here it is done apart from sending.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { keptFile } from '../kept-files.ts';
import { field, integer } from '../values.ts';
import { ieeeOf } from './device-of.ts';
import type { Addressed, Addressing, Find } from './make.ts';
import { ZDO_PROFILE, type ZdoSender } from './zdo.ts';

/** Z-Stack Monitor and Test API, UTIL. Z-Stack ages no child: one that has moved unheard stays in the table. */
const UTIL_SUBSYSTEM = 7;
const NO_ADDRESS = 0xff_fe;
/** AssocList.h: CHILD_RFD, CHILD_RFD_RX_IDLE, CHILD_FFD, CHILD_FFD_RX_IDLE. Higher ones are neighbours. */
const CHILD_FIRST = 1;
const CHILD_LAST = 4;

/** GpSrcID of Green Power devices are kept in the same field, and are no addresses of the network. */
const GREEN_POWER = 'GreenPower';

interface Adapter {
  requestNetworkAddress(ieee: string): Promise<number>;
  discoverRoute(networkAddress: number, waitSettled: boolean): Promise<void>;
  supportsAssocAdd(): boolean;
  supportsAssocRemove(): boolean;
  znp: {
    request(subsystem: number, command: string, payload: object): Promise<unknown>;
    requestWithReply(subsystem: number, command: string, payload: object): Promise<unknown>;
  };
}

/** Children that were taken out of the table and are to come back: the coordinator keeps its table, this process may end. */
const DISOWNED_FILE = 'disowned.json';
const disownedSchema = z.array(
  z.strictObject({
    ieeeadr: z.string().regex(/^0x[0-9a-f]{16}$/),
    nwkaddr: z.int().min(0).max(0xff_ff),
    noderelation: z.int().min(CHILD_FIRST).max(CHILD_LAST),
  }),
);
type Disowned = z.infer<typeof disownedSchema>[number];

interface Devices {
  getDeviceByIeeeAddr(address: string): Addressed | undefined;
  getDevicesIterator(
    predicate: (device: Addressed & { type: string }) => boolean,
  ): IteratorObject<Addressed & { type: string }>;
}

export function openAddressing(controller: object, find: Find, stateDirectory: string): Addressing {
  const { adapter } = controller as { adapter: Adapter };
  const disowned = openDisowned(join(stateDirectory, DISOWNED_FILE));

  async function relationOf(ieee: string): Promise<number | undefined> {
    const { ieeeAddr: extaddr, networkAddress: nwkaddr } = find(ieee);
    // With an address that none has it is found by its IEEE address alone.
    const reply = await adapter.znp.requestWithReply(UTIL_SUBSYSTEM, 'assocGetWithAddress', {
      extaddr,
      nwkaddr: NO_ADDRESS,
    });
    const entry = field(reply, 'payload');
    if (field(entry, 'nwkaddr') !== nwkaddr) return undefined;
    return integer(field(entry, 'noderelation'), CHILD_FIRST, CHILD_LAST);
  }

  async function restore(child: Disowned): Promise<void> {
    const ieee = child.ieeeadr.slice(2);
    // With another address it has joined again since, or has left.
    if (isAt(child, find) && (await relationOf(ieee)) === undefined)
      await adapter.znp.request(UTIL_SUBSYSTEM, 'assocAdd', child);
    disowned.remove(child.ieeeadr);
  }

  return {
    ...sharedAddresses(controller),
    async locate(ieee) {
      // The library takes the address over from the response.
      await adapter.requestNetworkAddress(find(ieee).ieeeAddr);
    },
    reroute: (ieee) => adapter.discoverRoute(find(ieee).networkAddress, false),
    isChild: async (ieee) => (await relationOf(ieee)) !== undefined,
    async disown(ieee) {
      if (!adapter.supportsAssocAdd() || !adapter.supportsAssocRemove()) return undefined;
      const { ieeeAddr: ieeeadr, networkAddress: nwkaddr } = find(ieee);
      const left = disowned.all().find((one) => one.ieeeadr === ieeeadr);
      // An earlier restore failed.
      if (left) await restore(left);
      const noderelation = await relationOf(ieee);
      if (noderelation === undefined) return undefined;
      const child = { ieeeadr, nwkaddr, noderelation };
      disowned.add(child);
      try {
        await adapter.znp.request(UTIL_SUBSYSTEM, 'assocRemove', { ieeeadr });
      } catch (error) {
        // The coordinator may have executed it all the same.
        await restore(child);
        throw error;
      }
      return { restore: () => restore(child), confirm: () => disowned.remove(ieeeadr) };
    },
    async restoreChildren() {
      for (const child of disowned.all()) await restore(child);
    },
  };
}

/** Two devices that are taken to have one network address. */
function sharedAddresses(controller: object): Pick<Addressing, 'sharing' | 'hearAsItself'> {
  const library = controller as Devices;
  return {
    sharing(ieee) {
      const device = library.getDeviceByIeeeAddr(`0x${ieee}`);
      if (!device) return [];
      const hasIt = (other: Addressed & { type: string }) =>
        other !== device && other.networkAddress === device.networkAddress && other.type !== GREEN_POWER;
      return library
        .getDevicesIterator(hasIt)
        .map(({ ieeeAddr }) => ieeeOf(ieeeAddr))
        .toArray();
    },
    hearAsItself(ieee) {
      const device = library.getDeviceByIeeeAddr(`0x${ieee}`);
      // Its setter enters the device in the library's table by network address, from which a device that gives up an
      // address takes it, no matter who else has it.
      if (device) device.networkAddress = Number(device.networkAddress);
    },
  };
}

function isAt({ ieeeadr, nwkaddr }: Disowned, find: Find): boolean {
  try {
    return find(ieeeadr.slice(2)).networkAddress === nwkaddr;
  } catch {
    return false;
  }
}

function openDisowned(path: string) {
  const file = keptFile(path);
  function all(): Disowned[] {
    try {
      return disownedSchema.parse(JSON.parse(String(file.read())));
    } catch {
      return [];
    }
  }
  const without = (ieeeadr: string) => all().filter((one) => one.ieeeadr !== ieeeadr);
  return {
    all,
    /** Durable when it returns. Throws when it cannot be stored: then the child is not taken out. */
    add: (child: Disowned) => file.store(JSON.stringify([...without(child.ieeeadr), child])),
    /** Later, when the disk does not take it now: a child that is there already is not restored again. */
    remove: (ieeeadr: string) => file.write(JSON.stringify(without(ieeeadr))),
  };
}

const NWK_ADDRESS = 0x00_00;
/** Those who always listen (Zigbee specification R22, 3.6.5): a parent answers for its sleeping children. */
const LISTENING = 0xff_fd;
/** emberChildIndex of UG100 (Silicon Labs): there is no such child. */
const NO_CHILD = 0xff;

interface EmberLibrary extends ZdoSender {
  adapter: {
    queue: { execute<T>(job: () => Promise<T>): Promise<T> };
    ezsp: { ezspChildIndex(networkAddress: number): Promise<number> };
  };
}

/**
 * EmberZNet looks for routes by itself with each frame, and forgets children that have not polled for their timeout, or have
 * announced themselves elsewhere.
 */
export function openEmberAddressing(controller: object, find: Find): Addressing {
  const library = controller as EmberLibrary;
  const { adapter } = library;
  return {
    ...sharedAddresses(controller),
    async locate(ieee) {
      const { ieeeAddr } = find(ieee);
      // The library takes the address over from the response.
      await library.sendRaw({
        profileId: ZDO_PROFILE,
        ieeeAddress: ieeeAddr,
        networkAddress: LISTENING,
        clusterKey: NWK_ADDRESS,
        zdoParams: [ieeeAddr, false, 0],
      });
    },
    reroute: async () => undefined,
    async isChild(ieee) {
      const { networkAddress } = find(ieee);
      return (await adapter.queue.execute(() => adapter.ezsp.ezspChildIndex(networkAddress))) !== NO_CHILD;
    },
    disown: async () => undefined,
    restoreChildren: async () => undefined,
  };
}
