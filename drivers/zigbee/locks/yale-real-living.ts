/**
 * Yale Real Living, and the digital locks of ASSA ABLOY iRevo that are sold as Yale: they report the charge of the battery
 * in percent.
 *
 * Source: device lists of zigbee-herdsman-converters (yale, 2026-08-22), of zha-device-handlers (yale, 2024-10) and of
 * SmartThingsEdgeDrivers (zigbee-lock, bad-battery-reporter). Pure.
 */
import { inPercent, type LockFamily, named } from './family.ts';

export const YALE_REAL_LIVING: LockFamily = {
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
