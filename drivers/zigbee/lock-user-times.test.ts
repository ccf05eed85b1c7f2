/** The times of the user before are not those of the next one, against a simulated lock whose keypad keeps to its schedules. */
import { beforeAll, expect, it } from 'vitest';
import {
  afterAllTests,
  joined,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';

const KIND = '00158d0001000033';
const PIN = '86420975';
const OTHER_PIN = '97531086';

let site: SimulatedGateway;
let gateway: TestGateway;

beforeAll(async () => {
  const cleanup = afterAllTests();
  site = await simulated({ pace: 1, locks: [{ ieee: KIND, vendorCluster: false, mains: true }] }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  await joined(gateway, site, KIND);
}, 60_000);

const apply = (change: object = {}) => {
  const user = { userId: 5, isEnabled: true, pin: null, card: null, access: { kind: 'always' } };
  return gateway.execute('applyUser', { hwId: KIND, ...user, ...change });
};
const fresh = () => site.set(KIND, { faults: null, clearLog: true });
const sent = async () =>
  (await site.state(KIND)).received
    .filter(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation)
    .map(({ command }) => command);

// Set PIN Code 0x05, Clear PIN Code 0x07, Set User Status 0x09, Set User Type 0x14, Clear Week Day 0x0d, Clear Year Day 0x10
// (ZCL rev. 8, 7.3.2.17).
const CLEARED = [...Array(4).fill(0x0d), ...Array(2).fill(0x10)];
const now = Math.floor((Date.now() - Date.UTC(2000, 0, 1)) / 1_000);
const yearDays = (start: number, end: number) => ({ kind: 'yearDays', schedules: [{ start, end }] });
const [TODAY, LATER] = [yearDays(now - 86_400, now + 86_400), yearDays(now + 10 * 86_400, now + 11 * 86_400)];
const DAILY = {
  kind: 'weekDays',
  schedules: [{ daysMask: 127, startHour: 0, startMinute: 0, endHour: 23, endMinute: 59 }],
};
const all = async () => {
  const { schedules } = await site.state(KIND);
  const { weekDays, yearDays } = schedules as Record<'weekDays' | 'yearDays', object[]>;
  return [...weekDays, ...yearDays];
};
/** The lock keeps no schedule as it was sent, so that none is left in it: as when the link ends after the code. */
const cutAfterCode = () => site.set(KIND, { clearLog: true, faults: { changesSchedules: true } });

it.each([
  ['another PIN', { pin: OTHER_PIN, access: LATER }, 0x05],
  ['other days', { pin: OTHER_PIN, access: { kind: 'weekDays', schedules: [] } }, 0x05],
  ['the same PIN, of another type', { pin: PIN, access: { kind: 'weekDays', schedules: [] } }, 0x14],
])('are cleared before the code of the next one: %s', async (_, next, first) => {
  await fresh();
  await apply({ pin: PIN, access: TODAY });
  await cutAfterCode();
  await apply(next).catch(() => undefined);
  const frames = await sent();
  expect(frames.slice(0, frames.indexOf(first) + 1)).toEqual([0x06, ...CLEARED, first]);
  expect(await all()).toEqual([]);
  await fresh();
  await apply();
});

it('are cleared before a user that was disabled is in use again', async () => {
  await fresh();
  await apply({ pin: PIN, access: TODAY, isEnabled: false });
  await fresh();
  await apply({ pin: PIN, access: LATER });
  expect((await sent()).slice(0, 8)).toEqual([0x06, ...CLEARED, 0x09]);
  await apply();
});

it('leave with the user', async () => {
  await fresh();
  await apply({ pin: PIN, access: DAILY });
  await fresh();
  await apply();
  expect((await sent()).filter((command) => [0x07, ...CLEARED].includes(command))).toEqual([
    0x07,
    ...CLEARED,
  ]);
  expect(await all()).toEqual([]);
});

it('open while they last, and no user that is limited opens without', async () => {
  await fresh();
  await apply({ pin: PIN, access: { kind: 'weekDays', schedules: [] } });
  await site.set(KIND, { pin: PIN });
  await apply({ pin: PIN, access: LATER });
  await site.set(KIND, { pin: PIN });
  await apply({ pin: OTHER_PIN, access: DAILY });
  await site.set(KIND, { pin: OTHER_PIN });
  const unlocked = async () => (await site.state(KIND)).executed.filter(({ what }) => what === 'unlock');
  await expect.poll(unlocked).toMatchObject([{ source: 'keypad', user: 5 }]);
});
