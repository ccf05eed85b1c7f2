/**
 * Statuses of EmberZNet: sl_status_t (sl_status.h of the Gecko SDK 4.4), and what EZSP before version 14 says in their
 * place, EmberStatus and EzspStatus in one byte ('UG100: EZSP Reference Guide', Silicon Labs, rev. 4.0, clause 4).
 */
import { bytes, u32 } from '../bytes.ts';

export const SL = {
  ok: 0x00,
  fail: 0x01,
  invalidState: 0x02,
  busy: 0x04,
  networkUp: 0x15,
  networkDown: 0x16,
  notJoined: 0x17,
  allocationFailed: 0x19,
  invalidParameter: 0x21,
  invalidIndex: 0x27,
  notFound: 0x2d,
  messageTooLong: 0x38,
  deliveryFailed: 0x0c02,
  maxMessageLimit: 0x0c03,
  channelChanged: 0x0c17,
  networkOpened: 0x0c18,
  networkClosed: 0x0c19,
} as const;

/** sl_status_t → EmberStatus. */
const EMBER: Readonly<Record<number, number>> = {
  [SL.ok]: 0x00,
  [SL.fail]: 0x01,
  [SL.invalidParameter]: 0x02,
  [SL.allocationFailed]: 0x18,
  [SL.deliveryFailed]: 0x66,
  [SL.invalidState]: 0x70,
  [SL.maxMessageLimit]: 0x72,
  [SL.messageTooLong]: 0x74,
  [SL.networkUp]: 0x90,
  [SL.networkDown]: 0x91,
  [SL.notJoined]: 0x93,
  [SL.channelChanged]: 0x9b,
  [SL.networkOpened]: 0x9c,
  [SL.networkClosed]: 0x9d,
  [SL.busy]: 0xa1,
  [SL.invalidIndex]: 0xb1,
  [SL.notFound]: 0xb3,
};
/** EzspStatus of what was set or read and is not there. */
const EZSP_INVALID_ID = 0x37;
export const EZSP_STATUS = { versionNotSet: 0x30, invalidFrameId: 0x31, outOfMemory: 0x35 } as const;

/** EZSP version from which each status has four bytes. */
export const WIDE_STATUS = 14;

export function status(version: number, code: number): Buffer {
  return version >= WIDE_STATUS ? u32(code) : bytes(EMBER[code] ?? 0x01);
}

/** Of configuration values, policies, values and endpoints. */
export function ezspStatus(version: number, isOk: boolean): Buffer {
  if (version >= WIDE_STATUS) return u32(isOk ? SL.ok : SL.invalidParameter);
  return bytes(isOk ? 0 : EZSP_INVALID_ID);
}
