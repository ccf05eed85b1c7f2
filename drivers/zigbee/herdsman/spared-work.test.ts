import { expect, it } from 'vitest';
import { type Requests, spareWork, type Waits } from './spared-work.ts';

it('spares the library the stacks of errors that it makes in advance, and no other', async () => {
  const stacks: (string | undefined)[] = [];
  const waits: Waits = {
    waitFor: () => ({ ID: 7, start: () => void stacks.push(new Error('timed out').stack) }),
  };
  const requests: Requests = {
    async sendRequest() {
      stacks.push(new Error('not sent').stack);
    },
  };
  const frame = { pin: '1234' };
  spareWork(waits, requests, frame);
  const { ID, start } = waits.waitFor();
  start();
  await requests.sendRequest();
  expect([ID, ...stacks]).toEqual([7, 'Error: timed out', 'Error: not sent']);
  expect(`${frame}`).toBe('a frame');
  expect(new Error('ours').stack).toContain('spared-work.test.ts');
});
