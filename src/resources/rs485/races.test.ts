/** What a device says, and what is wanted of it, while something else of it is being stored. */
import { expect, it } from 'vitest';
import { heldCommits } from '../../../test/held-commits.ts';
import { A, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';

async function openHeld() {
  const held = heldCommits(await temporaryDatabase());
  return { held, bed: await openTestbed(held.database) };
}

it('settings that a device loses while they are stored as applied go to it again', async () => {
  const { held, bed } = await openHeld();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 2 });
  bed.report('io-1');
  bed.answer(({ settingsVersion }) => {
    held.hold();
    return { reportedSettingsVersion: settingsVersion };
  });
  bed.run();
  await bed.clock.advance(0);
  expect(held.waiting).toHaveLength(1);
  bed.answer(({ settingsVersion }) => ({ reportedSettingsVersion: settingsVersion }));
  bed.report('io-1', { reportedSettingsVersion: 0, settings: null });
  held.release();
  await bed.clock.advance(2_000);
  expect(bed.commands.filter(({ kind }) => kind === 'applySettings')).toHaveLength(2);
});

it('devices that are found are known, when one of them becomes another record just then', async () => {
  const { held, bed } = await openHeld();
  await bed.add({ deviceId: A, hwId: 'old', bus: 'bus-1' });
  bed.run();
  await bed.clock.advance(0);
  bed.report('io-8', { address: 8 });
  bed.report('io-9', { address: 9 });
  held.hold();
  await bed.clock.advance(1_000);
  const replaced = bed.post(`/${A}/replace`, { hwId: 'io-8', confirm: true });
  await expect.poll(() => held.waiting).toHaveLength(2);
  held.release();
  expect((await replaced).status).toBe(200);
  await bed.clock.advance(3_000);
  for (const hwId of ['io-8', 'io-9']) {
    const { items } = (await bed.get('?connected=true')).body as { items: object[] };
    expect(items).toContainEqual(expect.objectContaining({ hwId }));
  }
});
