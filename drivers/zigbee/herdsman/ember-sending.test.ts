/** What an EmberZNet coordinator says of frames that are not ours, while one of ours waits to be sent. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { type EmberSender, guardEmberSending } from './ember-sending.ts';
import { openGate } from './gate.ts';

const LOCK_ADDRESS = 0x11_11;
/** EmberStatus of a message that was not delivered: DELIVERY_FAILED. */
const FAILED = 0x66;
const DIRECT = 0;
const DOOR_LOCK = 0x01_01;
const UNLOCK = { cluster: { ID: DOOR_LOCK }, command: { response: 1 }, toBuffer: () => Buffer.alloc(3) };

it('takes nothing for its own that the stack says of a frame before it has taken it', async () => {
  const clock = manualClock();
  const sent = Promise.withResolvers<[number, number]>();
  const failures: string[] = [];
  const answer = Promise.withResolvers<unknown>();
  const adapter = {
    queue: { execute: (job: () => Promise<unknown>) => job(), count: () => 0 },
    checkInterpanLock: () => undefined,
    oneWaitress: {
      waitFor: () => ({ id: 1, start: () => ({ promise: answer.promise }) }),
      remove: () => undefined,
    },
    onMessageSent: () => Promise.resolve(),
    ezsp: {
      async send(_: number, __: number, apsFrame: { sequence: number }) {
        const reply = await sent.promise;
        apsFrame.sequence = 7;
        return reply;
      },
    },
  } as unknown as EmberSender;
  const { passBy, waitAs } = guardEmberSending(adapter, adapter.queue, (_, send) => send());
  const frame = {
    ...UNLOCK,
    header: { transactionSequenceNumber: 1, frameControl: { disableDefaultResponse: true } },
  };
  const gate = openGate({ timeout: 5 }, 10, clock);
  const sending = passBy({ gate, actuates: false, clock }, () =>
    waitAs({ unconfirmed: (reason) => failures.push(reason) }, () =>
      adapter.sendZclFrameToEndpoint('0x1', LOCK_ADDRESS, 1, frame as never, 1_000, false, true),
    ),
  );
  const reported = (sequence: number) =>
    adapter.onMessageSent(
      FAILED,
      DIRECT,
      LOCK_ADDRESS,
      {
        profileId: 0x01_04,
        clusterId: DOOR_LOCK,
        sourceEndpoint: 1,
        destinationEndpoint: 1,
        options: 0,
        groupId: 0,
        sequence,
      },
      1,
    );
  // An earlier frame to the same lock, whose number begins again with 0.
  await reported(0);
  expect(failures).toEqual([]);
  sent.resolve([0, 1]);
  await clock.advance(0);
  await reported(0);
  expect(failures).toEqual([]);
  await reported(7);
  expect(failures).toHaveLength(1);
  answer.resolve('yes');
  expect(await sending).toBe('yes');
});
