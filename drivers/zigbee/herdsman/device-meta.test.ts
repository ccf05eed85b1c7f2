import { expect, it } from 'vitest';
import { metaOf, remember } from './device-meta.ts';

const LOCK = '00158d0001000001';
const entry = () => ({ meta: {} as Record<string, unknown>, save() {} });

it('keeps what a lock had before it stood open when the lock leaves, until it was given back', () => {
  const coordinator = entry();
  const first = entry();
  remember(LOCK, { standing: { autoRelockTime: 30 }, introduced: true }, first, coordinator);
  expect(metaOf(LOCK, first, coordinator)).toEqual({ standing: { autoRelockTime: 30 }, introduced: true });
  const again = entry();
  expect(metaOf(LOCK, again, coordinator)).toEqual({ standing: { autoRelockTime: 30 } });
  remember(LOCK, { standing: null, relockSeconds: null }, again, coordinator);
  expect(metaOf(LOCK, again, coordinator)).toEqual({ standing: null, relockSeconds: null });
  expect(metaOf(LOCK, entry(), coordinator)).toEqual({});
});

it('reads and takes back what an earlier version kept with the device', () => {
  const device = { ...entry(), meta: { gatehouse: { relockSeconds: 45 } } };
  const coordinator = entry();
  expect(metaOf(LOCK, device, coordinator)).toEqual({ relockSeconds: 45 });
  remember(LOCK, { relockSeconds: null }, device, coordinator);
  expect(metaOf(LOCK, device, coordinator)).toEqual({ relockSeconds: null });
});
