import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { DoorInBrief } from '../resources/doors/list-schema.ts';

// Of the browser, what the modules ask at their start.
beforeAll(() => {
  vi.stubGlobal('document', { querySelector: () => null });
  vi.stubGlobal('localStorage', { getItem: () => 'en' });
});
afterAll(() => void vi.unstubAllGlobals());

const door = (accessPointId: number, more: Partial<DoorInBrief> = {}): DoorInBrief => ({
  id: `00000000-0000-4000-8000-${String(accessPointId).padStart(12, '0')}`,
  name: `Room ${accessPointId}`,
  accessPointId,
  groupId: null,
  gatewayId: null,
  mac: null,
  pmsId: null,
  lqi: null,
  lastSeen: null,
  presence: 'connected',
  battery: 'ok',
  batteryPercent: null,
  pending: false,
  applied: true,
  ...more,
});

test('doors are found by what a person knows of them, and the worst stands first', async () => {
  const { choose } = await import('./doors-list.ts');
  const all = [
    door(1, { battery: 'low', batteryPercent: 60 }),
    door(2, { applied: false, gatewayId: 'g', batteryPercent: 30 }),
    door(3, { applied: false, pending: true, presence: 'disconnected', batteryPercent: 5 }),
    // What has no lock has no settings.
    door(4, { applied: false, presence: null, pmsId: 'P-10', groupId: 'f' }),
    door(10, { lqi: 20, lastSeen: 5 }),
  ];
  const names = { groups: new Map([['f', 'Floor 1']]), gateways: new Map([['g', 'Tower']]) };
  const none = { text: '', filter: 'all', order: 'number', group: '', gateway: '' } as const;
  const found = (wanted: object) =>
    choose(all, { ...none, ...wanted }, names).map(({ accessPointId }) => accessPointId);
  expect(found({ filter: 'notApplied' })).toEqual([2, 3]);
  expect(found({ filter: 'pending' })).toEqual([3]);
  expect(found({ filter: 'offline' })).toEqual([3]);
  expect(found({ filter: 'battery' })).toEqual([1]);
  expect(found({ gateway: 'g' })).toEqual([2]);
  expect(found({ text: 'tower' })).toEqual([2]);
  expect(found({ text: 'floor 1' })).toEqual([4]);
  expect(found({ text: 'p-1' })).toEqual([4]);
  expect(found({ order: 'battery' })).toEqual([1, 3, 2, 4, 10]);
  expect(found({ order: 'presence' })).toEqual([3, 4, 1, 2, 10]);
  expect(found({ order: 'name' })).toEqual([1, 2, 3, 4, 10]);
  expect(found({ order: 'lqi' })).toEqual([10, 1, 2, 3, 4]);
});
