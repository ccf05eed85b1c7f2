/** Statuses of ZCL by their names (ZCL rev. 8, table 2-12), for people who look one up. Pure. */
import { hex, integer } from './values.ts';

const NAMES = new Map([
  [0x00, 'SUCCESS'],
  [0x01, 'FAILURE'],
  [0x7e, 'NOT_AUTHORIZED'],
  [0x80, 'MALFORMED_COMMAND'],
  [0x81, 'UNSUP_COMMAND'],
  [0x82, 'UNSUP_GENERAL_COMMAND'],
  [0x83, 'UNSUP_MANUF_CLUSTER_COMMAND'],
  [0x84, 'UNSUP_MANUF_GENERAL_COMMAND'],
  [0x85, 'INVALID_FIELD'],
  [0x86, 'UNSUPPORTED_ATTRIBUTE'],
  [0x87, 'INVALID_VALUE'],
  [0x88, 'READ_ONLY'],
  [0x89, 'INSUFFICIENT_SPACE'],
  [0x8a, 'DUPLICATE_EXISTS'],
  [0x8b, 'NOT_FOUND'],
  [0x8c, 'UNREPORTABLE_ATTRIBUTE'],
  [0x8d, 'INVALID_DATA_TYPE'],
  [0x8e, 'INVALID_SELECTOR'],
  [0x8f, 'WRITE_ONLY'],
  [0x90, 'INCONSISTENT_STARTUP_STATE'],
  [0x91, 'DEFINED_OUT_OF_BAND'],
  [0x92, 'INCONSISTENT'],
  [0x93, 'ACTION_DENIED'],
  [0x94, 'TIMEOUT'],
  [0x95, 'ABORT'],
  [0x96, 'INVALID_IMAGE'],
  [0x97, 'WAIT_FOR_DATA'],
  [0x98, 'NO_IMAGE_AVAILABLE'],
  [0x99, 'REQUIRE_MORE_IMAGE'],
  [0x9a, 'NOTIFICATION_PENDING'],
  [0xc0, 'HARDWARE_FAILURE'],
  [0xc1, 'SOFTWARE_FAILURE'],
  [0xc2, 'CALIBRATION_ERROR'],
  [0xc3, 'UNSUPPORTED_CLUSTER'],
]);
export const STATUS_SUCCESS = 0x00;
/** ZCL rev. 8, table 2-12; UNSUP_CLUSTER_COMMAND before: the device does not have it, and did nothing. */
export const STATUS_UNSUP_COMMAND = 0x81;
export const STATUS_INVALID_FIELD = 0x85;
export const STATUS_NOT_FOUND = 0x8b;

/** Such as `INVALID_VALUE (0x87)`, or `status 0xf0`, or `no status` for what is none. */
export function statusName(status: unknown): string {
  const number = integer(status, 0, 0xff);
  if (number === undefined) return 'no status';
  const name = NAMES.get(number);
  const code = hex(number, 2);
  return name === undefined ? `status ${code}` : `${name} (${code})`;
}
