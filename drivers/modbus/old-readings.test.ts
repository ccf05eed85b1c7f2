/** A reading does not say when it was asked: on a line that does not keep the order of replies, an old one may come for a new one. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { openBoard, openOne, profileNamed, sent } from '../../test/drivers/modbus/link.ts';

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

it('a pulse that a line held back is not sent again when the name took long to read, and the device was restarted then', async () => {
  const options = { devices: [{ unitId: 17 }], turnaroundMaxMs: 600 };
  const { link, device } = await openOne(undefined, { options });
  await using _ = link;
  const name = (profileNamed('gatehouse-io') as { identity: { hwId: { address: number } } }).identity.hwId;
  let arrives: (() => unknown) | undefined;
  let names = 0;
  device.behave = (request, answer) => {
    if (request[1] === 16 && !arrives) {
      arrives = answer;
      return null;
    }
    if (!arrives || Buffer.from(request).readUInt16BE(2) !== name.address) return answer();
    names += 1;
    if (names === 1) {
      arrives();
      return null;
    }
    if (names === 2) device.device.restart(link.clock.monotonic());
    return answer();
  };
  await expect(
    link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 3_000 }, 5_000),
  ).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(sent(link, 16)).toBe(1);
  expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
});
