import { describe, expect, it } from 'vitest';
import { PLAIN } from '../../test/drivers/zigbee/configuration.ts';
import type { LockConfiguration } from '../contract/settings.ts';
import { capabilitiesOf, offersPassage, unsupportedOf } from './standard-lock.ts';

describe('a standard lock', () => {
  it('offers passage in either sense of its bits', () => {
    expect([0b1_0001, 0b1111_1111_1110_1110].map(offersPassage)).toEqual([true, true]);
    expect([0b0_0001, 0b1111_1111_1111_1110, Number.NaN, undefined].map(offersPassage)).toEqual([
      ...[false, false, false, false],
    ]);
  });

  it('names what it cannot carry', () => {
    const all: LockConfiguration = {
      name: 'n',
      number: 1,
      type: 't',
      relaySetup: 'r',
      standOpenEnabled: true,
      onlineEnabled: true,
      accessInternal: { doors: ['d'], interval: null },
      outputs: [{ doorId: 'd', doors: [] }],
      schedule: [{ weekdays: 1, start: 0, end: 1 }],
    };
    // The permission is the gateway's to keep.
    expect(unsupportedOf(all, {})).toEqual([
      ...['onlineEnabled', 'accessInternal', 'outputs', 'schedule', 'relaySetup', 'type', 'number', 'name'],
    ]);
    expect(unsupportedOf(PLAIN, {})).toEqual([]);
    // Of no one, at no time: nothing is asked for.
    expect(unsupportedOf({ ...PLAIN, accessInternal: { doors: [], interval: null } }, {})).toEqual([]);
    // One over midnight takes two of its week-day schedules, one until midnight takes one.
    const night = { weekdays: 1, start: 1_320, end: 360 };
    const schedule = [night, { ...night, end: 0 }];
    expect(unsupportedOf({ ...PLAIN, schedule }, { weekDays: 3 })).toEqual([]);
    expect(unsupportedOf({ ...PLAIN, schedule }, { weekDays: 2 })).toEqual(['schedule']);
  });

  it('has the capabilities that it reported', () => {
    const values: Record<string, unknown> = { numOfPinUsersSupported: 10, doorState: 1, autoRelockTime: NaN };
    const reported = { attribute: (name: string) => values[name], inputs: [0x20], outputs: [0x19] };
    expect(capabilitiesOf(reported)).toEqual(['pins', 'doorSensor', 'firmwareUpdate', 'pollControl']);
  });
});
