import { describe, expect, it } from 'vitest';
import { doorEvent, factsOf } from './messages.ts';

const doorLock = (type: string, data: unknown) => factsOf({ cluster: 'closuresDoorLock', type, data });

describe('what a lock says', () => {
  it('is its state, when it reports one that exists', () => {
    expect(doorLock('attributeReport', { lockState: 2, doorState: 1 })).toEqual({
      lockState: 2,
      doorState: 1,
    });
    expect(doorLock('attributeReport', { lockState: Number.NaN, doorState: 9 })).toEqual({});
    // The answer to a command goes to the sender of the command, and is not reported twice.
    expect(doorLock('commandUnlockDoorRsp', { status: 0 })).toEqual({});
  });

  it('is an operation with its source and user, and never the digits of a PIN', () => {
    const pin = Buffer.from('4711');
    const heard = { opereventsrc: 0, opereventcode: 5, userid: 3, pin, zigbeelocaltime: 1, data: '4711' };
    const facts = doorLock('commandOperationEventNotification', heard);
    expect(facts.event).toEqual({ kind: 'operation', what: 'unlockFailedPin', source: 'keypad', userId: 3 });
    expect(JSON.stringify(facts)).not.toMatch(/4711|52,55,49,49/);
  });

  it('is an operation without a user where the lock names none', () => {
    const heard = { opereventsrc: 255, opereventcode: 10, userid: Number.NaN };
    expect(doorLock('commandOperationEventNotification', heard).event).toEqual({
      kind: 'operation',
      what: 'lockedAutomatically',
      source: null,
      userId: null,
    });
  });

  it('is the charge of its battery, and that it is low', () => {
    const power = (data: unknown) => factsOf({ cluster: 'genPowerCfg', type: 'attributeReport', data });
    expect(power({ batteryPercentageRemaining: 31 })).toEqual({ battery: 15 });
    expect(power({ batteryAlarmState: 0 })).toEqual({ batteryLow: false });
    // Bits 0, 13 and 23: a threshold of batteries 1, 2 and 3; 30: the loss of the mains (ZCL rev. 8, table 3-22).
    const isLow = (bit: number) => power({ batteryAlarmState: (1 << bit) >>> 0 }).batteryLow;
    expect([0, 13, 23, 30].map(isLow)).toEqual([true, true, true, false]);
  });

  it('is a low battery by the alarm codes of the power configuration, not by those of the lock', () => {
    const alarm = (alarmcode: number, clusterid: number) =>
      factsOf({ cluster: 'genAlarms', type: 'commandAlarm', data: { alarmcode, clusterid } });
    const event = { kind: 'alarm', what: 'batteryLow', source: null, userId: null };
    // Table 3-21: BatteryVoltageMinThreshold of battery 1, and the loss of the mains.
    expect(alarm(0x10, 0x0001)).toEqual({ batteryLow: true, event });
    expect(alarm(0x3a, 0x0001)).toEqual({});
    expect(alarm(0x10, 0x0101)).not.toHaveProperty('batteryLow');
  });

  it('confirms an unlock by radio only', () => {
    const by = (opereventsrc: number) =>
      doorLock('commandOperationEventNotification', { opereventsrc, opereventcode: 2 }).unlockedByRadio;
    // Of table 7-35; 0xff does not say who it was.
    expect([0, 1, 2, 3, Number.NaN, 0xff].map(by)).toEqual([false, true, false, false, undefined, undefined]);
  });

  it('is an alarm of the lock, not of another cluster', () => {
    const alarm = (data: unknown) => factsOf({ cluster: 'genAlarms', type: 'commandAlarm', data });
    expect(alarm({ alarmcode: 0, clusterid: 0x101 })).toMatchObject({ jam: true, event: { what: 'jammed' } });
    expect(alarm({ alarmcode: 6, clusterid: 0x101 })).toMatchObject({ event: { what: 'forcedOpen' } });
    expect(alarm({ alarmcode: 0, clusterid: 1 })).toEqual({});
  });

  it('is a battery in percent, and the signal at the lock', () => {
    const report = (cluster: string, data: unknown) => factsOf({ cluster, type: 'attributeReport', data });
    expect(report('genPowerCfg', { batteryPercentageRemaining: 175 })).toEqual({ battery: 87 });
    expect(report('genPowerCfg', { batteryPercentageRemaining: 201 })).toEqual({});
    expect(report('haDiagnostic', { lastMessageRssi: -71 })).toEqual({ rssi: -71 });
  });

  it.each<[string | number, string, unknown]>([
    [0xfc_99, 'attributeReport', { lockState: 2 }],
    ['genOnOff', 'attributeReport', { lockState: 2 }],
    ['closuresDoorLock', 'raw', Buffer.of(1)],
    ['closuresDoorLock', 'attributeReport', null],
    ['closuresDoorLock', 'commandOperationEventNotification', { opereventcode: 'x' }],
    ['genAlarms', 'commandAlarm', []],
  ])('is nothing from %s %s %j', (cluster, type, data) => {
    expect(factsOf({ cluster, type, data })).toEqual({});
  });

  it('reports a door that changed', () => {
    expect(doorEvent(1, 0)).toMatchObject({ kind: 'door', what: 'doorOpen' });
    expect(doorEvent(undefined, 0)).toBeUndefined();
    expect(doorEvent(0, 0)).toBeUndefined();
  });
});
