/** A technician at an OSDP bus: a device gets its key, then new firmware, and the page of events shows it. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openSimulatedBus } from '../simulators/bus/bus.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { temporaryFolder } from '../temporary.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture } from './browser.ts';

// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 180_000 });
const LINE = { baudRate: 115_200, parity: 'none', stopBits: 1 } as const;
/** What the simulated device calls 2.1.0. */
const FILE = Buffer.from(Array.from({ length: 2_000 }, (_, index) => [2, 1, 0][index] ?? index & 0xff));

function firmwareFolder(): string {
  const folder = temporaryFolder();
  const sha256 = createHash('sha256').update(FILE).digest('hex');
  writeFileSync(join(folder, 'io.bin'), FILE);
  const manifest = { vendorCode: '0a4748', models: [1], version: '2.1.0', sha256 };
  writeFileSync(join(folder, 'io.bin.json'), JSON.stringify(manifest));
  return folder;
}

it.skipIf(NO_CHROMIUM)('pairs an OSDP device, and gives it firmware', async () => {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const bus = stack.use(
    await openSimulatedBus({
      ...LINE,
      protocol: 'osdp',
      pacing: 'cheap',
      devices: [{ address: 3, kind: 'osdp-io', hwId: '4711', osdp: { files: { keeps: true, endsWith: 2 } } }],
    }),
  );
  const options = { port: bus.port, baudRate: LINE.baudRate, pollEveryMs: 20 };
  const links = [{ id: 'readers', protocol: 'osdp', options }];
  const site = stack.use(await openTestSite({ more: { links, firmwareDirectory: firmwareFolder() } }));
  const visitors = stack.use(await openVisitors(site.daemon));
  const { page, faults } = await visitors.open('phone');
  await visitors.signIn(page, 'service-tool');
  await page.getByRole('link', { name: 'RS-485', exact: true }).click();
  // One that waits for its key would be proposed; no other is, since it would lose the one that it has.
  const address = page.getByRole('textbox', { name: 'Address of the device to be paired' });
  expect(await address.inputValue()).toBe('');
  // No one is there: the window counts down until it is given up.
  await address.fill('9');
  await page.getByRole('button', { name: 'Give it its key' }).click();
  await page.getByRole('button', { name: 'Yes, pair' }).click();
  await page.getByText(/^The device at address 9 may take its key for (1\d\d|\d\d) s more\.$/).waitFor();
  await picture(page, 'osdp-countdown-phone');
  await expectUsable(page);
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/ may take its key for /).waitFor({ state: 'detached' });
  await address.fill('3');
  await page.getByRole('button', { name: 'Give it its key' }).click();
  await page.getByRole('button', { name: 'Yes, pair' }).click();
  await page.getByText(/ has its key\.$/).waitFor();
  await picture(page, 'osdp-paired-phone');
  await expectUsable(page);

  await page.locator('a[href^="#/rs485/"]').click();
  await page.getByText('Connected', { exact: true }).waitFor();
  await page.getByRole('textbox', { name: 'File in firmwareDirectory' }).fill('absent.bin');
  await page.getByRole('button', { name: 'Give it this firmware' }).click();
  await page.getByRole('button', { name: 'Yes, give it' }).click();
  await page.getByText(/cannot be read in firmwareDirectory \(absent\.bin\)/).waitFor();
  await page.getByRole('textbox', { name: 'File in firmwareDirectory' }).fill('io.bin');
  await page.getByRole('button', { name: 'Give it this firmware' }).click();
  await page.getByRole('button', { name: 'Yes, give it' }).click();
  await page.getByText('It says that it runs version 2.1.0 now.').waitFor({ timeout: 120_000 });
  await picture(page, 'osdp-firmware-phone');
  await expectUsable(page);

  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByRole('searchbox').fill('rs485 connection');
  await page.locator('.log li', { hasText: 'Connection' }).first().waitFor();
  await picture(page, 'events-phone');
  await expectUsable(page);
  await page.getByRole('searchbox').fill('no such event');
  await page.getByText('Nothing of this kind has happened in the last 7 days').waitFor();
  expect(faults.filter((fault) => !/status of 400/.test(fault))).toEqual([]);
});
