/** What is decided, and is otherwise by the time it is stored: for the disk takes a while. */
import { expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { heldCommits } from '../../../test/held-commits.ts';
import { A, openTestbed } from '../../../test/resources/zgates/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';

const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };

async function openHeld() {
  const held = heldCommits(await temporaryDatabase());
  return { held, bed: await openTestbed({ database: held.database }) };
}

it('a network that was sent a move may move again for channels that were wanted meanwhile', async () => {
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

it('channels that are wanted while others are on their way go to the gateway as well', async () => {
  const { bed } = await openHeld();
  const answer = Promise.withResolvers<{ zigbeeChannel: number }>();
  bed.played.answer = () => answer.promise;
  bed.run();
  bed.report();
  await bed.put(A, { allowedChannels: [11] });
  await bed.clock.advance(0);
  await bed.put(A, { allowedChannels: [11, 15] });
  answer.resolve({ zigbeeChannel: 11 });
  await bed.clock.advance(1_000);
  expect(bed.commands.map(({ data }) => data)).toEqual([
    { allowedChannels: [11] },
    { allowedChannels: [11, 15] },
  ]);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ inForce: true });
});

it('a gateway that says it is elsewhere while its channel is stored is there', async () => {
  const { held, bed } = await openHeld();
  bed.played.answer = () => {
    held.hold();
    return { zigbeeChannel: 11 };
  };
  bed.run();
  bed.report();
  await bed.put(A, { allowedChannels: [11, 20] });
  await bed.clock.advance(0);
  expect(held.waiting).toHaveLength(1);
  bed.report({ zigbeeChannel: 20 });
  held.release();
  await bed.clock.advance(0);
  expect((await bed.get(`/${A}`)).body.zigbeeChannel).toBe(20);
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

it('a join window stays open that was opened while another wish was found to be mistyped', async () => {
  const { bed } = await openHeld();
  const mistyped = Promise.withResolvers<null>();
  bed.run();
  bed.report();
  bed.played.answer = () => mistyped.promise;
  const refused = bed.post(`/${A}/permit-join`, { seconds: 30 });
  await expect.poll(() => bed.commands).toHaveLength(1);
  bed.played.answer = () => null;
  await bed.post(`/${A}/permit-join`, { seconds: 60 });
  mistyped.reject(new DriverError('INVALID_COMMAND', 'the install code is mistyped'));
  expect((await refused).status).toBe(400);
  bed.report({ permitJoin: true });
  await bed.clock.advance(20_000);
  expect((await bed.get(`/${A}/state`)).body.joinWindow).toMatchObject({ until: '2026-01-01T00:01:00.000Z' });
  expect(bed.commands).toHaveLength(2);
});

it('a snapshot that is to be restored is, when another one was restored just before', async () => {
  const { held, bed } = await openHeld();
  for (const id of ['a', 'b']) {
    const data = { archive: Buffer.from(id), locks: 1, hwId: '00124b0001020304', zigbeeChannel: 15 };
    await bed.zgates.event('zb-1', { id, kind: 'snapshot', data });
  }
  const [newest, oldest] = bed.zgates.snapshots()[0]?.snapshots.map(({ number }) => number) ?? [];
  await bed.zgates.restore(A, { snapshot: newest }, CALLER);
  held.hold();
  const restored = bed.zgates.restore(A, { snapshot: oldest }, CALLER);
  bed.zgates.link('zb-1', true);
  held.release();
  await restored;
  await bed.clock.advance(0);
  const { restore, snapshot } = bed.zgates.startOptions(A);
  expect([restore, Buffer.from(snapshot as Uint8Array).toString()]).toEqual([true, 'a']);
});
