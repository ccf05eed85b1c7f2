/**
 * Danalock V3. It does what the standard says, without the auto-relock time and the operating mode, and says of itself that
 * its actuator is disabled (0x0002), which it is not.
 *
 * Source: device list of zigbee-herdsman-converters (danalock, 2026-08-22); attributes of one in sprut/Hub, issue 469. Pure.
 */
import { type LockFamily, named } from './family.ts';

export const DANALOCK: LockFamily = {
  name: 'danalock',
  matches: named(['Danalock'], ['V3-BTZB', 'V3-BTZBE']),
};
