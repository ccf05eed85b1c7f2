/**
 * Yale Assure and Lia, and the Lockwood T-Lock. They do what the standard says.
 *
 * Source: device lists of zigbee-herdsman-converters (yale, 2026-08-22) and of SmartThingsEdgeDrivers (zigbee-lock). Pure.
 */
import { type LockFamily, named } from './family.ts';

export const YALE_ASSURE: LockFamily = {
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
