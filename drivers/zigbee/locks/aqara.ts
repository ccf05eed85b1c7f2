/**
 * Door locks of Aqara and Xiaomi. No public list knows a command to their bolt, and newer ones encrypt what they report: the
 * battery alone is read.
 *
 * Source: device list of zigbee-herdsman-converters (lumi: ZNMS11LM, ZNMS12LM, ZNMS13LM, A6121; 2026-08-22); frames in the
 * issues 143, 551 and 713 of XiaomiGateway3. Pure.
 */
import type { LockFamily } from './family.ts';

const MODEL = /^lumi\.lock\./;

export const AQARA: LockFamily = {
  name: 'aqara',
  matches: ({ model = '' }) => MODEL.test(model),
  takesNoCommands:
    'locks of Aqara and Xiaomi take no commands by radio; open or lock the door at the lock itself, or fit a lock that does (docs/locks.md)',
};
