/**
 * ID Lock 150 and 202 with the module of Datek. It does what the standard says, without alarms. Its own attributes (0x4000 to
 * 0x4006 of the Door Lock cluster, with Datek's manufacturer code) are not read.
 *
 * Source: device list of zigbee-herdsman-converters (datek, 2026-08-22); descriptor in zigbee2mqtt, issue 18456. Pure.
 */
import { type LockFamily, named } from './family.ts';

export const ID_LOCK: LockFamily = {
  name: 'id-lock',
  matches: named(['Datek'], ['ID Lock 150', 'ID Lock 202']),
};
