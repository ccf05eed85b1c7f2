/** What is decided, and is otherwise by the time it is stored: for the disk takes a while. */
import { expect, it } from 'vitest';
import { heldCommits } from '../../test/held-commits.ts';
import { temporaryDatabase } from '../../test/temporary.ts';
import { A, openTestbed } from './testbed.ts';

async function openHeld() {
  const held = heldCommits(await temporaryDatabase());
  return { held, bed: await openTestbed({ database: held.database }) };
}

it('a network that was told to move may move again for channels that were wanted meanwhile', async () => {
  const { held, bed } = await openHeld();
  bed.played.answer = () => ({ zigbeeChannel: 15 + 5 * (bed.commands.length - 1) });
  bed.report();
  await bed.put(A, { allowedChannels: [15] });
  held.hold();
  bed.run();
  await bed.clock.advance(0);
  expect(bed.jobs).toHaveLength(1);
  const put = bed.put(A, { allowedChannels: [20] });
  await bed.clock.advance(0);
  held.release('reversed');
  await put;
  await bed.clock.advance(10_000);
  expect(bed.commands.map(({ data }) => data)).toEqual([{ channel: 15 }, { channel: 20 }]);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ inForce: true, failure: null });
});

it('a join window that is opened again as it comes to its end stays open', async () => {
  const { held, bed } = await openHeld();
  bed.run();
  bed.report();
  await bed.post(`/${A}/permit-join`, { seconds: 60 });
  bed.report({ permitJoin: true });
  await bed.clock.advance(59_900);
  held.hold();
  const again = bed.post(`/${A}/permit-join`, { seconds: 60 });
  await bed.clock.advance(100);
  expect(held.waiting).toHaveLength(2);
  held.release();
  expect((await again).body.joinWindow).toMatchObject({ until: '2026-01-01T00:02:00.000Z' });
  await bed.clock.advance(10_000);
  expect((await bed.get(`/${A}/state`)).body.joinWindow).not.toBe(null);
  expect(bed.commands.map(({ data }) => data)).toMatchObject([{ seconds: 60 }, { seconds: 60 }]);
});
