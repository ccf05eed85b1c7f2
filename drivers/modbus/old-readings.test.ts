/** A reading does not say when it was asked: on a line that does not keep the order of replies, an old one may come for a new one. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { openBoard } from '../../test/drivers/modbus/link.ts';

const board = { hwId: 'bus-1-1', relay: 5, milliseconds: 1_000 };

describe('a line that does not keep the order of replies', () => {
  it.each([
    ['closed', true],
    ['open', false],
  ])('hands over a reading that is older than the order, and shows the relay %s', async (_, wasClosed) => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _link = link;
    if (wasClosed) await link.execute('pulse', board);
    let held: Answer | undefined;
    let isOrdered = false;
    device.behave = (request, answer) => {
      if (request[1] === 5) {
        isOrdered = true;
        // A board that acknowledges what it does not carry out.
        return wasClosed ? request : answer();
      }
      if (held === undefined) {
        held = answer();
        return null;
      }
      const reply = isOrdered && held ? held : answer();
      if (isOrdered) held = null;
      return reply;
    };
    await link.clock.advance(wasClosed ? 1_200 : 500);
    expect(held).toBeDefined();
    expect(await settled(link.execute('pulse', board))).toBe(wasClosed ? 'BAD_REPLY' : 'fired');
  });
});

async function settled(order: Promise<unknown>): Promise<string> {
  return await order.then(
    () => 'fired',
    ({ code }: { code: string }) => code,
  );
}
