/** The doors of the console in a browser, on a phone and at a desk, against a site of simulated locks. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { waitFor, type ZigbeeSite } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, picture, type Visitors } from './browser.ts';
import { MACS, openLockSite } from './lock-site.ts';

let site: ZigbeeSite;
let visitors: Visitors;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

describe.skipIf(NO_CHROMIUM)('the doors of the console', () => {
  beforeAll(async () => {
    ({ site, visitors } = await openLockSite(stack));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('opens a door after a question, and says what became of it', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const { id } = await site.door(MACS[0]);
    await site.call('PUT', `/access/doors/${id}`, { name: '<b>Suite</b> 101' });
    await page.getByRole('link', { name: 'Doors', exact: true }).click();
    await page.getByLabel('Sort by').selectOption('Weakest battery');
    await page.getByRole('searchbox').fill('suite');
    await page.getByText('1 of 2 doors').waitFor();
    await page.getByLabel('Gateway').selectOption(site.gateways[1].deviceId);
    await page.getByText('No door is like that.').waitFor();
    await page.getByLabel('Gateway').selectOption('Any gateway');
    await picture(page, 'doors-phone');
    await expectUsable(page);
    await page.getByRole('link', { name: '<b>Suite</b> 101' }).click();
    await page.getByRole('heading', { name: '<b>Suite</b> 101' }).waitFor();
    await picture(page, 'door-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    expect((await site.doorState(MACS[0])).lastUnlock).toBeNull();
    await page.getByRole('button', { name: 'Unlock' }).click();
    await picture(page, 'unlock-phone');
    const order = page.waitForRequest((request) => request.url().endsWith('/unlock'));
    await page.getByRole('button', { name: 'Yes, unlock' }).click();
    // A browser repeats a request by itself when its connection is reset.
    expect((await order).headers()['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
    await page.getByText('Unlocked. The door reported it.').waitFor();
    await picture(page, 'unlocked-phone');
    expect(await site.doorState(MACS[0])).toMatchObject({ lastUnlock: { outcome: 'confirmed' } });
    expect(faults).toEqual([]);
  });

  it('has a door stand open for a time, ends that, and locks it', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const { id } = await site.door(MACS[0]);
    await site.call('PUT', `/access/doors/${id}`, { standOpenEnabled: true });
    await page.goto(`${site.site.daemon.baseUrl}/#/doors/${id}`);
    await page.getByRole('combobox', { name: 'Stand open for' }).selectOption('1 h');
    await page.getByRole('button', { name: 'Stand open', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, stand open' }).click();
    await page.getByText(/^Stands open until .* It stands open: the door reported it\.$/).waitFor();
    const { standingOpen } = (await site.doorState(MACS[0])) as { standingOpen: { until: string } };
    const minutesLeft = (Date.parse(standingOpen.until) - Date.now()) / 60_000;
    expect(minutesLeft).toBeGreaterThan(50);
    expect(minutesLeft).toBeLessThanOrEqual(60);
    await picture(page, 'door-standing-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'End it and lock' }).click();
    await page.getByRole('button', { name: 'Yes, lock' }).click();
    await page.getByRole('button', { name: 'Unlock' }).waitFor();
    expect(await site.doorState(MACS[0])).toMatchObject({
      standingOpen: null,
      lockState: { value: 'locked' },
    });
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, lock' }).click();
    await page.getByText('Locked. The door reported it.').waitFor();
    await picture(page, 'door-actions-phone');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it.each([
    ['jammed', { jammed: true }, 'Jammed: the lock tried, and the bolt did not move. Go and look.'],
    ['refused', { refuse: { status: 1, commands: 1 } }, 'Refused by the lock.'],
    ['lost', { lostRequests: 9 }, 'It is not known whether the door opened: go and look.'],
  ] as const)('says so when an unlock is %s', async (name, faults, words) => {
    const visit = await visitors.open('phone');
    const { page } = visit;
    await visitors.signIn(page, 'service-tool');
    const { id } = await site.door(MACS[0]);
    const { simulated } = site.gateways[0];
    await simulated.set(MACS[0], { faults });
    try {
      await page.goto(`${site.site.daemon.baseUrl}/#/doors/${id}`);
      await page.getByRole('button', { name: 'Unlock' }).click();
      await page.getByRole('button', { name: 'Yes, unlock' }).click();
      await page.getByText(words).waitFor();
      await picture(page, `unlock-${name}-phone`);
    } finally {
      await simulated.set(MACS[0], { faults: null });
    }
    expect(visit.faults).toEqual([]);
  });

  it.each([
    [
      'phone',
      'en-GB',
      { since: 'Settings are on their way to the lock. Name, Keys of other doors', yes: 'no→yes' },
    ],
    [
      'desk',
      'de-DE',
      { since: 'Einstellungen sind unterwegs zum Schloss. Name, Schlüssel anderer Türen', yes: 'nein→ja' },
    ],
  ] as const)(
    'shows what is wanted of a door beside what its lock has, on a %s',
    async (view, locale, words) => {
      const { page, faults } = await visitors.open(view, { locale, colorScheme: 'dark' });
      await visitors.signIn(page, 'front-desk-admin');
      const { id } = await site.door(MACS[1]);
      const put = (body: object) => site.call('PUT', `/access/doors/${id}`, body);
      const { simulated } = site.gateways[1];
      await put({ name: 'Spa', scheduleId: null, standOpenEnabled: false, options: null });
      await waitFor(async () =>
        expect(await site.doorState(MACS[1])).toMatchObject({ configuration: { inForce: true } }),
      );
      expect((await site.call('PUT', '/access/schedules/pool', { intervals: [] })).status).toBe(200);
      await simulated.set(MACS[1], { faults: { offline: true } });
      try {
        const options = { accessInternal: { doors: [{ id: (await site.door(MACS[0])).id }] } };
        const wanted = { name: 'Pool', scheduleId: 'pool', standOpenEnabled: true, options };
        expect((await put(wanted)).status).toBe(200);
        await page.goto(`${site.site.daemon.baseUrl}/#/doors/${id}`);
        await page.getByText(words.since).waitFor();
        const rows = page.locator('.diff div');
        await rows.nth(3).waitFor();
        const shown = (await rows.allTextContents()).map((row) => row.replaceAll(/\s/g, ''));
        expect(shown.filter((row) => row.includes('Spa→Pool'))).toHaveLength(1);
        expect(shown.filter((row) => row.includes('–→pool'))).toHaveLength(1);
        expect(shown.filter((row) => row.includes(words.yes))).toHaveLength(1);
        expect(shown).toHaveLength(4);
        await page.locator('.diff').scrollIntoViewIfNeeded();
        await picture(page, `door-on-the-way-${view}`);
        await expectUsable(page);
      } finally {
        await simulated.set(MACS[1], { faults: null });
      }
      await put({ name: 'Spa', scheduleId: null, standOpenEnabled: false, options: null });
      await page.locator('.diff').waitFor({ state: 'detached' });
      expect(faults).toEqual([]);
    },
  );

  it('draws the last days of a door', async () => {
    const { page, faults } = await visitors.open('desk');
    await visitors.signIn(page, 'front-desk-admin');
    const { id } = await site.door(MACS[0]);
    // A gateway that has just started has kept no hour yet.
    const sample = (hoursAgo: number, lqi: number | null, battery: number | null) => ({
      at: new Date(Date.now() - hoursAgo * 3_600_000).toISOString(),
      lqi,
      rssi: lqi === null ? null : -60 - hoursAgo,
      battery,
      batteryMillivolts: null,
    });
    const samples = [sample(30, 180, 80), sample(20, null, 79), sample(1, 90, 78)];
    await page.route('**/history?days=7', (route) => route.fulfill({ json: { doorId: id, samples } }));
    await page.goto(`${site.site.daemon.baseUrl}/#/doors/${id}`);
    const chart = page.getByRole('img', { name: 'Radio quality, signal and battery over time' });
    await chart.waitFor();
    await page.getByText('Radio (LQI) 90 … 180').waitFor();
    await page.getByText('Battery 78 … 80 %').waitFor();
    const points = await chart.locator('polyline').evaluateAll((lines) => {
      return lines.map((each) => each.getAttribute('points')?.split(' ').length);
    });
    expect(points).toEqual([2, 3, 2]);
    await page.getByText('Signal (RSSI) -90 … -61 dBm').waitFor();
    const quarter = page.waitForRequest((request) => request.url().endsWith('/history?days=90'));
    await page.getByRole('combobox', { name: 'Period' }).selectOption('90 days');
    await quarter;
    await page.locator('.log li', { hasText: 'Lock' }).last().waitFor();
    await picture(page, 'door-history-desk');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('keeps what is typed of a door while somebody else changes it, and asks', async () => {
    const { page, faults } = await visitors.open('phone', { colorScheme: 'dark' });
    await visitors.signIn(page, 'front-desk-admin');
    const { id } = await site.door(MACS[0]);
    await page.goto(`${site.site.daemon.baseUrl}/#/doors/${id}`);
    await page.getByRole('textbox', { name: 'Name' }).fill('Suite 102');
    expect((await site.call('PUT', `/access/doors/${id}`, { pmsId: 'P-9' })).status).toBe(200);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Somebody else changed it meanwhile: PMS id "P-9".').waitFor();
    await picture(page, 'door-conflict-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'Save mine all the same' }).click();
    await page.getByRole('heading', { name: 'Suite 102' }).waitFor();
    const { body } = await site.call('GET', `/access/doors/${id}`);
    expect(body).toMatchObject({ name: 'Suite 102', pmsId: 'P-9' });
    expect(faults).toEqual([]);
  });
});
