import { expect, it } from 'vitest';
import { changeOf, type ImportPlan, leftAlone } from '../../platform/import-plan.ts';
import { identifiedDevices, identifiedDoors } from './plan.ts';

const SYSTEM_ID = '0d8c1c1e-7a3e-4f0b-9c57-3a52f1f0a1b2';
const entry = { bus: 'bus-1', hwId: 'io-1' };
const plan = (...changes: ImportPlan['changes']): ImportPlan => ({ changes, write() {} });
const added = (id: string) => changeOf('rs485 device', id, undefined, {});
const idOf = (made: ImportPlan) => identifiedDevices([entry], made, SYSTEM_ID)[0]?.deviceId;

it('draws the same id each time, and another for another system or place', () => {
  const id = idOf(plan(added('drawn')));
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  expect(idOf(plan(added('drawn again')))).toBe(id);
  const others = [
    identifiedDevices([{ ...entry, bus: 'bus-2' }], plan(added('a')), SYSTEM_ID)[0]?.deviceId,
    identifiedDevices([{ ...entry, hwId: 'io-2' }], plan(added('a')), SYSTEM_ID)[0]?.deviceId,
    identifiedDevices([entry], plan(added('a')), '1d8c1c1e-7a3e-4f0b-9c57-3a52f1f0a1b2')[0]?.deviceId,
    identifiedDoors([{ accessPointId: 1 }], plan(added('a')), SYSTEM_ID)[0]?.id,
    identifiedDoors([{ accessPointId: 2 }], plan(added('a')), SYSTEM_ID)[0]?.id,
  ];
  expect(new Set([id, ...others]).size).toBe(6);
});

it('draws another where a device that has moved still has the id', () => {
  const first = idOf(plan(added('a'))) ?? '';
  const second = idOf(plan(added('a'), leftAlone('rs485 device', first, null)));
  expect(second).not.toBe(first);
  expect(idOf(plan(added('a'), leftAlone('rs485 device', first, null)))).toBe(second);
});

it('leaves alone what has an id, and what is known', () => {
  const known = plan(changeOf('door', 'a', { name: 'x' }, { name: 'y' }), added('b'));
  const entries = [{ accessPointId: 1 }, { id: 'b', accessPointId: 2 }];
  expect(identifiedDoors(entries, known, SYSTEM_ID)).toEqual(entries);
});
