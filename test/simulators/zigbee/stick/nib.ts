/**
 * The network information base as a CC2652 keeps it in its memory: nwkIB_t of nwk.h, fields of more than one byte at
 * even offsets.
 */
import { openReader, u16, u32 } from '../bytes.ts';

/** A network that a stick or a lock belongs to. */
export interface Network {
  panId: number;
  /** 8 bytes as they are sent. */
  extendedPanId: Buffer;
  channel: number;
  key: Buffer;
  keySequence: number;
  updateId: number;
  channelMask: number;
  managerAddress: number;
}

const NIB_SIZE = 116;
const AT = {
  deviceAddress: 22,
  channel: 24,
  panId: 36,
  state: 38,
  channelMask: 40,
  extendedPanId: 57,
  managerAddress: 110,
  updateId: 114,
} as const;
/** NWK_ROUTER: what a coordinator is once its network is up. */
const STATE_UP = 8;

/** What never changes here, with the defaults of Z-Stack 3.x.0 (nwk_globals.h): offset → bytes. */
const CONSTANTS: [offset: number, bytes: number[]][] = [
  // SequenceNum, PassiveAckTimeout, MaxBroadcastRetries, MaxChildren, MaxDepth, MaxRouters
  [0, [1, 5, 2, 50, 20, 50]],
  // BroadcastDeliveryTime, ReportConstantCost, RouteDiscRetries
  [7, [30, 0, 0]],
  // SecureAllFrames, SecurityLevel, SymLink, CapabilityFlags
  [11, [1, 5, 1, 0x8f]],
  // TransactionPersistenceTime, protocol version, RouteDiscoveryTime, RouteExpiryTime
  [16, [7, 0, 2, 5, 30]],
  // beaconOrder, superFrameOrder, scanDuration
  [44, [15, 15, 4]],
  [48, [1, 0, 0, 0, 1, 0, 0, 0]],
  // nwkKeyLoaded
  [65, [1]],
  // link status period and age limit, multicast, concentrator, its discovery time and radius, all fresh
  [102, [15, 3, 0, 1, 120, 10, 1]],
];

export function encodeNib(network: Network): Buffer {
  const nib = Buffer.alloc(NIB_SIZE);
  for (const [offset, values] of CONSTANTS) nib.set(values, offset);
  nib.writeUInt8(network.channel, AT.channel);
  nib.set(u16(network.panId), AT.panId);
  nib.writeUInt8(STATE_UP, AT.state);
  nib.set(u32(network.channelMask), AT.channelMask);
  nib.set(network.extendedPanId, AT.extendedPanId);
  nib.set(u16(network.managerAddress), AT.managerAddress);
  nib.writeUInt8(network.updateId, AT.updateId);
  return nib;
}

/** Undefined: no network is in it. */
export function decodeNib(nib: Buffer): Omit<Network, 'key' | 'keySequence'> | undefined {
  if (nib.length !== NIB_SIZE) return undefined;
  const at = (offset: number) => openReader(nib.subarray(offset));
  const panId = at(AT.panId).u16();
  const channel = at(AT.channel).u8();
  if (panId === 0xffff || channel === 0) return undefined;
  return {
    panId,
    channel,
    extendedPanId: Buffer.from(at(AT.extendedPanId).bytes(8)),
    channelMask: at(AT.channelMask).u32(),
    updateId: at(AT.updateId).u8(),
    managerAddress: at(AT.managerAddress).u16(),
  };
}
