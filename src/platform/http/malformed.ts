/** What never became a request, because Node's parser refused it or it took too long, still gets our error body. */
import { randomUUID } from 'node:crypto';
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ERROR_STATUS, type ErrorCode, GatehouseError } from '../errors.ts';
import { correlationIdOf, errorBody } from './reply.ts';

/** Of the parser and of the timeouts (nodejs.org, http, Event: 'clientError'); everything else is malformed. */
const REFUSALS: Record<string, [ErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The headers are too large: at most 8 KiB in all.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'The request was not complete in time; send it again.'],
};
const MALFORMED: [ErrorCode, string] = ['VALIDATION_FAILED', 'This is not a valid HTTP/1.1 request.'];

export function answerMalformed(server: Pick<Server, 'on'>): void {
  server.on('checkExpectation', (_request, response: ServerResponse) =>
    refuse(response, 'EXPECTATION_FAILED', 'Of Expect only 100-continue is understood; leave it out.'),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const spokeHttp = /^(HPE|ERR_HTTP)_/.test(error.code ?? '');
    // A failed TLS handshake and a lost peer come here too; and one answer must not be mixed with another.
    if (!spokeHttp || !socket.writable || hasAnswered(socket)) return void socket.destroy();
    const [code, message] = REFUSALS[error.code ?? ''] ?? MALFORMED;
    const correlationId = randomUUID();
    const body = JSON.stringify(errorBody(new GatehouseError(code, message), correlationId));
    const status = ERROR_STATUS[code];
    socket.end(
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(body)}`,
        `X-Request-Id: ${correlationId}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  });
}

/** An answer to what Node made a request of, and no app is to see; the connection closes, its body unread. */
export function refuse(response: ServerResponse, code: ErrorCode, message: string): void {
  const correlationId = correlationIdOf(response.req.headers['x-request-id']?.toString());
  const body = JSON.stringify(errorBody(new GatehouseError(code, message), correlationId));
  const length = Buffer.byteLength(body);
  response
    .writeHead(ERROR_STATUS[code], {
      'Content-Type': 'application/json',
      'Content-Length': length,
      'X-Request-Id': correlationId,
      Connection: 'close',
    })
    .end(body);
}

/** Node keeps the message in work on the socket; once its headers left, the stream belongs to it. */
function hasAnswered(socket: Duplex): boolean {
  const { _httpMessage } = socket as Duplex & { _httpMessage?: { headersSent: boolean } | null };
  return _httpMessage?.headersSent === true;
}
