/** Who is let in, and who goes: the trust center of EmberZNet, and the parent that the coordinator is. */
import type { Node } from '../air/frames.ts';
import { bytes, ieee, u16 } from '../bytes.ts';
import type { Admissions, JoinOutcome } from '../stick/admissions.ts';
import { keyedHash, type TransportKey, WELL_KNOWN_KEY } from '../stick/security.ts';
import { ANY_DEVICE, CALLBACK, type NcpCore } from './core.ts';
import { allowsJoins } from './network.ts';

/** EmberDeviceUpdate, EmberJoinDecision. */
const UNSECURED_JOIN = 1;
const DEVICE_LEFT = 2;
const USE_PRECONFIGURED_KEY = 0;
/** EZSP_CONFIG_MAX_END_DEVICE_CHILDREN. */
const CHILDREN_MAX = 0x11;

export function openJoining(core: NcpCore, childrenMax: number): Admissions {
  const { memory } = core;
  const hasChild = (device: string) => memory().children.has(device);
  const setChild = (device: string, nwk: number) => {
    memory().children.set(device, nwk);
    core.tokens().children().set(device, nwk);
  };
  const removeChild = (device: string) => {
    memory().children.delete(device);
    core.tokens().children().delete(device);
  };
  function admit(node: Node, nwk: number): void {
    if (node.parent === undefined && !node.isRouter) setChild(node.ieee, nwk);
    else removeChild(node.ieee);
  }
  function indicate(device: string, nwk: number, update: number, parent: number): void {
    const body = bytes(u16(nwk), ieee(device), update, USE_PRECONFIGURED_KEY, u16(parent));
    core.callback(CALLBACK.trustCenterJoin, body);
  }
  function refusal(node: Node, installKey: Buffer | undefined, isOpen: boolean): JoinOutcome | undefined {
    if (!memory().network) return 'noNetwork';
    if (!isOpen || !allowsJoins(core)) return 'closed';
    const keys = memory().transientKeys;
    const isSame = (keys.get(node.ieee) ?? keys.get(ANY_DEVICE))?.equals(installKey ?? WELL_KNOWN_KEY);
    return isSame ? undefined : 'keyMismatch';
  }
  return {
    admit,
    hasChild,
    hasRoom: (device) =>
      hasChild(device) ||
      memory().children.size < Math.min(childrenMax, memory().configuration.get(CHILDREN_MAX) ?? childrenMax),
    join(node, nwk, installKey, isOpenThere = core.time.now() < memory().permitUntil) {
      const refused = refusal(node, installKey, isOpenThere);
      if (refused) return refused;
      const parent = node.parent === undefined ? 0 : (core.air.byIeee(node.parent)?.nwk ?? 0);
      admit(node, nwk);
      core.later(core.air.options().airMs, () => indicate(node.ieee, nwk, UNSECURED_JOIN, parent));
      return 'joined';
    },
    forgeJoin: ({ ieee: device, nwk }) => indicate(device, nwk, UNSECURED_JOIN, 0),
    // EmberZNet sends away none that exchanges no key.
    verifyKey: () => undefined,
    transportKey: (device) => transportKey(core, device),
    left(node, isRejoin) {
      if (isRejoin) return;
      removeChild(node.ieee);
      indicate(node.ieee, node.nwk, DEVICE_LEFT, 0);
    },
  };
}

/**
 * A key of the table goes before that which is made of the root key and the address (TC_HASHED_LINK_KEY of
 * zigbee-security-manager.c, Gecko SDK 4.4). One counter serves all link keys (EZSP_VALUE_APS_FRAME_COUNTER).
 */
function transportKey({ tokens }: NcpCore, device: string): TransportKey {
  const kept = tokens();
  const counter = kept.nextApsCounter();
  const own = [...kept.linkKeys.values()].find((one) => one.ieee === device)?.key;
  const root = kept.network()?.trustCenterKey;
  return { key: own ?? (root ? keyedHash(root, ieee(device)) : WELL_KNOWN_KEY), counter };
}
