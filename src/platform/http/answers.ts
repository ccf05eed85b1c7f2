/**
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
