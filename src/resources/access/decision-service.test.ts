import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openDecisionService, type Question } from './decision-service.ts';

const QUESTION: Question = {
  id: 'aaaaaaaa-0000-4000-8000-00000000000a',
  doorId: 'dddddddd-0000-4000-8000-00000000000d',
  deviceId: 'bbbbbbbb-0000-4000-8000-00000000000b',
  reader: 0,
  format: 'wiegand',
  bits: 'ffc00080',
  count: 26,
  at: '2026-01-01T00:00:00.000Z',
};

async function served(answer: (response: ServerResponse) => void) {
  const asked: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const folder = await temporaryFolder();
  const signingKeyFile = join(folder, 'key');
  writeFileSync(signingKeyFile, 'whsec_c2VjcmV0\n');
  const clock = manualClock();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/decide`;
  return { clock, asked, service: openDecisionService({ url, signingKeyFile, timeout: 1_500 }, clock) };
}

it('is asked by a POST that it can check', async () => {
  const { service, asked } = await served((response) => response.end('{"open": true, "reason": "guest"}'));
  expect(await service.ask(QUESTION)).toEqual({ open: true, reason: 'guest' });
  const [{ headers, body } = { headers: {}, body: '' }] = asked;
  expect(JSON.parse(body)).toEqual(QUESTION);
  const signed = `${QUESTION.id}.${headers['webhook-timestamp']}.${body}`;
  const expected = createHmac('sha256', 'secret').update(signed).digest('base64');
  expect(headers).toMatchObject({ 'webhook-id': QUESTION.id, 'webhook-signature': `v1,${expected}` });
});

it.each([
  [
    'another status',
    (response: ServerResponse) => response.writeHead(202).end('{"open": true}'),
    'status 202',
  ],
  ['what is no JSON', (response: ServerResponse) => response.end('yes'), 'not {"open"'],
  ['a word for a boolean', (response: ServerResponse) => response.end('{"open": "true"}'), 'not {"open"'],
  ['too much', (response: ServerResponse) => response.end('x'.repeat(10_000)), 'more than 4096 bytes'],
  [
    'interim answers without an end',
    ({ socket }: ServerResponse) => void socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20)),
    'interim answers (1xx) without an end',
  ],
  ['a connection that ends', (response: ServerResponse) => response.destroy(), 'hang up'],
])('has given no answer by %s', async (_, answer, message) => {
  const { service, asked } = await served(answer);
  await expect(service.ask(QUESTION)).rejects.toThrow(message);
  expect(asked).toHaveLength(1);
});

it('is waited for no longer than its time, also in the middle of its answer', async () => {
  const { service, asked, clock } = await served((response) => response.write('{"open":'));
  const answer = service.ask(QUESTION);
  answer.catch(() => undefined);
  await expect.poll(() => asked.length).toBe(1);
  await clock.advance(1_500);
  await expect(answer).rejects.toThrow('no answer within 1500 ms');
});
