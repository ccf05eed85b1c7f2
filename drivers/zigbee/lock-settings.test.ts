/** What a lock is reported to have while settings are written to it: what it has shown since, or nothing. */
import { beforeAll, beforeEach, expect, it, vi } from 'vitest';
import {
  afterAllTests,
  joined,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { LockReport } from '../contract/settings.ts';

const LOCK = '00158d0001000037';
const HOLIDAYS = [
  { start: 800_000_000, end: 800_086_400, mode: 'vacation' },
  { start: 900_000_000, end: 900_086_400, mode: 'vacation' },
];
const SETTINGS = { soundVolume: 1, wrongCodeLimit: 3, autoRelockSeconds: 40 };

let site: SimulatedGateway;
let gateway: TestGateway;
const cleanup = afterAllTests();

beforeAll(async () => {
  site = await simulated({ pace: 1, locks: [{ ieee: LOCK, vendorCluster: false, mains: true }] }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  await joined(gateway, site, LOCK);
}, 60_000);

const apply = (settings: object, timeoutMs?: number) =>
  gateway.execute('applyLockSettings', { hwId: LOCK, settings: { ...settings } }, timeoutMs);
const reported = () => (gateway.reports.get(`device:${LOCK}`) as LockReport).settings;

beforeEach(async () => {
  await site.set(LOCK, { faults: null });
  await apply({ ...SETTINGS, holidays: HOLIDAYS });
  await vi.waitFor(() => expect(reported()).toMatchObject({ ...SETTINGS, holidays: HOLIDAYS }));
});

it.each<[string, object]>([
  ['holidays', { holidays: [] }],
  ['soundVolume', { soundVolume: 2 }],
  ['wrongCodeLimit', { wrongCodeLimit: 5 }],
  ['autoRelockSeconds', { autoRelockSeconds: 60 }],
])('the link is lost at the first frame of one: %s', async (name, settings) => {
  const all: (object | undefined)[] = [];
  const seen = vi.spyOn(gateway.reports, 'set').mockImplementation((subject, state) => {
    if (subject === `device:${LOCK}`) all.push((state as unknown as LockReport).settings);
    return Map.prototype.set.call(gateway.reports, subject, state);
  });
  await site.set(LOCK, { faults: { lostResponses: 1 } });
  await expect(apply(settings)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  seen.mockRestore();
  // It has what it had, or what is written. That may have been reported by the lock already.
  expect(all.length).toBeGreaterThan(0);
  for (const one of [...all, reported()])
    if (one && name in one) expect(one).toMatchObject({ [name]: Object.values(settings)[0] });
});

it('what was cut off is read when the lock answers, also where it is wanted no more', async () => {
  await site.set(LOCK, { faults: { lostResponses: 1 } });
  await expect(apply({ soundVolume: 2 })).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await vi.waitFor(() => expect(reported()).toMatchObject({ soundVolume: 2 }), 20_000);
});

it('is what it was where the lock refuses another one', async () => {
  await expect(apply({ soundVolume: 3 })).rejects.toMatchObject({ code: 'REFUSED' });
  await vi.waitFor(() => expect(reported()).toMatchObject(SETTINGS));
});
