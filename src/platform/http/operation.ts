/**
 * One operation of the interface, declared once: the object drives routing, validation, authorisation, error codes and
 * the OpenAPI document. app.ts mounts it, openapi.ts describes it; slices declare it in operations.ts.
 */
import type { z } from '@hono/zod-openapi';
import type { ErrorCode } from '../errors.ts';
import type { Caller, Editor, Principal, Role } from '../principal.ts';
import type { Rate } from './rate-limit.ts';

/** Bytes of a body, unless the operation says otherwise: ten times the largest resource. */
export const BODY_LIMIT_BYTES = 64 * 1_024;

/** What a handler is given; everything in it has been validated. */
export interface Call<Params, Query, Body> {
  principal: Principal;
  params: Params;
  query: Query;
  body: Body;
  /** Its correlationId is from X-Request-Id, or drawn; goes into the answer, the log, the audit and upstream events. */
  caller: Pick<Caller, 'principal' | 'correlationId'>;
  /** The same, with the If-Match header as sent. */
  editor: Editor;
  /** Where it comes from, as limits count it (address.ts). */
  address: string;
  /** Monotonic milliseconds: the request did not arrive before (connections.ts); undefined: it is not known. */
  arrivedAt?: number | undefined;
  /** The caller has hung up: no one waits for the answer any more. */
  isGone(): Promise<boolean>;
  /** Fires when the caller hangs up. Unlike isGone it does not wait for what has arrived and was not read yet. */
  hungUp: AbortSignal;
  /** For an answer that goes on for long: throws UNAUTHORIZED once the credentials have ended. */
  reauthenticate(): Promise<Principal>;
}

/** What the opening of an event stream is given besides. */
export interface StreamCall<Params, Query> extends Call<Params, Query, undefined> {
  /** The Last-Event-ID header, as sent. */
  lastEventId: string | undefined;
  /** Fires when the server stops: an open stream would hold it up. */
  closing: AbortSignal;
}

/** A body that goes out as it is, to clients that take gzip and to others. */
export interface StoredBytes {
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
}

export interface Answer<Body> {
  body: Body;
  /** JSON that is sent in place of `body`. */
  stored?: StoredBytes;
  /** Without quotes. */
  etag?: string;
  /** The value of Set-Cookie. */
  setCookie?: string;
}

/** `public`: no credentials asked. `local`: served on the admin socket only. Else the roles that may call it. */
export type Access = 'public' | 'local' | readonly [Role, ...Role[]];

export interface OperationDeclaration<
  Params extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodType,
  Result extends z.ZodType,
> {
  /** camelCase, unique: the OpenAPI operationId. */
  id: string;
  method: 'get' | 'put' | 'post' | 'delete';
  /** OpenAPI form, such as /encoder/{encoderId}. A static segment wins over a parameter in its place. */
  path: string;
  summary: string;
  /** Markdown. */
  description?: string;
  tag: string;
  access: Access;
  params?: Params;
  /** Values arrive as text: fields.ts has numbers. A strict object refuses unknown parameters; none when absent. */
  query?: Query;
  /** A strict object, so that an unknown field is named. Without it nothing but `{}` is taken. */
  body?: Body;
  /** Bytes; BODY_LIMIT_BYTES when absent. */
  bodyLimit?: number;
  /** Of success; 200 when absent. */
  status?: 200 | 202;
  result: Result;
  /** Of a 202: the path, without the base path, where the state of what was accepted can be read. */
  location?(result: z.output<Result>): string;
  /**
   * What success is, unless JSON: a stream, where `result` is the data of each of its events; text, where the body is
   * a string that goes out as it is; or a page, which is stored.
   */
  media?: 'text/event-stream' | 'text/plain' | 'text/html';
  /** Of a public operation that costs more than a probe: per address. */
  rate?: Rate;
  /** The answer holds a secret, which is kept nowhere: Idempotency-Key, which has answers stored, is not for it. */
  answersSecret?: true;
  /** Carried out twice it does no harm, and it must not wait for the disk: Idempotency-Key does not hold it back. */
  mayRunTwice?: true;
  /** Codes this operation can answer beyond those of its kind (errorsOf); none when absent. */
  errors?: readonly ErrorCode[];
  handler(
    call: Call<z.output<Params>, z.output<Query>, z.output<Body>>,
  ): Promise<Answer<z.input<Result>>> | Answer<z.input<Result>>;
}

/** An operation with its types folded away, as app.ts takes it. */
export type Operation = OperationDeclaration<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType> &
  Required<Pick<OperationDeclaration<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>, 'status' | 'errors'>>;

export function operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Result extends z.ZodType = z.ZodType,
>(declaration: OperationDeclaration<Params, Query, Body, Result>): Operation {
  return { status: 200, errors: [], ...declaration } as unknown as Operation;
}

type StreamDeclaration<Params extends z.ZodObject, Query extends z.ZodObject> = Omit<
  OperationDeclaration<Params, Query, z.ZodType, z.ZodType>,
  'method' | 'body' | 'bodyLimit' | 'status' | 'media' | 'handler'
> & {
  /** Chunks of whole events, as text/event-stream has them (HTML Living Standard, 9.2). */
  open(call: StreamCall<z.output<Params>, z.output<Query>>): ReadableStream<Uint8Array>;
};

/** A GET that goes on for as long as both sides like. All else about it is as for other operations. */
export function eventStream<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
>({ open, ...declared }: StreamDeclaration<Params, Query>): Operation {
  return {
    errors: [],
    ...declared,
    method: 'get',
    status: 200,
    media: 'text/event-stream',
    handler: (call) => ({ body: open(call as StreamCall<z.output<Params>, z.output<Query>>) }),
  } as Operation;
}

/** Load balancers and probes put things of their own after the `?`; nowhere else may it hold what does not exist. */
export function takesAnyQuery({ access, method, query }: Operation): boolean {
  return access === 'public' && method === 'get' && query === undefined;
}

/**
 * Whether Idempotency-Key is for it (idempotency.ts): PUT and DELETE may be repeated as they are, and a caller without a role
 * has no principal to keep keys for.
 */
export function takesIdempotencyKey({ method, access, answersSecret }: Operation): boolean {
  return method === 'post' && Array.isArray(access) && !answersSecret;
}

/** Every code the operation can answer: what follows from its declaration, and what it adds. */
export function errorsOf(operation: Operation): ErrorCode[] {
  const codes = new Set<ErrorCode>(['PAYLOAD_TOO_LARGE', 'SHUTTING_DOWN', 'INTERNAL']);
  const add = (...more: ErrorCode[]) => {
    for (const code of more) codes.add(code);
  };
  if (operation.access !== 'public') add('STORAGE_UNAVAILABLE', 'ROW_DAMAGED');
  if (Array.isArray(operation.access)) add('UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED');
  if (operation.rate) add('RATE_LIMITED');
  if (takesIdempotencyKey(operation)) add('IDEMPOTENCY_KEY_REUSED', 'OUTCOME_UNKNOWN');
  if (operation.params) add('VALIDATION_FAILED');
  if (!takesAnyQuery(operation)) add('VALIDATION_FAILED', 'UNKNOWN_FIELD');
  // The body of a GET never gets here (RFC 9110, 9.3.1: it means nothing).
  if (operation.method !== 'get') {
    add('UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON', 'VALIDATION_FAILED', 'UNKNOWN_FIELD');
  }
  add(...operation.errors);
  return [...codes];
}
