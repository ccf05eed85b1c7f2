/** A relay that is to open before its pulse is over. */
import { expect, it } from 'vitest';
import { openBoard, openOne } from '../../test/drivers/modbus/link.ts';

const hwId = 'bus-1-1';

it.each(['waveshare-relay-8', 'icp-das-tm-r5', 'expertdaq-ex9060-m', 'wago-750-do8'] as const)(
  'of %s opens at once, is no fault of the board, and closes again by the next order',
  async (kind) => {
    const { link, device } = await openBoard(kind);
    await using _ = link;
    const pulse = { hwId, relay: 2, milliseconds: 20_000 };
    const history = () => device.device.pins.history.filter(({ output }) => output === 2).map(({ on }) => on);
    await link.execute('pulse', pulse);
    expect(history()).toEqual([true]);
    expect(await link.execute('endPulse', { hwId, relay: 2 })).toBeNull();
    await link.clock.advance(500);
    expect(history()).toEqual([true, false]);
    expect(link.report(hwId)).toMatchObject({ pulse: null, levels: { output2: false } });
    await link.clock.advance(30_000);
    expect(link.report(hwId)?.relayFault).toBeNull();
    await link.execute('pulse', pulse);
    await link.clock.advance(1_000);
    expect(history()).toEqual([true, false, true]);
  },
);

it('of a controller that has no way to do so stays closed, and that is said', async () => {
  const { link, device } = await openOne();
  await using _ = link;
  await link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 5_000 });
  await expect(link.execute('endPulse', { hwId: 'GIO-0001', relay: 2 })).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('has no way to open a relay'),
  });
  expect(device.device.pins.history.map(({ on }) => on)).toEqual([true]);
});
