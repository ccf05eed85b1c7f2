/**
 * Yale locks with the module for Control4: what happens at the lock is an alarm of the maker's cluster (0xFC00), in place of
 * operation events and of reports of the bolt.
 *
 * Source: device list of zigbee-herdsman-converters (yale: YRD256-TSDB and ZYA-C4-MOD-S, 2026-08-22). Pure.
 */
import type { EventDetail, Facts } from '../messages.ts';
import { field, integer } from '../values.ts';
import { type LockFamily, named, withoutProof } from './family.ts';

const MAKERS_CLUSTER = 0xfc_00;
const [LOCKED, UNLOCKED] = [1, 2];

type Meaning = [what: string, source: EventDetail['source'], more?: Facts];

const OPERATIONS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [18, ['locked', 'keypad', { movedTo: LOCKED }]],
  [19, ['unlocked', 'keypad', { movedTo: UNLOCKED, unlockedByRadio: false }]],
  [21, ['lockedManually', 'manual', { movedTo: LOCKED }]],
  [22, ['unlockedManually', 'manual', { movedTo: UNLOCKED, unlockedByRadio: false }]],
  [24, ['locked', 'rf', { movedTo: LOCKED }]],
  [25, ['unlocked', 'rf', { movedTo: UNLOCKED, unlockedByRadio: true }]],
  [27, ['lockedAutomatically', null, { movedTo: LOCKED }]],
  [32, ['lockedByOneTouch', 'manual', { movedTo: LOCKED }]],
]);
const BATTERY_LOW: Meaning = ['batteryLow', null, { batteryLow: true }];
const ALARMS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [9, ['jammed', null, { jam: true }]],
  [48, ['factoryReset', null]],
  [130, ['radioPowerCycled', null]],
  [161, ['wrongCodes', 'keypad']],
  [162, ['escutcheonRemoved', null]],
  [167, BATTERY_LOW],
  [168, BATTERY_LOW],
  [169, BATTERY_LOW],
]);

export const YALE_CONTROL4: LockFamily = {
  name: 'yale-control4',
  matches: named(['Yale'], ['YRD256-TSDB']),
  factsOf(heard, facts) {
    const isAlarm = heard.cluster === 'genAlarms' && heard.type === 'commandAlarm';
    if (!isAlarm || field(heard.data, 'clusterid') !== MAKERS_CLUSTER) return facts;
    const code = integer(field(heard.data, 'alarmcode'), 0, 0xff) ?? -1;
    const operation = OPERATIONS.get(code);
    return operation
      ? withoutProof(factsBy('operation', operation))
      : factsBy('alarm', ALARMS.get(code) ?? [`alarm${code}`, null]);
  },
};

function factsBy(kind: EventDetail['kind'], [what, source, more]: Meaning): Facts {
  return { ...more, event: { kind, what, source, userId: null } };
}
