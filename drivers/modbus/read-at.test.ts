/** How old the levels may be that are shown of a device. */
import { expect, it } from 'vitest';
import { openBoard } from '../../test/drivers/modbus/link.ts';

const hwId = 'bus-1-1';
const READ_COILS = 1;

async function untilReported({ clock, history }: Awaited<ReturnType<typeof openBoard>>['link']) {
  const before = history(hwId).length;
  while (history(hwId).length === before) await clock.advance(1);
}

it('is counted from the request that was answered', async () => {
  const { link } = await openBoard('waveshare-relay-8');
  await using _ = link;
  await untilReported(link);
  const polls = link.wire.sent.filter(({ bytes }) => bytes[1] === READ_COILS);
  expect(link.report(hwId)?.readAt).toBe(polls.at(-1)?.at);
});

it('is counted from the request before, once a reply was missed', async () => {
  const { link, device } = await openBoard('waveshare-relay-8');
  await using _ = link;
  let late: Uint8Array | null = null;
  device.behave = (_request, answer) => {
    const reply = late;
    late = answer();
    return reply;
  };
  await link.clock.advance(1_000);
  await untilReported(link);
  const polls = link.wire.sent.filter(({ bytes }) => bytes[1] === READ_COILS);
  expect(link.report(hwId)).toMatchObject({ connected: true, readAt: polls.at(-2)?.at });
});

it('is not reported of a device that is silent, whose levels are not shown', async () => {
  const { link, device } = await openBoard('waveshare-relay-8');
  await using _ = link;
  device.behave = () => null;
  await link.clock.advance(10_000);
  expect(link.report(hwId)).toMatchObject({ connected: false, levels: {} });
  expect(link.report(hwId)).not.toHaveProperty('readAt');
});
