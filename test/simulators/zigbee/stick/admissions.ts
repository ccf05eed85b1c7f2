/** Who is let in, and who goes: the trust center, and the parent that the coordinator is. */
import type { Aps, LastHop, Node } from '../air/frames.ts';
import { ZDO } from '../air/zdo.ts';
import { bytes, ieee, openReader, u16 } from '../bytes.ts';
import { SUBSYSTEM } from '../mt/frame.ts';
import type { Core } from './core.ts';
import { type TransportKey, WELL_KNOWN_KEY } from './security.ts';

/** What a join comes to, as the joiner sees it. */
export type JoinOutcome = 'joined' | 'closed' | 'noNetwork' | 'keyMismatch' | 'full';

export interface Admissions {
  /**
   * A node asks for the network key. `installKey`: what it expects it to be encrypted with. `isOpenThere`: whether its
   * router lets joiners in; undefined: it asks here.
   */
  join(node: Node, nwk: number, installKey: Buffer | undefined, isOpenThere?: boolean): JoinOutcome;
  /** In its table of children for one with this address. */
  hasRoom(ieee: string): boolean;
  hasChild(ieee: string): boolean;
  /** A node that has been of the network all along. */
  admit(node: Node, nwk: number): void;
  /** A node says that it leaves. */
  left(node: Node, isRejoin: boolean): void;
  /** As if a device with this address had joined. */
  forgeJoin(device: { ieee: string; nwk: number }): void;
  /** A joiner has its own link key of the trust center, and has proven it (Base Device Behavior 3.0, 10.2.5). */
  verifyKey(ieee: string): void;
  /** What the trust center encrypts the network key with for this device when it asks for it again. */
  transportKey(ieee: string): TransportKey;
}

const TC_DEVICE_IND = 0xca;
const LEAVE_IND = 0xc9;
/** Transaction, address, IEEE address, capability. */
const ANNOUNCEMENT = 12;

export interface AdmissionOptions {
  childrenMax: number;
  requiresKeyExchange: boolean;
  joinTimeoutMs: number;
}

export function openAdmissions(core: Core, options: AdmissionOptions): Admissions {
  const hasChild = (device: string) => core.memory().children.has(device);
  function admit(node: Node, nwk: number): void {
    // A router is a neighbour soon, and in no need of a parent.
    const isChild = node.parent === undefined && !node.isRouter;
    if (isChild) core.memory().children.set(node.ieee, nwk);
    else core.memory().children.delete(node.ieee);
    core.nv().remember({ ieee: node.ieee, nwk, isChild });
  }
  function refusal(node: Node, installKey: Buffer | undefined, isOpen: boolean): JoinOutcome | undefined {
    const { network, isInstallCodeNeeded } = core.memory();
    if (!network) return 'noNetwork';
    if (!isOpen) return 'closed';
    const ours = core.nv().installKeys().get(node.ieee);
    const isSame = installKey === undefined ? ours === undefined : ours?.equals(installKey) === true;
    return isSame && !(isInstallCodeNeeded && ours === undefined) ? undefined : 'keyMismatch';
  }
  /** bdbTrustCenterNodeJoinTimeout: who has not exchanged its key by then is sent away. */
  function awaitKey(node: Node): void {
    const { unverified, requiresKeyExchange = options.requiresKeyExchange } = core.memory();
    core.nv().setKeyVerified(node.ieee, false);
    if (!requiresKeyExchange) return;
    unverified.add(node.ieee);
    core.later(options.joinTimeoutMs, () => {
      if (unverified.delete(node.ieee)) node.leave(false);
    });
  }
  return {
    admit,
    hasChild,
    hasRoom: (device) => hasChild(device) || core.memory().children.size < options.childrenMax,
    join(node, nwk, installKey, isOpenThere = core.time.now() < core.memory().permitUntil) {
      const refused = refusal(node, installKey, isOpenThere);
      if (refused) return refused;
      const parent = node.parent === undefined ? 0 : (core.air.byIeee(node.parent)?.nwk ?? 0);
      admit(node, nwk);
      awaitKey(node);
      const indication = bytes(u16(nwk), ieee(node.ieee), u16(parent));
      core.later(core.air.options().airMs, () => core.areq(SUBSYSTEM.zdo, TC_DEVICE_IND, indication));
      return 'joined';
    },
    forgeJoin: ({ ieee: device, nwk }) =>
      core.areq(SUBSYSTEM.zdo, TC_DEVICE_IND, bytes(u16(nwk), ieee(device), u16(0))),
    verifyKey(device) {
      core.memory().unverified.delete(device);
      core.nv().setKeyVerified(device, true);
    },
    transportKey: (device) =>
      core.nv().takeTrustCenterKey(device) ?? { key: WELL_KNOWN_KEY, counter: core.memory().frameCounter },
    left(node, isRejoin) {
      if (!isRejoin) {
        core.memory().children.delete(node.ieee);
        core.nv().forget(node.ieee);
      }
      const flags = [0, 0, isRejoin ? 1 : 0];
      core.areq(SUBSYSTEM.zdo, LEAVE_IND, bytes(u16(node.nwk), ieee(node.ieee), ...flags));
    },
  };
}

/** A child announces itself through a router: it has another parent. */
export function forgetMovedChild(core: Core, { cluster, data }: Aps, { hops }: LastHop): void {
  if (cluster !== ZDO.deviceAnnounce || hops === 1 || data.length < ANNOUNCEMENT) return;
  const announced = openReader(data.subarray(1));
  const nwk = announced.u16();
  const device = announced.ieee();
  if (!core.memory().children.delete(device)) return;
  core.nv().remember({ ieee: device, nwk, isChild: false });
}
