/** Two boards at one address, of which one answers behind the other: an order would close the relays of both. */
import { expect, it } from 'vitest';
import { openBoard } from '../../test/drivers/modbus/link.ts';

const PULSE = { hwId: 'bus-1-1', relay: 3, milliseconds: 500 };
/** Behind the first one, before anybody else is asked. */
const BEHIND_MS = 30;

it('are given no order until one of them is gone', async () => {
  const { link, device } = await openBoard('waveshare-relay-8');
  await using _ = link;
  let areTwo = true;
  device.behave = (_request, answer) => {
    const reply = answer();
    if (areTwo && reply) void link.clock.sleep(BEHIND_MS).then(() => link.wire.deliver(reply));
    return reply;
  };
  await link.clock.advance(5_000);
  await expect(link.execute('pulse', PULSE)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/two devices answer at address 1.*disconnect one/),
  });
  expect(device.device.pins.history).toEqual([]);
  areTwo = false;
  await link.clock.advance(10_000);
  expect(await link.execute('pulse', PULSE)).toMatchObject({ relay: 3 });
});
