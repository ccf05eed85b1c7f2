/** A fetch of an identity provider's keys, and what a provider may do to the gateway. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { publish } from '../../../test/services/auth/issuer.ts';
import { fetchKeySet, readKeySet } from './key-set.ts';

it('interim answers without an end end the fetch', async () => {
  const url = await publish(
    (_, { socket }) => void socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20)),
  );
  await expect(fetchKeySet({ url }, manualClock(), new AbortController().signal)).rejects.toThrow(
    'it sends interim answers (1xx) without an end',
  );
});

it('a failed fetch says where it asked, and not by which credentials', async () => {
  const url = (await publish((_, response) => void response.writeHead(404).end())).replace(
    '://',
    '://gatehouse:opensesame@',
  );
  const fetched = fetchKeySet({ url: `${url}?key=opensesame` }, manualClock(), new AbortController().signal);
  await expect(fetched).rejects.toThrow(
    /^the keys could not be fetched from http:\/\/[\w.]+:\d+\/…: it answered with status 404$/,
  );
});

it('a file that is no key set is not quoted, not even in the cause of the error', () => {
  let thrown: unknown;
  try {
    readKeySet('opensesame');
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ message: 'it is not JSON' });
  expect((thrown as Error).cause).toBeUndefined();
});
