/** A technician at the RS-485 bus: what is on it, one device's settings, its relay, and the search for more. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openSimulatedBus, type SimulatedBus } from '../simulators/bus/bus.ts';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { waitFor } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

const LINE = { baudRate: 19_200, parity: 'even', stopBits: 1 } as const;

let site: TestSite;
let bus: SimulatedBus;
let visitors: Visitors;
let deviceId: string;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 180_000 });
const stack = new AsyncDisposableStack();
const ask = (method: string, path: string, body?: object) =>
  site.daemon.call(method, `/network/rs485${path}`, site.tokens['service-tool'], body);
/** Delays each answer that has the state of the device until `release` is called. */
async function holdState(page: Page) {
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const path = '**/network/rs485/*/state';
  await page.route(path, async (route) => {
    asked.resolve();
    await held.promise;
    await route.fallback();
  });
  const release = async () => {
    held.resolve();
    await page.unroute(path);
  };
  return { asked: asked.promise, release };
}
const pulses = async () => {
  const { pulse } = await bus.state(1);
  return (pulse as { takenMs: number[] }).takenMs.length;
};

describe.skipIf(NO_CHROMIUM)('a technician', () => {
  beforeAll(async () => {
    const devices = [
      { address: 1, kind: 'gatehouse-io', hwId: 'IO-1' },
      // Not mounted yet.
      { address: 2, kind: 'gatehouse-io', hwId: 'IO-2', faults: { dead: true } },
    ] as const;
    bus = stack.use(
      await openSimulatedBus({ ...LINE, protocol: 'modbus', pacing: 'cheap', devices: [...devices] }),
    );
    const options = { ...LINE, port: bus.port, devices: [{ unitId: 1 }, { unitId: 2 }] };
    site = stack.use(await openTestSite({ more: { links: [{ id: 'lobby', protocol: 'modbus', options }] } }));
    visitors = stack.use(await openVisitors(site.daemon));
    await waitFor(async () => {
      const { items } = (await ask('GET', '')).body as { items: { deviceId: string }[] };
      expect(items).toHaveLength(1);
      deviceId = items[0]?.deviceId ?? '';
    });
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('sees how a bus works, and searches it', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    await page.getByRole('link', { name: 'RS-485', exact: true }).click();
    await page.getByRole('heading', { name: 'lobby' }).waitFor();
    await page.getByText('Up', { exact: true }).waitFor();
    await picture(page, 'rs485-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'Scan' }).click();
    await page.getByRole('button', { name: 'Yes, scan' }).click();
    await page.getByText(/^Scanning lobby: \d+ %$/).waitFor();
    // One answer is lost on the way: the scan goes on, and so does the page.
    const lost = page.waitForEvent('requestfailed', (request) => request.url().includes('/jobs/'));
    await page.route('**/jobs/*', (route) => route.abort(), { times: 1 });
    await lost;
    await page.waitForResponse(/\/jobs\//);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Scan' }).waitFor();
    await page.getByRole('img', { name: 'Wire busy' }).waitFor();
    await page.getByText(/^Errors, last \d+ min/).waitFor();
    expect(faults).toEqual([expect.stringContaining('ERR_FAILED')]);
  });

  it('gives a device its settings, sees that somebody else changed it, and fires its relay once', async () => {
    const { page, faults } = await visitors.open('desk', { colorScheme: 'dark' });
    await visitors.signIn(page, 'service-tool');
    await page.goto(`${site.daemon.baseUrl}/#/rs485/${deviceId}`);
    await page.getByRole('textbox', { name: 'Name' }).fill('Gate relay');
    await page.getByRole('spinbutton', { name: 'Seconds that the relay stays on' }).fill('1.5');
    await page.getByRole('combobox', { name: 'Relay', exact: true }).selectOption('2');
    expect((await ask('PUT', `/${deviceId}`, { description: 'Behind the bar' })).status).toBe(200);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Somebody else changed it meanwhile: Description "Behind the bar".').waitFor();
    await expectUsable(page);
    await picture(page, 'rs485-conflict-desk');
    const state = await holdState(page);
    const stored = page.waitForResponse((response) => response.request().method() === 'PUT');
    await page.getByRole('button', { name: 'Save mine all the same' }).click();
    await stored;
    await state.asked;
    // Not for a moment what was stored before.
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Gate relay');
    expect(await page.getByText('Saved').count()).toBe(0);
    await state.release();
    await page.getByText('Saved').waitFor();
    await page.getByRole('heading', { name: 'Gate relay' }).waitFor();
    expect((await ask('GET', `/${deviceId}`)).body).toMatchObject({
      name: 'Gate relay',
      description: 'Behind the bar',
      relayIndex: 2,
      unlockDurationMilliseconds: 1_500,
    });
    await page.getByText('The device has the settings that are wanted.').waitFor();
    await page.getByRole('button', { name: 'Fire the relay' }).click();
    expect(await pulses()).toBe(0);
    await page.getByRole('button', { name: 'Yes, fire' }).click();
    await page.getByText('Relay 2 fired for').waitFor();
    expect(await pulses()).toBe(1);
    await picture(page, 'rs485-device-desk');
    await expectUsable(page);
    await page.getByRole('textbox', { name: 'Another device takes its place' }).fill('IO-9');
    await page.getByRole('button', { name: 'Replace', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, replace' }).click();
    await page.getByRole('button', { name: 'Replace all the same' }).waitFor();
    await expectUsable(page);
    expect(faults.filter((fault) => !/status of 409/.test(fault))).toEqual([]);
  });

  it('sees a bus without devices that answer, in German, and a desk sees no relay to fire', async () => {
    await bus.set(1, { faults: { silent: 1_000_000 } });
    const { page } = await visitors.open('phone', { locale: 'de-DE' });
    await visitors.signIn(page, 'front-desk-admin');
    await page.getByRole('link', { name: 'RS-485', exact: true }).click();
    await page.getByRole('link', { name: 'Gate relay' }).click();
    await page.getByText('Nicht verbunden').waitFor();
    expect(await page.getByRole('button', { name: 'Relais schalten' }).count()).toBe(0);
    await picture(page, 'rs485-device-phone');
    await expectUsable(page);
  });

  it.each(['phone', 'desk'] as const)('has a bus examined, and reads what to mend, on a %s', async (view) => {
    const { page, faults } = await visitors.open(view, { locale: 'de-DE' });
    await visitors.signIn(page, 'service-tool');
    await page.goto(`${site.daemon.baseUrl}/#/rs485`);
    await bus.set(1, { faults: { dead: true } });
    await page.getByText('Was stimmt nicht?').click();
    await page.getByRole('textbox', { name: 'Von Adresse' }).fill('1');
    await page.getByRole('textbox', { name: 'Bis Adresse' }).fill('2');
    await page.getByRole('button', { name: 'Untersuchen' }).click();
    await page.getByRole('button', { name: 'Ja, untersuchen' }).click();
    await page.getByText('Bus lobby: Niemand antwortet: Sind A und B vertauscht').waitFor();
    await page.getByText(/^Fehler, letzte \d+ min: .*ohne Antwort \d+/).waitFor();
    await picture(page, `rs485-examined-${view}`);
    await expectUsable(page);
    await bus.set(1, { faults: { dead: null } });
    expect(faults).toEqual([]);
  });

  it('has a module that is dead replaced by the one that was mounted, and it gets the settings', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    await bus.set(1, { faults: { dead: true } });
    await page.goto(`${site.daemon.baseUrl}/#/rs485/${deviceId}`);
    await page.getByText('It does not answer: check its power and its wiring.').waitFor();
    await picture(page, 'rs485-dead-phone');
    await expectUsable(page);
    await bus.set(2, { faults: { dead: null } });
    const fresh = page.getByRole('combobox', { name: 'Devices on this bus that have no name yet' });
    // What has been without power since the start is asked seldom.
    await fresh.selectOption('IO-2', { timeout: 90_000 });
    await page.getByRole('button', { name: 'Replace', exact: true }).click();
    const state = await holdState(page);
    const replaced = page.waitForResponse((response) => response.url().endsWith('/replace'));
    await page.getByRole('button', { name: 'Yes, replace' }).click();
    await replaced;
    await state.asked;
    // The page still has the state of the dead device, and must not show it as the state of the new one.
    expect(await page.getByText('IO-2 has taken the place of Gate relay').count()).toBe(0);
    await state.release();
    await page.getByText('IO-2 has taken the place of Gate relay').waitFor();
    await page.getByText('The device has the settings that are wanted.').waitFor();
    expect((await ask('GET', `/${deviceId}`)).body).toMatchObject({ hwId: 'IO-2', relayIndex: 2 });
    // To its end: the door that the dead one opened is opened by the new one, and nothing is left to look at.
    await page.getByRole('button', { name: 'Fire the relay' }).click();
    await page.getByRole('button', { name: 'Yes, fire' }).click();
    await page.getByText('Relay 2 fired for').waitFor();
    const { pulse } = await bus.state(2);
    expect((pulse as { takenMs: number[] }).takenMs).toHaveLength(1);
    await picture(page, 'rs485-replaced-phone');
    await page.getByRole('link', { name: 'Now', exact: true }).click();
    await page.getByRole('heading', { name: 'Now' }).waitFor();
    await page.getByText('Gate relay does not answer').waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
  });
});
