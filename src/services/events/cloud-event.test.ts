import { expect, it } from 'vitest';
import { progress, SYSTEM_ID } from '../../../test/services/events/log.ts';
import { gapEvent, withReplayed, writeProgressEvent, writeProgressId } from './cloud-event.ts';

const recorded = { systemId: SYSTEM_ID, at: Date.UTC(2026, 1, 3, 4, 5, 6, 7), clockSynchronised: true };

it('describes a step of a key as CloudEvents 1.0, with the keyId in subject and data', () => {
  const failed = { ...progress(7), status: 'failed', error: { code: 'NO_CARD', message: 'no card came' } };
  const { topic, type, body } = writeProgressEvent(failed, { sequence: 12 }, recorded);
  expect(topic).toBe(`gatehouse/1/${SYSTEM_ID}/encoders/desk-1/events`);
  expect(JSON.parse(withReplayed(body, false))).toEqual({
    specversion: '1.0',
    id: writeProgressId(failed),
    type: 'gatehouse.encoder.write.failed.v1',
    source: `/systems/${SYSTEM_ID}/encoders/desk-1`,
    subject: 'k-7',
    time: '2026-02-03T04:05:06.007Z',
    datacontenttype: 'application/json',
    clocksynced: true,
    sequence: '000000000012',
    correlationid: 'c-1',
    replayed: false,
    data: {
      requestId: 'r-7',
      keyId: 'k-7',
      entryIndex: 0,
      entryCount: 1,
      status: 'failed',
      error: { code: 'NO_CARD', message: 'no card came' },
      totals: { written: 1, open: 0 },
    },
  });
  expect(type).toBe('gatehouse.encoder.write.failed.v1');
});

it('gives each job, key and status an id of its own, always the same', () => {
  const step = progress(1);
  const others = [{ jobId: 'other' }, { keyId: 'other' }, { status: 'failed' }];
  const ids = [{}, ...others].map((change) => writeProgressId({ ...step, ...change }));
  expect(new Set(ids).size).toBe(4);
  expect(writeProgressId({ ...step, requestId: 'x', totals: {} })).toBe(ids[0]);
});

it('names the encoder and the range in a gap, on the topic for gaps', () => {
  const { topic, body } = gapEvent(
    { encoderId: 'desk-1', first: 3, last: 9, reason: 'AGE' },
    'upstream',
    recorded,
  );
  expect(topic).toBe(`gatehouse/1/${SYSTEM_ID}/gaps`);
  expect(JSON.parse(body)).toMatchObject({
    type: 'gatehouse.events.gap.v1',
    subject: 'desk-1',
    data: { encoderId: 'desk-1', firstSequence: 3, lastSequence: 9, count: 7, reason: 'AGE' },
  });
});
