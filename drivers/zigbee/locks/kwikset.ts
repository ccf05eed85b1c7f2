/**
 * Kwikset SmartCode, also sold as Weiser. The lock is endpoint 2; endpoint 196 of some has a power configuration of its own,
 * which is not listened to.
 *
 * Source: device lists of zigbee-herdsman-converters (kwikset and weiser, 2026-08-22; pull request 11756) and of
 * SmartThingsEdgeDrivers (zigbee-lock). Pure.
 */
import { type LockFamily, named } from './family.ts';

export const KWIKSET: LockFamily = {
  name: 'kwikset',
  matches: named(
    ['Kwikset', 'Weiser'],
    [
      ...['SMARTCODE_CONVERT_GEN1', 'SMARTCODE_CONVERT_GEN1_W3', 'Smartcode'],
      ...['SMARTCODE_DEADBOLT_5', 'SMARTCODE_DEADBOLT_5_L', 'SMARTCODE_LEVER_5', 'SMARTCODE_DEADBOLT_10'],
      ...['SMARTCODE_DEADBOLT_10_L', 'SMARTCODE_DEADBOLT_10T', 'SMARTCODE_DEADBOLT_10_W3'],
      ...['SMARTCODE_DEADBOLT_10T_W3', 'SMARTCODE_DEADBOLT_10_W3_L'],
    ],
  ),
};
