/** The console where something is in its way: too many pages, a page that no one looks at, refusals, odd names, a lost connection. */
import { randomUUID } from 'node:crypto';
import type { Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { TestSite } from '../simulators/test-site.ts';
import { openZigbeeSite, waitFor, type ZigbeeSite } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

const MAC = '00158d0001aa0101';
const IMPORTED = 250;
const DOORS = IMPORTED + 1;
const RIGHT_TO_LEFT = 'חדר 12 – غرفة';
const WIDE = '漢'.repeat(128);

let zigbee: ZigbeeSite;
let site: TestSite;
let visitors: Visitors;
// A browser and a daemon on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const cellar = randomUUID();
const stack = new AsyncDisposableStack();

const admin = (method: string, path: string, body?: unknown) =>
  site.daemon.call(method, path, site.tokens['front-desk-admin'], body);
const at = (page: Page, path: string) => page.goto(`${site.daemon.baseUrl}/#/${path}`);

const hide = (page: Page, hidden: boolean) =>
  page.evaluate(`for (const [name, value] of Object.entries({ hidden: ${hidden}, visibilityState: '${hidden ? 'hidden' : 'visible'}' }))
    Object.defineProperty(document, name, { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`);

describe.skipIf(NO_CHROMIUM)('the console in trouble', () => {
  beforeAll(async () => {
    const plans = ['00124b0014d9a001', '00124b0014d9a002'].map((ieee, index) => ({
      ieee,
      locks: index === 0 ? [{ ieee: MAC }] : [],
    }));
    zigbee = stack.use(await openZigbeeSite(plans as unknown as Parameters<typeof openZigbeeSite>[0]));
    site = zigbee.site;
    const [gateway] = zigbee.gateways;
    await waitFor(async () =>
      expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
    );
    await zigbee.join(gateway, MAC);
    visitors = stack.use(await openVisitors(site.daemon));
    const names = [RIGHT_TO_LEFT, WIDE, 'Cellar'];
    const doors = Array.from({ length: IMPORTED }, (_, index) => ({
      id: index === 2 ? cellar : randomUUID(),
      accessPointId: 100 + index,
      name: names[index] ?? `Room ${index + 1}`,
    }));
    await site.daemon.importSite({ doors });
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('asks for nothing while no one looks at it, and misses nothing', async () => {
    const { page, faults } = await visitors.open('phone');
    const asked: Request[] = [];
    const unanswered = new Set<Request>();
    page.on('request', (request) => {
      asked.push(request);
      if (request.resourceType() !== 'eventsource') unanswered.add(request);
    });
    page.on('requestfinished', (request) => unanswered.delete(request));
    page.on('requestfailed', (request) => unanswered.delete(request));
    await visitors.signIn(page, 'front-desk-admin');
    await page.clock.install();
    await at(page, `doors/${cellar}`);
    await page.reload();
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    await page.getByRole('textbox', { name: 'PMS id' }).fill('half ty');
    await hide(page, true);
    // What was asked before is answered, and what is asked by that, too: not networkidle, which a slow page reaches before it asks.
    await vi.waitFor(async () => {
      asked.length = 0;
      await page.clock.runFor(12_000);
      expect([...asked, ...unanswered].map((request) => request.url())).toEqual([]);
    });
    await page.clock.runFor(3_600_000);
    expect(asked.map((request) => request.url())).toEqual([]);
    expect((await admin('PUT', `/access/doors/${cellar}`, { name: 'Dungeon' })).status).toBe(200);
    await hide(page, false);
    await page.getByRole('heading', { name: 'Dungeon' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'PMS id' }).inputValue()).toBe('half ty');
    await page.getByText('No word from the gateway').waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
  });

  it('gives its stream up meanwhile, and takes it back with all that has happened', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.clock.install();
    await at(page, `doors/${cellar}`);
    await page.reload();
    // It is read once the stream is open: there is a place to come back to.
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    await hide(page, true);
    await page.clock.fastForward(12_000);
    await page.getByText('No word from the gateway').waitFor();
    const again = page.waitForRequest((request) => request.url().includes('/events?after='));
    await hide(page, false);
    await again;
    await page.getByText('No word from the gateway').waitFor({ state: 'detached' });
  });

  it('shows at once what another window does to a door without a lock', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await at(page, 'doors');
    await page.getByText(`${DOORS} of ${DOORS} doors`).waitFor();
    await page.getByRole('searchbox').fill('Larder');
    const { id } = (await admin('POST', '/access/doors', { name: 'Larder' })).body;
    await page.getByText(`1 of ${DOORS + 1} doors`).waitFor();
    expect((await admin('PUT', `/access/doors/${id}`, { pmsId: 'L-1', name: 'Old Larder' })).status).toBe(
      200,
    );
    await page.getByRole('link', { name: 'Old Larder' }).getByText('L-1').waitFor();
    expect((await admin('DELETE', `/access/doors/${id}`)).status).toBe(200);
    await page.getByText('No door is like that.').waitFor();
    expect(faults).toEqual([]);
  });

  it('has each door once in a list that changes while it is read', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const { items } = (await admin('GET', '/access/doors?name=Room%2098')).body as {
      items: { id: string }[];
    };
    let pages = 0;
    await page.route('**/access/doors/brief?limit=1000**', async (route) => {
      pages += 1;
      if (pages === 2) {
        // It was on the first page, which is read; and another one comes last of all.
        expect((await admin('DELETE', `/access/doors/${items[0]?.id}`)).status).toBe(200);
        await admin('POST', '/access/doors', { name: 'Annexe', accessPointId: 9_000 });
      }
      await route.continue({ url: route.request().url().replace('limit=1000', 'limit=100') });
    });
    await at(page, 'doors');
    const search = page.getByRole('searchbox');
    await search.fill('Annexe');
    await page.getByText(`1 of ${DOORS} doors`).waitFor();
    await search.fill('Room 98');
    await page.getByText('No door is like that.').waitFor();
    await search.fill('');
    await page.getByText(`${DOORS} of ${DOORS} doors`).waitFor();
    expect(pages).toBeGreaterThan(2);
    expect(faults).toEqual([]);
  });

  it('shows names of any script and length, and refuses none of them', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await at(page, 'doors');
    await page.getByLabel('Sort by').selectOption('Number');
    await page.getByRole('link', { name: RIGHT_TO_LEFT }).waitFor();
    await picture(page, 'odd-names-phone');
    await expectUsable(page);
    await page.getByRole('link', { name: WIDE }).click();
    await page.getByRole('heading', { name: WIDE }).waitFor();
    await picture(page, 'wide-name-phone');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('goes on after the gateway was too busy to answer', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const busy = (status: number, message: string) => ({ status, json: { error: 'BUSY', message } });
    await page.route('**/access/doors/brief?**', (route) => route.fulfill(busy(503, 'Too much at once.')), {
      times: 2,
    });
    await at(page, 'doors');
    await page.getByText('Too much at once.').waitFor();
    await page.getByText(`${DOORS} of ${DOORS} doors`).waitFor();
    await at(page, `doors/${cellar}`);
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('Boiler room');
    const path = `**/access/doors/${cellar}`;
    await page.route(path, (route) =>
      route.request().method() === 'PUT' ? route.fulfill(busy(429, 'Slower, please.')) : route.continue(),
    );
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Slower, please.').waitFor();
    expect(await name.inputValue()).toBe('Boiler room');
    await page.unroute(path);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Boiler room' }).waitFor();
    expect(faults.filter((fault) => !/status of (503|429)/.test(fault))).toEqual([]);
  });

  it('keeps what is typed while the gateway is started again, and shows what it missed', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await at(page, `doors/${cellar}`);
    await page.getByRole('textbox', { name: 'PMS id' }).fill('half ty');
    await site.daemon.kill();
    await site.daemon.start();
    expect((await admin('PUT', `/access/doors/${cellar}`, { name: 'Chapel' })).status).toBe(200);
    await page.getByRole('heading', { name: 'Chapel' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'PMS id' }).inputValue()).toBe('half ty');
  });

  it('orders an unlock once, whose answer is lost', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    const { id } = await zigbee.door(MAC);
    const before = (await zigbee.doorState(MAC)).lastUnlock;
    let orders = 0;
    await page.route('**/unlock', async (route) => {
      orders += 1;
      await route.fetch();
      await page.context().setOffline(true);
      await route.abort('connectionreset');
    });
    await page.goto(`${site.daemon.baseUrl}/#/doors/${id}`);
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByRole('button', { name: 'Yes, unlock' }).click();
    await page.getByText('The gateway did not answer. It is not known').waitFor();
    const { lastUnlock } = await zigbee.doorState(MAC);
    expect(lastUnlock).not.toEqual(before);
    await page.context().setOffline(false);
    await page.reload();
    await page.getByRole('button', { name: 'Unlock' }).waitFor();
    expect(orders).toBe(1);
    expect((await zigbee.doorState(MAC)).lastUnlock).toEqual(lastUnlock);
  });

  it('goes on with its job after the page is loaded again', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    await at(page, `zigbee/${zigbee.gateways[0].deviceId}`);
    await page.route('**/jobs/*', async (route) => {
      const job = await (await route.fetch()).json();
      await route.fulfill({ json: { ...job, status: 'running', result: null, error: null } });
    });
    await page.getByRole('button', { name: 'Ask for a map' }).click();
    await page.getByRole('button', { name: 'Yes, ask' }).click();
    await page.getByText(/^Asking: /).waitFor();
    await page.reload();
    await page.getByText(/^Asking: /).waitFor();
    await page.unroute('**/jobs/*');
    await page.getByText(/^2 nodes, \d+ links?\.$/).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Ask for a map' }).waitFor();
    expect(faults).toEqual([]);
  });
});
