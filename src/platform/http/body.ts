/** Reads the body of a request: at most so many bytes, of the one media type, as strict JSON. */
import { GatehouseError } from '../errors.ts';
import { parseJson, parseLongJson } from './json.ts';

/** application/json, with no parameter but charset=utf-8. */
const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?;?$/i;

/** The client went away before its request was whole; no one is there to answer. */
export class ClientGone extends Error {
  constructor(cause: unknown) {
    super('the client went away while it sent its request', { cause });
    this.name = 'ClientGone';
  }
}

/** Refuses by the header alone, before a byte is read. */
export function refuseOversized(request: Request, limit: number): void {
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge(limit);
}

/**
 * The value in the body of an operation that takes none: undefined, unless something was sent, which no one must
 * believe to have been heeded. Throws as readJson does.
 */
export async function readUnexpected(request: Request, limit: number): Promise<unknown> {
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) return undefined;
  refuseOtherMedia(request);
  return parseJson(bytes);
}

/** The value in the body. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INVALID_JSON, UNKNOWN_FIELD; ClientGone. */
export async function readJson(request: Request, limit: number): Promise<unknown> {
  refuseOtherMedia(request);
  return parseLongJson(await readBytes(request, limit));
}

function refuseOtherMedia(request: Request): void {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with Content-Type: application/json.');
  }
  if (request.headers.has('content-encoding')) {
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', 'Send the body without Content-Encoding.');
  }
}

async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const announced = request.headers.get('content-length');
  if (announced === null) return readCounted(request, limit);
  // Nothing comes, and nothing is to be waited for: so most requests to unlock a door.
  if (announced === '0') return new Uint8Array();
  // No longer than announced: the HTTP parser sees to it.
  const whole = await request.arrayBuffer().catch((error: unknown) => {
    throw new ClientGone(error);
  });
  return new Uint8Array(whole);
}

/** Counts what arrives, since a chunked body does not say its length. */
async function readCounted(request: Request, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new ClientGone(error);
    });
    if (done) break;
    length += value.byteLength;
    if (length > limit) throw tooLarge(limit);
    chunks.push(value);
  }
  return Buffer.concat(chunks, length);
}

function tooLarge(limit: number): GatehouseError {
  return new GatehouseError('PAYLOAD_TOO_LARGE', `The body is too large: at most ${limit} bytes.`);
}
