/**
 * Where the coordinator believes a device to be: its network address, its route, and its entry in the table of associated
 * devices. The library repairs these while it sends, and keeps the device to itself meanwhile, for up to a minute: an unlock
 * behind it would be too late. Here it is done apart from sending.
 */
import type { Radio } from '../radio.ts';
import { field, integer } from '../values.ts';

/** Z-Stack Monitor and Test API, UTIL. Z-Stack ages no child: one that has moved unheard stays in the table. */
const UTIL_SUBSYSTEM = 7;
const NO_ADDRESS = 0xff_fe;
/** AssocList.h: CHILD_RFD, CHILD_RFD_RX_IDLE, CHILD_FFD, CHILD_FFD_RX_IDLE. Higher ones are neighbours. */
const CHILD_FIRST = 1;
const CHILD_LAST = 4;

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

type Find = (ieee: string) => { ieeeAddr: string; networkAddress: number };

export function openAddressing(
  controller: unknown,
  find: Find,
): Pick<Radio, 'locate' | 'reroute' | 'isChild' | 'disown'> {
  const { adapter } = controller as { adapter: Adapter };

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
  return {
    async locate(ieee) {
      // The library takes the address over from the response.
      await adapter.requestNetworkAddress(find(ieee).ieeeAddr);
    },
    reroute: (ieee) => adapter.discoverRoute(find(ieee).networkAddress, false),
    isChild: async (ieee) => (await relationOf(ieee)) !== undefined,
    async disown(ieee) {
      if (!adapter.supportsAssocAdd() || !adapter.supportsAssocRemove()) return undefined;
      const noderelation = await relationOf(ieee);
      if (noderelation === undefined) return undefined;
      const { ieeeAddr: ieeeadr, networkAddress: nwkaddr } = find(ieee);
      await adapter.znp.request(UTIL_SUBSYSTEM, 'assocRemove', { ieeeadr });
      return async () => {
        await adapter.znp.request(UTIL_SUBSYSTEM, 'assocAdd', { ieeeadr, nwkaddr, noderelation });
      };
    },
  };
}
