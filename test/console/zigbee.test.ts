/** A technician at a Zigbee gateway: a lock joins, the network moves, a gateway is lost. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ZigbeeSite } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, picture, type Visitors } from './browser.ts';
import { NEWCOMER, openLockSite } from './lock-site.ts';

let site: ZigbeeSite;
let visitors: Visitors;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

describe.skipIf(NO_CHROMIUM)('a technician at a Zigbee gateway', () => {
  beforeAll(async () => {
    ({ site, visitors } = await openLockSite(stack));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('lets a lock join and names its room, and asks for a map', async () => {
    const { page, faults } = await visitors.open('phone');
    // The clock of the phone is an hour fast: what counts is the gateway's.
    await page.evaluate('{ const { now } = Date; Date.now = () => now() + 3_600_000; }');
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
    await page.getByRole('link', { name: 'Room 7' }).waitFor();
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

  it('reads the code of a lock with the camera, or has it typed', async () => {
    const visit = await visitors.open('phone');
    const { page } = visit;
    await page.addInitScript(`globalThis.BarcodeDetector = class {
      detect = async () => [{ rawValue: globalThis.printed }];
    };
    const camera = { getUserMedia: async () => {
      if (!globalThis.isAllowed) throw new DOMException('', 'NotAllowedError');
      return document.createElement('canvas').captureStream(5);
    } };
    Object.defineProperty(navigator, 'mediaDevices', { value: camera });`);
    await page.reload();
    await visitors.signIn(page, 'service-tool');
    await page.goto(`${site.site.daemon.baseUrl}/#/zigbee/${site.gateways[0].deviceId}`);
    const scan = page.getByRole('button', { name: 'Scan the code on the lock' });
    await scan.click();
    await page.getByText('The camera may not be used here').waitFor();
    await picture(page, 'camera-phone');
    await expectUsable(page);
    const printed = '83FED3407A939723A5C639B26916D505C3B5';
    await page.evaluate(
      `globalThis.isAllowed = true; globalThis.printed = 'Z:${NEWCOMER.toUpperCase()}$I:${printed}'`,
    );
    await scan.click();
    await expect
      .poll(() => page.getByRole('textbox', { name: 'MAC address of the lock' }).inputValue())
      .toBe(NEWCOMER);
    const code = page.getByRole('textbox', { name: 'Install code' });
    expect(await code.inputValue()).toBe(printed);
    // Locks with the install code alone on them: it begins like a MAC address.
    await code.fill('');
    await page.evaluate(`globalThis.printed = '${printed}'`);
    await scan.click();
    await expect.poll(() => code.inputValue()).toBe(printed);
    expect(await page.getByRole('textbox', { name: 'MAC address of the lock' }).inputValue()).toBe(NEWCOMER);
    expect(visit.faults).toEqual([]);
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
});
