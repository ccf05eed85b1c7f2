/** A fetch of an identity provider's keys, and what a provider may do to the gateway. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { publish } from '../../../test/services/auth/issuer.ts';
import { fetchKeySet } from './key-set.ts';

it('interim answers without an end end the fetch', async () => {
  const url = await publish(
    (_, { socket }) => void socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20)),
  );
  await expect(fetchKeySet({ url }, manualClock(), new AbortController().signal)).rejects.toThrow(
    'it sends interim answers (1xx) without an end',
  );
});
