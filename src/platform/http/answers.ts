/**
 * What a service answers to a request of ours, within bounds.
 *
 * A peer that sends interim answers (1xx; RFC 9110, 15.2) without an end. None of them is a byte of the body, so no limit of a
 * body counts them, and each costs the event loop: until the deadline of the request everyone else would wait seconds.
 */
import type { ClientRequest } from 'node:http';

/** A server needs one or two: 100, 103. */
const INTERIM_MAX = 8;

/** More of them end the request with an error. */
export function boundInterimAnswers(request: ClientRequest): void {
  let count = 0;
  request.on('information', () => {
    count += 1;
    if (count === INTERIM_MAX) request.destroy(new Error('it sends interim answers (1xx) without an end'));
  });
}

/** What a service answers with 200, and nothing else. Rejects with what is wrong, in words. */
export function bodyOf(asked: ClientRequest, bytesMax: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const giveUp = (reason: string) => {
    reject(new Error(reason));
    asked.destroy();
  };
  boundInterimAnswers(asked);
  asked.on('error', reject);
  asked.on('response', (response) => {
    if (response.statusCode !== 200) return giveUp(`it answered with status ${response.statusCode}`);
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) giveUp(`its answer has more than ${bytesMax} bytes`);
      else chunks.push(chunk);
    });
    response.on('error', reject);
    response.on('end', () => resolve(Buffer.concat(chunks).toString()));
  });
  return promise;
}
