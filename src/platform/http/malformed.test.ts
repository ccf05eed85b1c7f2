import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { answerMalformed } from './malformed.ts';

async function exchange(text: string, options = {}): Promise<string> {
  const server = createServer({ maxHeaderSize: 8_192, ...options });
  answerMalformed(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.end(text);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}

test.each([
  ['nonsense', 'HELLO\r\n\r\n', 400, 'VALIDATION_FAILED'],
  [
    'two lengths',
    'PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
    'VALIDATION_FAILED',
  ],
  ['an unknown expectation', 'PUT / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n', 417, 'EXPECTATION_FAILED'],
  ['huge headers', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(9_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
])('%s get the error body', async (_what, text, status, code) => {
  const answer = await exchange(text);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toContain(`HTTP/1.1 ${status} `);
  expect(head).toContain('Content-Type: application/json');
  expect(JSON.parse(body)).toMatchObject({
    error: code,
    message: expect.any(String),
    correlationId: /X-Request-Id: (\S+)/.exec(head)?.[1],
  });
});
