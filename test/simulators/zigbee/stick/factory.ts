/**
 * What a stick from the factory holds beside its network: the items of ZComDef.h with the values of a CC2652 with
 * Z-Stack 3.x.0 that was reset (the memory dumps in the tests of zigpy-znp, 2023-12). Hosts read or write most of them
 * before they start a network, and do not expect one to be missing.
 */
import { randomBytes } from 'node:crypto';
import { u16, u32 } from '../bytes.ts';
import { NV } from './nv-items.ts';

/** Clear with ZCD_STARTOPT_CLEAR_CONFIG. */
const CONFIGURATION: [id: number, value: string][] = [
  // ZCD_NV_START_DELAY, _POLL_RATE_OLD16, _DATA_RETRIES, _POLL_FAILURE_RETRIES, _STACK_PROFILE
  [0x0004, '0a'],
  [0x0024, 'b80b'],
  [0x0028, '02'],
  [0x0029, '03'],
  [0x002a, '02'],
  // ZCD_NV_INDIRECT_MSG_TIMEOUT in seconds, _ROUTE_EXPIRY_TIME
  [0x002b, '07'],
  [0x002c, '1e'],
  // ZCD_NV_BCAST_RETRIES, _PASSIVE_ACK_TIMEOUT, _BCAST_DELIVERY_TIME
  [0x002e, '02'],
  [0x002f, '05'],
  [0x0030, '1e'],
  // ZCD_NV_CONCENTRATOR_ENABLE, _DISCOVERY, _RADIUS, _RC
  [0x0032, '01'],
  [0x0033, '78'],
  [0x0034, '0a'],
  [0x0036, '01'],
  // ZCD_NV_NWK_MGR_MODE, _SRC_RTG_EXPIRY_TIME, _ROUTE_DISCOVERY_TIME
  [0x0037, '01'],
  [0x0038, 'ff'],
  [0x0039, '05'],
  // ZCD_NV_ROUTER_OFF_ASSOC_CLEANUP, _NWK_LEAVE_REQ_ALLOWED, _NWK_CHILD_AGE_ENABLE
  [0x003c, '00'],
  [0x003d, '01'],
  [0x003e, '00'],
  // ZCD_NV_APS_FRAME_RETRIES, _APS_ACK_WAIT_DURATION, _APS_ACK_WAIT_MULTIPLIER, ZCD_NV_BINDING_TIME
  [0x0043, '03'],
  [0x0044, 'b80b'],
  [0x0045, '02'],
  [0x0046, '803e'],
  // ZCD_NV_APS_USE_EXT_PANID, _APS_USE_INSECURE_JOIN, _COMMISSIONED_NWK_ADDR, _APS_NONMEMBER_RADIUS
  [NV.apsUseExtendedPanId, '0000000000000000'],
  [0x0048, '01'],
  [0x0049, 'feff'],
  [0x004b, '02'],
  // ZCD_NV_APS_DUPREJ_TIMEOUT_INC, _COUNT, _TABLE_SIZE
  [0x004d, 'e803'],
  [0x004e, '0a'],
  [0x004f, '0500'],
  // ZCD_NV_NWK_PARENT_INFO, _NWK_ENDDEV_TIMEOUT_DEF, _NWK_END_DEV_TIMEOUT_VALUE, _NWK_END_DEV_CONFIGURATION
  [0x0051, '01'],
  [0x0052, '08'],
  [0x0053, '08'],
  [0x0054, '00'],
  // ZCD_NV_PRECFGKEYS_ENABLE, _SECURE_PERMIT_JOIN, _APS_LINK_KEY_TYPE, _APS_ALLOW_R19_SECURITY, _USE_DEFAULT_TCLK
  [NV.preconfiguredKeysEnabled, '00'],
  [0x0065, '01'],
  [0x0066, '01'],
  [0x0067, '00'],
  [0x006d, '01'],
  // ZCD_NV_TRUSTCENTER_ADDR, _USERDESC, _SCAN_DURATION, _LOGICAL_TYPE, _NWKMGR_MIN_TX
  [0x0071, '0000000000000000'],
  [0x0081, '0000000000000000000000000000000000'],
  [0x0086, '04'],
  [NV.logicalType, '00'],
  [0x0088, '14'],
  [NV.directCallbacks, '00'],
  [0x00a1, 'e0'],
];

/** `ownIeee`: as it is sent. */
export function factoryItems(ownIeee: Buffer): [id: number, value: Buffer][] {
  return [
    ...CONFIGURATION.map(([id, value]): [number, Buffer] => [id, Buffer.from(value, 'hex')]),
    [NV.panId, u16(0xffff)],
    [NV.channels, u32(1 << 11)],
    [NV.extendedPanId, ownIeee],
    // What it would form a network with: a key of its own.
    [NV.preconfiguredKey, randomBytes(16)],
  ];
}
