import { describe, expect, it } from 'vitest';
import { FAMILIES as IMITATIONS } from '../../../test/simulators/zigbee/families.ts';
import { factsOf, type Heard } from '../messages.ts';
import { FAMILIES, familyOf } from './families.ts';

const ONESTI = { manufacturer: 'Onesti Products AS', model: 'NimlyPRO' };

function said(claim: Parameters<typeof familyOf>[0], heard: Heard) {
  const standard = factsOf(heard);
  return familyOf(claim)?.factsOf?.(heard, standard) ?? standard;
}
const event = (opereventsrc: number, opereventcode: number): Heard => ({
  cluster: 'closuresDoorLock',
  type: 'commandOperationEventNotification',
  data: { opereventsrc, opereventcode, userid: 3 },
});
const charge = (batteryPercentageRemaining: number): Heard => ({
  cluster: 'genPowerCfg',
  type: 'attributeReport',
  data: { batteryPercentageRemaining },
});

describe('a family of locks', () => {
  it('has an imitation of the same name, which it alone matches', () => {
    const found = Object.values(IMITATIONS).map((claim) =>
      FAMILIES.filter((family) => family.matches(claim)).map(({ name }) => name),
    );
    expect(found).toEqual(Object.keys(IMITATIONS).map((name) => [name]));
    expect(FAMILIES.map(({ name }) => name)).toEqual(Object.keys(IMITATIONS));
  });

  it('is of one maker: a model alone, or a part of it, is of none', () => {
    expect(familyOf({ manufacturer: 'Another', model: 'NimlyPRO' })).toBeUndefined();
    expect(familyOf({ manufacturer: 'Yale', model: 'YRD' })).toBeUndefined();
    expect(familyOf({ manufacturer: undefined, model: undefined })).toBeUndefined();
  });

  it('has its charge as its makers report it, and none where that is no percentage', () => {
    expect(said(ONESTI, charge(87))).toEqual({ battery: 87 });
    expect(said(ONESTI, charge(174))).toEqual({});
    expect(said({ manufacturer: 'Datek', model: 'ID Lock 202' }, charge(174))).toEqual({ battery: 87 });
  });
});

describe('an operation of a lock of Onesti', () => {
  const reported = (value: number, more: object = {}) =>
    said(ONESTI, { cluster: 'closuresDoorLock', type: 'attributeReport', data: { 256: value, ...more } });

  it('is what its attribute says', () => {
    // By a finger: captured in zha-device-handlers, issue 5235 (01 00 01 03, the lowest byte first).
    expect(reported(0x03_01_00_01, { lockState: 1 })).toEqual({
      lockState: 1,
      movedTo: 1,
      lastOperation: 0x03_01_00_01,
      event: { kind: 'operation', what: 'locked', source: 'fingerprint', userId: 1 },
    });
    expect(reported(0x02_02_00_09)).toMatchObject({ unlockedByRadio: false, movedTo: 2 });
    // 5: it does not say who.
    expect(reported(0x05_02_ff_ff)).toEqual({
      movedTo: 2,
      lastOperation: 0x05_02_ff_ff,
      event: { kind: 'operation', what: 'unlocked', source: null, userId: null },
    });
    // No action that is known, and one of before this start, which is read.
    expect(reported(0x02_07_00_01)).toEqual({});
    const read: Heard = { cluster: 'closuresDoorLock', type: 'readResponse', data: { 256: 0x02_02_00_09 } };
    expect(said(ONESTI, read)).toEqual({});
  });

  it('proves nothing where it names the radio, and has the door locked again', () => {
    expect(reported(0x00_02_00_01)).toEqual({
      movedTo: 2,
      lastOperation: 0x00_02_00_01,
      event: { kind: 'bolt', what: 'unlocked', source: 'rf', userId: 1 },
    });
    expect(said(ONESTI, event(1, 2))).toMatchObject({ event: { kind: 'bolt', source: 'rf' } });
    expect(said(ONESTI, event(1, 2))).not.toHaveProperty('unlockedByRadio');
  });

  it('is unknown where maker and standard read its code differently', () => {
    for (const code of [0, 1])
      expect(said(ONESTI, event(0, code))).toEqual({
        event: { kind: 'operation', what: 'unknown', source: 'keypad', userId: 3 },
        unlockedByRadio: false,
      });
    // Of the source 0xff, which the library makes NaN of.
    expect(said(ONESTI, event(Number.NaN, 13))).toEqual({});
    expect(said(ONESTI, event(2, 0x11))).toEqual({
      event: { kind: 'operation', what: 'unlocked', source: 'fingerprint', userId: 3 },
      movedTo: 2,
      unlockedByRadio: false,
    });
  });
});

describe('an alarm of the Control4 module', () => {
  const alarm = (alarmcode: number, clusterid = 0xfc00) =>
    said(
      { manufacturer: 'Yale', model: 'YRD256-TSDB' },
      {
        cluster: 'genAlarms',
        type: 'commandAlarm',
        data: { alarmcode, clusterid },
      },
    );

  it('is an operation, an alarm, or one whose code is all that is known', () => {
    expect(alarm(19)).toEqual({
      movedTo: 2,
      unlockedByRadio: false,
      event: { kind: 'operation', what: 'unlocked', source: 'keypad', userId: null },
    });
    expect(alarm(25)).toMatchObject({ event: { kind: 'bolt', what: 'unlocked', source: 'rf' } });
    expect(alarm(25)).not.toHaveProperty('unlockedByRadio');
    expect(alarm(9)).toMatchObject({ jam: true, event: { kind: 'alarm', what: 'jammed' } });
    expect(alarm(169)).toMatchObject({ batteryLow: true });
    expect(alarm(240)).toEqual({ event: { kind: 'alarm', what: 'alarm240', source: null, userId: null } });
  });

  it('of the standard cluster is as the standard has it', () => {
    expect(alarm(6, 0x0101)).toMatchObject({ event: { kind: 'alarm', what: 'forcedOpen' } });
  });
});
