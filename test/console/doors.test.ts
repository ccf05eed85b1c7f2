/** The console in a browser, on a phone and at a desk, against a site of simulated locks. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openZigbeeSite, waitFor, type ZigbeeSite } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

const MACS = ['00158d0001aa0101', '00158d0001aa0102'] as const;
const NEWCOMER = '00158d0001aa0103';

let site: ZigbeeSite;
let visitors: Visitors;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

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
    await page.getByRole('searchbox').fill('suite');
    await page.getByText('1 of 2 doors').waitFor();
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
    await page.getByText(/^3 nodes, \d+ links\.$/).waitFor();
    await picture(page, 'zigbee-map-phone');
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
    await page.getByText('Somebody else changed it meanwhile: pmsId "P-9".').waitFor();
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

  it('asks for a code as soon as its session is revoked', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page
      .getByText('3 of 3 doors')
      .or(page.getByRole('heading', { name: 'Now' }))
      .first()
      .waitFor();
    const { items } = (await site.call('GET', '/tokens')).body as { items: { id: string; kind: string }[] };
    for (const { id, kind } of items) if (kind === 'session') await site.call('DELETE', `/tokens/${id}`);
    await page.getByRole('textbox').waitFor();
  });

  it('is served with a strict policy, and its files for good', async () => {
    const { page } = await visitors.open('phone');
    const files: (string | undefined)[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/assets/')) files.push(response.headers()['cache-control']);
    });
    const index = await page.goto(`${site.site.daemon.baseUrl}/`);
    await page.getByRole('textbox').waitFor();
    expect(index?.headers()).toMatchObject({
      'cache-control': 'no-cache',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      ),
    });
    expect(files).toEqual(files.map(() => 'public, max-age=31536000, immutable'));
    expect(files).toHaveLength(2);
  });
});
