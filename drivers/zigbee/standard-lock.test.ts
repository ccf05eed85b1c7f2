import { describe, expect, it } from 'vitest';
import type { LockConfiguration } from '../settings.ts';
import { capabilitiesOf, offersPassage, planFor, writeFrame } from './standard-lock.ts';
import { PLAIN } from './test-configuration.ts';

const passage = { supportedOperatingModes: 0b1_0001, autoRelockTime: Number.NaN, relockSeconds: undefined };
const relock = { supportedOperatingModes: undefined, autoRelockTime: 60, relockSeconds: undefined };
const bare = { supportedOperatingModes: Number.NaN, autoRelockTime: undefined, relockSeconds: undefined };

describe('a standard lock', () => {
  it('offers passage in either sense of its bits', () => {
    expect([0b1_0001, 0b1111_1111_1110_1110].map(offersPassage)).toEqual([true, true]);
    expect([0b0_0001, 0b1111_1111_1111_1110, Number.NaN, undefined].map(offersPassage)).toEqual([
      ...[false, false, false, false],
    ]);
  });

  it('stands open by its passage mode, and is locked again by its normal one', () => {
    const mode = (standOpenEnabled: boolean) => planFor({ ...PLAIN, standOpenEnabled }, passage).writes;
    expect(mode(true)).toEqual([{ attrId: 0x25, dataType: 0x30, attrData: 4 }]);
    expect(mode(false)).toEqual([{ attrId: 0x25, dataType: 0x30, attrData: 0 }]);
  });

  it('stands open by not relocking, and gets its own time back', () => {
    const open = planFor({ ...PLAIN, standOpenEnabled: true }, relock);
    expect(open).toMatchObject({
      writes: [{ attrId: 0x23, attrData: 0 }],
      relockSeconds: 60,
      unsupported: [],
    });
    const again = planFor(PLAIN, { ...relock, autoRelockTime: 0, relockSeconds: 60 });
    expect(again.writes).toEqual([{ attrId: 0x23, dataType: 0x23, attrData: 60 }]);
    expect(planFor(PLAIN, { ...relock, autoRelockTime: 0 }).writes).toMatchObject([{ attrData: 30 }]);
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
    expect(planFor(all, bare)).toMatchObject({
      writes: [],
      unsupported: [
        ...['standOpenEnabled', 'onlineEnabled', 'accessInternal', 'outputs', 'schedule'],
        ...['relaySetup', 'type', 'number', 'name'],
      ],
    });
    expect(planFor(PLAIN, bare)).toMatchObject({ writes: [], unsupported: [] });
    // Of nobody, at no time: nothing is asked for.
    const nobody = { ...PLAIN, accessInternal: { doors: [], interval: null } };
    expect(planFor(nobody, bare)).toMatchObject({ unsupported: [] });
  });

  it('is written to in the frame of the standard', () => {
    // ZCL rev. 8, 2.5.3: frame control, sequence number, command 2; attribute, type, value.
    const frame = writeFrame([{ attrId: 0x23, dataType: 0x23, attrData: 60 }], 7);
    expect(Buffer.from(frame).toString('hex')).toBe('1007022300233c000000');
  });

  it('has the capabilities it told of', () => {
    const values: Record<string, unknown> = { numOfPinUsersSupported: 10, doorState: 1, autoRelockTime: NaN };
    const told = { attribute: (name: string) => values[name], inputs: [0x20], outputs: [0x19] };
    expect(capabilitiesOf(told)).toEqual(['pins', 'doorSensor', 'firmwareUpdate', 'pollControl']);
  });
});
