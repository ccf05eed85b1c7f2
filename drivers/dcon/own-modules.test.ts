/** Modules that a site adds by a file: brought up, fired and refused as those that come with Gatehouse. On a manual clock. */
import { expect, it } from 'vitest';
import { openTestDriver, SETTINGS } from '../../test/drivers/dcon/driver.ts';
import type { Plain } from '../contract/driver.ts';

const ACME: { [key: string]: Plain } = {
  protocol: 'dcon',
  product: 'Acme 62',
  names: ['A62'],
  source: 'Acme, A62 manual',
  outputs: { byte: 0, count: 4 },
  inputs: { byte: 1, count: 4 },
};
const hwId = 'lobby-01';
const played = (kind: 'host' | 'none') => ({ 1: { name: 'A62', kind, outputs: 0, inputs: 0b10 } });
const pulse = { hwId, relay: 1, milliseconds: 1_000 };

it('of its file a module is known, armed, and its relay fired and opened', async () => {
  const driver = await openTestDriver(played('host'), {
    options: { types: [{ ...ACME, watchdog: 'host' }] },
  });
  await using _ = driver;
  await driver.clock.advance(3_000);
  expect(driver.report(hwId)).toMatchObject({
    connected: true,
    type: 'Acme 62',
    levels: { input0: false, input1: true, output3: false },
    carries: { relays: 4 },
    watchdog: { milliseconds: 10_000 },
  });
  await driver.settled(driver.execute('applySettings', { hwId, settingsVersion: 1, settings: SETTINGS }));
  expect(await driver.settled(driver.execute('pulse', pulse))).toMatchObject({ timedBy: 'gateway' });
  expect(driver.modules.module(1).now().outputs).toBe(0b10);
  // By the settings of before.
  const other = driver.execute('pulse', { ...pulse, relay: 0, settingsVersion: 0 });
  await expect(driver.settled(other)).rejects.toMatchObject({ code: 'REFUSED' });
  expect(driver.modules.module(1).now().outputs).toBe(0b10);
  await driver.clock.advance(3_000);
  expect(driver.modules.module(1).now().outputs).toBe(0);
});

it('without a watchdog in its file it is read, and fires nothing', async () => {
  const driver = await openTestDriver(played('none'), { options: { types: [ACME] } });
  await using _ = driver;
  await driver.clock.advance(3_000);
  expect(driver.report(hwId)).toMatchObject({ connected: true, carries: { relays: 0 }, watchdog: null });
  await expect(driver.settled(driver.execute('pulse', pulse))).rejects.toMatchObject({ code: 'REFUSED' });
});

it('without a file it is named, and nothing else', async () => {
  const driver = await openTestDriver(played('host'));
  await using _ = driver;
  await driver.clock.advance(3_000);
  expect(driver.report(hwId)).toMatchObject({ type: 'A62', levels: {} });
  await expect(driver.settled(driver.execute('pulse', pulse))).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('A62'),
  });
});
