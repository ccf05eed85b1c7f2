/** The console in a browser, on a phone and at a desk, against a site of simulated locks. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { STREAMS_PER_PRINCIPAL } from '../../src/services/events/live.ts';
import { openZigbeeSite, waitFor, type ZigbeeSite } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

const MACS = ['00158d0001aa0101', '00158d0001aa0102'] as const;
const NEWCOMER = '00158d0001aa0103';

let site: ZigbeeSite;
let visitors: Visitors;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

/** Which page is shown first depends on the role. */
const firstPageIn = (page: Page) =>
  page
    .getByText('3 of 3 doors')
    .or(page.getByRole('heading', { name: 'Now' }))
    .first()
    .waitFor();

describe.skipIf(NO_CHROMIUM)('the console', () => {
  beforeAll(async () => {
    const plans = MACS.map((mac, index) => ({
      ieee: `00124b0014d9a00${index + 1}`,
      locks: [mac, ...(index === 0 ? [NEWCOMER] : [])].map((ieee) => ({ ieee })),
    }));
    site = stack.use(await openZigbeeSite(plans as unknown as Parameters<typeof openZigbeeSite>[0]));
    for (const [index, mac] of MACS.entries()) {
      const gateway = site.gateways[index as 0 | 1];
      await waitFor(async () =>
        expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
      );
      await site.join(gateway, mac);
    }
    visitors = stack.use(await openVisitors(site.site.daemon));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('is signed in to by a code, once, and left again', async () => {
    const { page, faults } = await visitors.open('phone');
    await picture(page, 'sign-in');
    await expectUsable(page);
    await page.getByRole('textbox').fill('WRONG-CODE');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toMatch(/gatehouse login-code/);
    await visitors.signIn(page, 'service-tool', 'front-desk-admin');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('textbox').waitFor();
    expect(faults).toEqual([]);
  });

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
    await page.locator('.log li', { hasText: 'door.lock' }).last().waitFor();
    await picture(page, 'door-history-desk');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('makes a door, and saves the audit of it', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const taken = (await site.call('GET', `/access/doors/${(await site.door(MACS[0])).id}`)).body;
    await page.getByRole('link', { name: 'Doors', exact: true }).click();
    await page.getByText('New door').click();
    await page.getByRole('textbox', { name: 'Name' }).fill('=Cellar, "left"');
    await page.getByRole('textbox', { name: 'Number' }).fill(String(taken.accessPointId));
    await expectUsable(page);
    await page.getByRole('button', { name: 'Make' }).click();
    await page
      .getByText(/accessPointId|access point|number/i)
      .last()
      .waitFor();
    await picture(page, 'new-door-phone');
    await page.getByRole('textbox', { name: 'Number' }).fill('');
    await page.getByRole('button', { name: 'Make' }).click();
    await page.getByRole('heading', { name: '=Cellar, "left"' }).waitFor();
    await page.getByText('No lock').waitFor();
    const made = page.url().split('/').at(-1);

    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    // What is typed stays when the page is read again.
    const read = page.waitForResponse(/\/audit\?/);
    await page.getByRole('searchbox', { name: 'Action' }).fill('door.create');
    await read;
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
    await page.keyboard.press('Enter');
    const actions = async () => new Set(await page.locator('.log strong').allTextContents());
    await expect.poll(actions, { timeout: 30_000 }).toEqual(new Set(['door.create']));
    await page.getByText('Period and export').click();
    await expectUsable(page);
    await page.getByRole('button', { name: 'Check that nothing was changed' }).click();
    await page.getByText(/^All \d+ entries are as written/).waitFor();
    await picture(page, 'audit-export-phone');
    const saved = async (format: string) => {
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: format }).click();
      const file = await download;
      return [file.suggestedFilename(), readFileSync(await file.path(), 'utf8')] as const;
    };
    const [jsonName, json] = await saved('JSON');
    expect(jsonName).toBe('gatehouse-audit.json');
    const entries = JSON.parse(json) as { action: string; object: string }[];
    expect(entries.at(-1)?.object).toBe(`door/${made}`);
    expect(entries.map(({ action }) => action)).toEqual(entries.map(() => 'door.create'));
    const [, csv] = await saved('CSV');
    expect(csv.split('\r\n').at(0)).toBe(
      '"seq","at","principal","action","object","outcome","correlationId","detail"',
    );
    expect(csv.trimEnd().split('\r\n')).toHaveLength(entries.length + 1);
    await page.getByLabel('From').fill('2999-01-01T00:00');
    await page.keyboard.press('Tab');
    await page.getByText('Nothing is like that.').waitFor();
    expect((await saved('JSON'))[1]).toBe('[]');
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByRole('searchbox').fill(`door.changed ${made}`);
    await page.locator('.log li', { hasText: 'door.changed' }).first().waitFor();
    await page.getByText('Period and export').click();
    await expectUsable(page);
    const [, events] = await saved('JSON');
    expect(JSON.parse(events)).toMatchObject([{ subject: made, data: { change: 'created' } }]);
    expect((await saved('CSV'))[1]).toContain('"gatehouse.door.changed.v1"');
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00');
    await page.keyboard.press('Tab');
    await page.getByText('Nothing of this kind has happened').waitFor();
    expect((await site.call('DELETE', `/access/doors/${made}`)).status).toBe(200);
    expect(faults.filter((fault) => !/status of 409/.test(fault))).toEqual([]);
  });

  it('lets a lock join and names its room, and asks for a map', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool', 'front-desk-admin');
    const [gateway] = site.gateways;
    await site.call('PUT', `/network/zgate/${gateway.deviceId}`, { name: 'Tower' });
    await page.getByRole('link', { name: 'Zigbee', exact: true }).click();
    await picture(page, 'zigbee-phone');
    await expectUsable(page);
    await page.getByRole('link', { name: 'Tower' }).click();
    await page.getByRole('button', { name: 'Open for 3 minutes' }).click();
    await page.getByText(/^Locks may join for 1\d\d s more\.$/).waitFor();
    expect(await gateway.simulated.join(NEWCOMER)).toBe('joined');
    await page.getByRole('textbox', { name: 'Which room' }).fill('Room 7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await picture(page, 'zigbee-join-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'Close the window' }).click();
    await page.getByRole('button', { name: 'Open for 3 minutes' }).waitFor();
    await page.getByRole('button', { name: 'Ask for a map' }).click();
    await page.getByRole('button', { name: 'Yes, ask' }).click();
    await page.getByText(/^3 nodes, \d+ links?\.$/).waitFor();
    const drawing = page.getByRole('img', { name: 'Picture of the network: 3 nodes' });
    await page.locator('canvas[data-drawn]').waitFor();
    const box = await drawing.boundingBox();
    // The coordinator, where two locks leave it: layOut is the same each time.
    await drawing.click({ position: { x: (box?.width ?? 0) / 2, y: 154 } });
    await page
      .getByText(/ · (coordinator|endDevice)/)
      .first()
      .waitFor();
    await picture(page, 'zigbee-map-phone');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('moves a network to another channel, and says which locks followed', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    await page.goto(`${site.site.daemon.baseUrl}/#/zigbee/${site.gateways[0].deviceId}`);
    await page.getByRole('combobox', { name: 'Move the network to channel' }).selectOption('20');
    await page.getByRole('button', { name: 'Move', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, move' }).click();
    await page.getByText('2 of 2 locks followed.').waitFor({ timeout: 60_000 });
    expect(await site.gateways[0].read()).toMatchObject({ zigbeeChannel: 20 });
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

  it('shows a gateway that is lost as it happens, in German and in the dark', async () => {
    const { page, faults } = await visitors.open('desk', { locale: 'de-DE', colorScheme: 'dark' });
    await visitors.signIn(page, 'service-tool');
    await page.getByRole('heading', { name: 'Jetzt' }).waitFor();
    await site.gateways[1].simulated.hangUp();
    await page.getByText('Verbindung zb-2 ist unterbrochen').waitFor();
    // Once for all doors behind it, and in words: no path of the interface, no time of a machine.
    await page.getByText('1 Tür ist nicht erreichbar, weil ihr Zigbee-Gateway fehlt').waitFor();
    expect(await page.getByRole('main').textContent()).not.toMatch(/\/network\/|\dT\d\d:/);
    await picture(page, 'now-desk');
    await expectUsable(page);
    await page.getByRole('link', { name: 'Türen', exact: true }).click();
    await page.getByText('Gateway fehlt').waitFor();
    await picture(page, 'doors-desk');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('shows no more than a role may do', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'pms');
    await page.getByText('3 of 3 doors').waitFor();
    // Not a part of a name: a row may say "now".
    expect(await page.getByRole('link', { name: 'Now', exact: true }).count()).toBe(0);
    await page.locator('.rows a').first().click();
    await page.getByRole('heading', { name: 'State' }).waitFor();
    expect(await page.getByRole('button', { name: 'Unlock' }).count()).toBe(0);
  });

  it('says that it is stale when the gateway is silent, and goes on when it is back', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.clock.install();
    await page.reload();
    await page.getByRole('navigation').waitFor();
    process.kill(site.site.daemon.pid, 'SIGSTOP');
    try {
      await page.clock.fastForward(20_000);
      await page.getByText('No word from the gateway').waitFor();
    } finally {
      process.kill(site.site.daemon.pid, 'SIGCONT');
    }
    await expect
      .poll(async () => {
        await page.clock.fastForward(1_000);
        return page.getByText('No word from the gateway').count();
      })
      .toBe(0);
  });

  it('leaves its stream to newer windows of the same sign-in, and takes one back when a person turns to it', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await firstPageIn(page);
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const url = `${site.site.daemon.baseUrl}/events`;
    const newer = await Promise.all(
      Array.from({ length: STREAMS_PER_PRINCIPAL }, async () => {
        const stream = get(url, { headers: { cookie }, rejectUnauthorized: false });
        const [answer] = (await once(stream, 'response')) as [IncomingMessage];
        expect(answer.statusCode).toBe(200);
        return stream;
      }),
    );
    await page.getByText('more than eight are open').waitFor();
    await expectUsable(page);
    await page.getByText('more than eight are open').click();
    await page.getByText('more than eight are open').waitFor({ state: 'detached' });
    for (const stream of newer) stream.destroy();
  });

  it('asks for a code as soon as its session is revoked', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await firstPageIn(page);
    const { items } = (await site.call('GET', '/tokens')).body as { items: { id: string; kind: string }[] };
    for (const { id, kind } of items) if (kind === 'session') await site.call('DELETE', `/tokens/${id}`);
    await page.getByRole('textbox').waitFor();
  });
});
