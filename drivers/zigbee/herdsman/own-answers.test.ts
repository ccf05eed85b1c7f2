import { expect, it } from 'vitest';
import { type Sender, separateAnswers } from './own-answers.ts';

it('are sent after all that came with the frame that is answered', async () => {
  const sent: unknown[] = [];
  const adapter: Sender = {
    sendZclFrameToEndpoint: async () => undefined,
    async sendZclFrameToEndpointInternal(ieee) {
      sent.push(ieee);
    },
    selectSourceEndpoint: () => 1,
  };
  separateAnswers(adapter, { execute: (job) => job(), count: () => 0 });
  const answer = { header: { frameControl: { disableDefaultResponse: true } }, command: {} };
  const sending = adapter.sendZclFrameToEndpoint('0x01', 1, 1, answer, 1_000, false, true);
  await Promise.resolve().then(() => sent.push('the outcome of an unlock'));
  await sending;
  expect(sent).toEqual(['the outcome of an unlock', '0x01']);
});
