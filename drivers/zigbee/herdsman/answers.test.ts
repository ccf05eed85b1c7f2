import { describe, expect, it } from 'vitest';
import { KNOWN } from '../radio.ts';
import { type Answers, guardAnswers } from './answers.ts';

/** NWK_NO_ROUTE (Z-Stack Monitor and Test API, ZStatus), and what the library makes of a confirmation that never came. */
const NO_ROUTE = 0xcd;
const NONE = 9_999;

/** As the library does it: it waits for the answer only after a positive confirmation. */
function openAdapter(status: number) {
  const { promise, resolve: answer } = Promise.withResolvers<string>();
  const adapter: Answers & { send(): Promise<unknown> } = {
    waitForInternal: () => ({ start: () => ({ promise }), cancel: () => undefined }),
    dataRequest: async () => status,
    async send() {
      const waiting = this.waitForInternal();
      if ((await this.dataRequest()) !== 0) throw new Error('gave up');
      return waiting.start().promise;
    },
  };
  return { adapter, answer, waitAs: guardAnswers(adapter) };
}

describe('the answer of a device', () => {
  it.each([
    [NO_ROUTE, 'there is no route to the lock'],
    [NONE, 'the coordinator did not say whether it was delivered'],
    [0x77, 'the coordinator did not see it delivered (status 0x77)'],
  ])('is waited for after the confirmation %i', async (status, reason) => {
    const { adapter, answer, waitAs } = openAdapter(status);
    const reasons: string[] = [];
    const sent = waitAs({ unconfirmed: (why) => reasons.push(why) }, () => adapter.send());
    answer('success');
    expect([await sent, reasons]).toEqual(['success', [reason]]);
  });

  it('is given up where it is to be asked again', async () => {
    const { adapter, waitAs } = openAdapter(NO_ROUTE);
    await expect(waitAs({}, () => adapter.send())).rejects.toThrow('gave up');
  });

  it('is not waited for once the device has shown it, which is no failure', async () => {
    const { adapter, waitAs } = openAdapter(0);
    const known = new AbortController();
    const sent = waitAs({ known: known.signal }, () => adapter.send());
    known.abort(KNOWN);
    expect(await sent).toBeUndefined();
  });

  it('is not waited for once no one needs it any more', async () => {
    const { adapter, waitAs } = openAdapter(0);
    const known = new AbortController();
    const sent = waitAs({ known: known.signal }, () => adapter.send());
    known.abort('the caller stopped waiting');
    await expect(sent).rejects.toThrow('not needed');
  });
});
