/** What an operator reads where TLS fails; the errors are those of OpenSSL 3.5 in Node 24, for the alerts of RFC 8446, 6.2. */
import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { connect } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { failureWords } from './connection-failure.ts';

/** To a server that answers the first bytes so. */
async function failureOf(answer: Buffer): Promise<Error> {
  const server = createServer((socket) => socket.once('data', () => socket.end(answer)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const [error] = await once(connect({ socket: connectTcp(port, '127.0.0.1') }), 'error').catch((reason) => [
    reason,
  ]);
  return error;
}

/** RFC 8446, 5.1 and 6: type alert, version, two bytes: fatal and the description. */
const alert = (description: number) => Buffer.from([21, 3, 3, 0, 2, 2, description]);

it.each([
  [116, 'TLS failed: it wants a client certificate (certificate required)'],
  [48, 'TLS failed: it does not know the authority of the certificate that it was shown (unknown ca)'],
  [45, 'TLS failed: the certificate that it was shown has expired (certificate expired)'],
  [70, 'TLS failed: it takes neither TLS 1.2 nor 1.3 (protocol version)'],
  [80, 'TLS failed: tlsv1 alert internal error'],
])('alert %i', async (description, words) => {
  expect(failureWords(await failureOf(alert(description)))).toBe(words);
});

it('a server without TLS', async () => {
  const clearText = Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n');
  expect(failureWords(await failureOf(clearText))).toBe('it does not speak TLS');
});

it('an error of several addresses has a code alone', () => {
  expect(failureWords(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
});
