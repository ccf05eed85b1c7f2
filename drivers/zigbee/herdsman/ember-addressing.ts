/**
 * Where an EmberZNet coordinator believes a device to be. The stack looks for routes by itself with each frame, and forgets
 * children that have not polled for their timeout, or have announced themselves elsewhere.
 */
import { sharedAddresses } from './addressing.ts';
import type { Addressing, Find } from './make.ts';
import { ZDO_PROFILE, type ZdoSender } from './zdo.ts';

const NWK_ADDRESS = 0x00_00;
/** Those who always listen (Zigbee specification R22, 3.6.5): a parent answers for its sleeping children. */
const LISTENING = 0xff_fd;
/** emberChildIndex of UG100 (Silicon Labs): there is no such child. */
const NO_CHILD = 0xff;

interface Library extends ZdoSender {
  adapter: {
    queue: { execute<T>(job: () => Promise<T>): Promise<T> };
    ezsp: { ezspChildIndex(networkAddress: number): Promise<number> };
  };
}

export function openEmberAddressing(controller: object, find: Find): Addressing {
  const library = controller as Library;
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
