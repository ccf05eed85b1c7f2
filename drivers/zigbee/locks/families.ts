/** The families of standard locks; one that needs code of its own has a file beside this. Pure. */
import { type Claim, inPercent, type LockFamily, named } from './family.ts';
import { EASY_CODE, NIMLY } from './onesti.ts';
import { YALE_CONTROL4 } from './yale-control4.ts';
import { YALE_DIGITAL, YALE_SOLIS } from './yale-digital.ts';

/**
 * Yale Assure and Lia, and the Lockwood T-Lock. They do what the standard says.
 *
 * Source: device lists of zigbee-herdsman-converters (yale, 2026-08-22) and of SmartThingsEdgeDrivers (zigbee-lock).
 */
const YALE_ASSURE: LockFamily = {
  name: 'yale-assure',
  matches: named(
    ['Yale'],
    [
      ...['LIA', 'YDD-D4F0 TSDB', 'YRL256 TS', 'YRM476 TS BLE', 'YRD446 BLE TSDB'],
      ...['YRD226 TSDB', 'YRD226L TSDB', 'YRD226/246 TSDB', 'YRL226 TS', 'YRL226L TS', 'YRL226 TSLL'],
      ...['YRD256 TSDB', 'YRD256L TSDB', 'YRD652 TSDB', 'YRD652L TSDB', 'YRL216 PB'],
      ...['YRD410 TS', 'YRD410 PB', 'YRD420 TS', 'YRD430 TS', 'YRD430 PB', 'YRD450 TS', 'YRD450-F TS'],
    ],
  ),
};

/**
 * Yale Real Living, and the digital locks of ASSA ABLOY iRevo that are sold as Yale: they report the charge of the battery
 * in percent.
 *
 * Source: device lists of zigbee-herdsman-converters (yale, 2026-08-22), of zha-device-handlers (yale, 2024-10) and of
 * SmartThingsEdgeDrivers (zigbee-lock, bad-battery-reporter).
 */
const YALE_REAL_LIVING: LockFamily = {
  name: 'yale-real-living',
  matches: named(
    ['Yale', 'ASSA ABLOY iRevo'],
    [
      ...['YRD210 PB DB', 'YRL210 PB LL', 'YRD216 PBDB', 'YRL220 TS LL', 'YRD220/240 TSDB', 'YRD246 TSDB'],
      ...['iZBModule01', '0600000001', '0700000001', 'c700000202', '06ffff2027', '06ffff2029', '06e01d220c'],
    ],
  ),
  factsOf: inPercent,
};

/**
 * Danalock V3. It does what the standard says, without the auto-relock time and the operating mode, and says of itself that
 * its actuator is disabled (0x0002), which it is not.
 *
 * Source: device list of zigbee-herdsman-converters (danalock, 2026-08-22); attributes of one in sprut/Hub, issue 469.
 */
const DANALOCK: LockFamily = {
  name: 'danalock',
  matches: named(['Danalock'], ['V3-BTZB', 'V3-BTZBE']),
};

/**
 * Schlage Connect. It does what the standard says; the lock is endpoint 1 of some, and endpoint 2 of others.
 *
 * Source: device lists of zigbee-herdsman-converters (schlage, 2026-08-22) and of SmartThingsEdgeDrivers (zigbee-lock);
 * pull request 1686 of the former.
 */
const SCHLAGE: LockFamily = { name: 'schlage', matches: named(['Schlage'], ['BE468']) };

/**
 * Kwikset SmartCode, also sold as Weiser. The lock is endpoint 2; endpoint 196 of some has a power configuration of its own,
 * which is not listened to.
 *
 * Source: device lists of zigbee-herdsman-converters (kwikset and weiser, 2026-08-22; pull request 11756) and of
 * SmartThingsEdgeDrivers (zigbee-lock).
 */
const KWIKSET: LockFamily = {
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

/**
 * ID Lock 150 and 202 with the module of Datek. It does what the standard says, without alarms. Its own attributes (0x4000 to
 * 0x4006 of the Door Lock cluster, with Datek's manufacturer code) are not read.
 *
 * Source: device list of zigbee-herdsman-converters (datek, 2026-08-22); descriptor in zigbee2mqtt, issue 18456.
 */
const ID_LOCK: LockFamily = {
  name: 'id-lock',
  matches: named(['Datek'], ['ID Lock 150', 'ID Lock 202']),
};

/**
 * Door locks of Aqara and Xiaomi. No public list knows a command to their bolt, and newer ones encrypt what they report: the
 * battery alone is read.
 *
 * Source: device list of zigbee-herdsman-converters (lumi: ZNMS11LM, ZNMS12LM, ZNMS13LM, A6121; 2026-08-22); frames in the
 * issues 143, 551 and 713 of XiaomiGateway3.
 */
const AQARA: LockFamily = {
  name: 'aqara',
  matches: ({ model = '' }) => /^lumi\.lock\./.test(model),
  takesNoCommands:
    'locks of Aqara and Xiaomi take no commands by radio; open or lock the door at the lock itself, or fit a lock that does (docs/locks.md)',
};

/** In the order in which they are tried. */
export const FAMILIES: readonly LockFamily[] = [
  YALE_ASSURE,
  YALE_REAL_LIVING,
  YALE_DIGITAL,
  YALE_SOLIS,
  YALE_CONTROL4,
  DANALOCK,
  SCHLAGE,
  KWIKSET,
  NIMLY,
  EASY_CODE,
  ID_LOCK,
  AQARA,
];

/** Undefined: it is taken for what the standard says. */
export function familyOf(claim: Claim): LockFamily | undefined {
  return FAMILIES.find((family) => family.matches(claim));
}
