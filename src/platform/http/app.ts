/**
 * Serves operations: one pipeline for all of them, in this order: correlation id, shutting down, authentication, role,
 * rate, size and media type, strict JSON, schema, idempotency key, handler. Two apps are made of the same operations: `lan` for the
 * site's network, `local` for the admin socket, whose file mode is the authentication.
 */
import { Hono } from 'hono';
import { TrieRouter } from 'hono/router/trie-router';
import type { Clock } from '../clock.ts';
import { GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import { ANYONE, LOCAL_ADMINISTRATOR, type Principal } from '../principal.ts';
import { NO_ADDRESS } from './address.ts';
import { readJson, readUnexpected, refuseOversized } from './body.ts';
import type { Commitment } from './commitment.ts';
import { openCors } from './cors.ts';
import { withDocument } from './document-operation.ts';
import { PAGE_POLICY } from './document-page.ts';
import { type Idempotency, idempotencyKeyOf } from './idempotency.ts';
import {
  type Answer,
  BODY_LIMIT_BYTES,
  type Operation,
  takesAnyQuery,
  takesIdempotencyKey,
} from './operation.ts';
import type { Pages } from './pages.ts';
import { type Rate, rateLimiter } from './rate-limit.ts';
import { correlationIdOf, errorBody, errorReply, type Reply, responseOf, storedReply } from './reply.ts';
import { checkError, checkResult } from './response-check.ts';
import { refuseForeignPage, refuseForeignSignIn } from './same-origin.ts';
import { type Input, pathParameters, queryParameters, validate } from './validation.ts';

/** What a request offers of who sends it. */
export interface Credentials {
  /** The headers Authorization and Cookie, as sent. */
  authorization: string | undefined;
  cookie: string | undefined;
  /** Where it comes from, as limits count it (address.ts). */
  address: string;
}

export type Surface =
  | {
      kind: 'lan';
      /** Comes before every path, such as /api; may be "". */
      basePath: string;
      /** Called at each refusal for want of a role. */
      forbidden?(principal: Principal, operation: string): void;
      /** Who that is. Throws, or rejects with, UNAUTHORIZED, or RATE_LIMITED after too many failures. */
      authenticate(credentials: Credentials): Principal | Promise<Principal>;
      rate(principal: Principal): Rate;
      /** Origins whose pages may read answers (cors.ts); none when absent. */
      corsOrigins?: readonly string[];
      /** Of the console; none when absent. */
      pages?: Pages;
    }
  | { kind: 'local' };

export interface AppOptions {
  surface: Surface;
  operations: readonly Operation[];
  /** Of Gatehouse. */
  version: string;
  clock: Clock;
  log: Log;
  /** Called at every answer; `route` is the pattern, milliseconds are up to its headers. */
  answered?: (method: string, route: string, status: number, milliseconds: number) => void;
  /** Answers that differ from their declaration become INTERNAL: for tests and the demo. */
  checkResponses?: boolean;
  /** Absent: the operations of a test that have none to keep. */
  idempotency?: Idempotency;
  /** Absent: what is stored here may be answered. */
  commitment?: Commitment | undefined;
}

/** What the request itself does not say of who sends it. */
export interface Sender {
  /** As address.ts makes it; NO_ADDRESS when absent. */
  address: string;
  /** The end of its connection has been read. */
  isLeaving(): boolean;
  /** As in Caller (connections.ts). */
  arrivedAt?: number | undefined;
}

export interface App {
  fetch(request: Request, sender?: Partial<Sender>): Response | Promise<Response>;
  /** From now on: 503 SHUTTING_DOWN, and connections close after their answer. */
  drain(): void;
}

/** A restart takes a few seconds. */
const RETRY_WHEN_STOPPED_SECONDS = 10;

/** One request on its way through. */
interface Exchange extends Sender {
  request: Request;
  correlationId: string;
  /** Known once it has been authenticated. */
  principal?: Principal;
}

export function createApp(options: AppOptions): App {
  const basePath = options.surface.kind === 'lan' ? options.surface.basePath : '';
  const operations = servedOperations(options, basePath);
  const closing = new AbortController();
  const serve = operationServer(options, basePath, closing.signal);
  const exchanges = exchangeServer(options);
  const hono = new Hono<{ Bindings: Sender }>();
  for (const operation of operations) {
    const route = basePath + operation.path;
    const work: Work = {
      route,
      work: (exchange) => serve(operation, exchange),
    };
    hono.on([operation.method], routerPattern(route), ({ req, env }) => exchanges.answer(req.raw, env, work));
  }
  const nowhere: Work = { route: 'none', work: refusePath(basePath) };
  const pages = options.surface.kind === 'lan' ? options.surface.pages : undefined;
  // Made for the first who needs it: no one waits for it at the start.
  let paths: TrieRouter<Work> | undefined;
  hono.notFound(({ req, env }) => {
    const page = pages?.at(req.raw, req.path);
    if (page) return exchanges.answer(req.raw, env, { route: 'console', work: () => page });
    paths ??= pathRouter(operations, basePath);
    const [[path]] = paths.match('ALL', req.path);
    return exchanges.answer(req.raw, env, path?.[0] ?? nowhere);
  });
  return {
    fetch: (request, { address = NO_ADDRESS, isLeaving = () => false, arrivedAt } = {}) =>
      hono.fetch(request, { address, isLeaving, arrivedAt }),
    drain() {
      exchanges.drain();
      closing.abort();
    },
  };
}

/** Apart from the operations: with a second handler for a path, Hono would compose both for each request. */
function pathRouter(operations: readonly Operation[], basePath: string): TrieRouter<Work> {
  const paths = new TrieRouter<Work>();
  for (const [path, sharing] of Map.groupBy(operations, ({ path }) => path)) {
    const route = basePath + path;
    paths.add('ALL', routerPattern(route), { route, work: refuseMethod(sharing) });
  }
  return paths;
}

/** The operations of the surface and their document, static segments before parameters in the same place. */
function servedOperations({ surface, operations, version }: AppOptions, basePath: string): Operation[] {
  const here = operations.filter(({ access }) => surface.kind === 'local' || access !== 'local');
  // "{" sorts after every character a static segment has.
  return withDocument(here, { version, basePath }).toSorted(
    (a, b) => Number(a.path > b.path) - Number(a.path < b.path),
  );
}

interface Work {
  /** For the log: the pattern, never the path, so that it holds no identifiers and its number is bounded. */
  route: string;
  work(exchange: Exchange): Reply | Promise<Reply>;
}

/** What surrounds every request, whatever it asks for: correlation id, refusal while stopping, error body, one line. */
function exchangeServer({ surface, clock, log, answered = () => {} }: AppOptions) {
  const cors = openCors((surface.kind === 'lan' && surface.corsOrigins) || []);
  let draining = false;
  return {
    drain() {
      draining = true;
    },
    async answer(request: Request, sender: Sender, { route, work }: Work): Promise<Response> {
      const started = clock.monotonic();
      const correlationId = correlationIdOf(request.headers.get('x-request-id'));
      const exchange: Exchange = { request, ...sender, correlationId };
      let response: Response;
      try {
        if (draining) throw stopping();
        const reply = cors.isPreflight(request) ? { status: 200, body: {} } : await work(exchange);
        response = responseOf(reply, correlationId, draining);
      } catch (error) {
        const credentialsOffered = ['authorization', 'cookie'].some((name) => request.headers.has(name));
        const reply = errorReply(error, { correlationId, credentialsOffered }, log);
        response = responseOf(reply, correlationId, draining);
      }
      for (const [name, value] of Object.entries(cors.headersFor(request))) response.headers.set(name, value);
      const { method } = request;
      const { status } = response;
      const milliseconds = clock.monotonic() - started;
      answered(method, route, status, milliseconds);
      const ms = Math.round(milliseconds);
      const principal = exchange.principal?.label;
      // What a request changes is in the audit, and what failed by our fault has a line of its own.
      log.debug({ method, route, status, ms, principal, correlationId }, 'request');
      return response;
    },
  };
}

function stopping(): GatehouseError {
  return new GatehouseError('SHUTTING_DOWN', 'The gateway is stopping; try again in a minute.', {
    retryAfterSeconds: RETRY_WHEN_STOPPED_SECONDS,
  });
}

/** The pipeline of one operation, from authentication on. */
function operationServer(
  { surface, clock, checkResponses = false, idempotency, commitment }: AppOptions,
  basePath: string,
  closing: AbortSignal,
) {
  const limitRate = rateLimiter(clock.monotonic);
  // Apart from those who are known, whose buckets strangers must not push out.
  const limitStrangers = rateLimiter(clock.monotonic);

  async function admit({ id, access, rate }: Operation, { request, address }: Exchange): Promise<Principal> {
    if (surface.kind === 'local') return LOCAL_ADMINISTRATOR;
    if (typeof access === 'string') {
      refuseForeignSignIn(request);
      if (rate) limitStrangers(`${id} ${address}`, rate);
      return ANYONE;
    }
    const authorization = request.headers.get('authorization') ?? undefined;
    const cookie = request.headers.get('cookie') ?? undefined;
    const principal = await surface.authenticate({ authorization, cookie, address });
    if (principal.via === 'session') refuseForeignPage(request);
    return principal;
  }

  function authorize({ id, access }: Operation, principal: Principal): void {
    if (surface.kind === 'local' || typeof access === 'string') return;
    if (!access.some((role) => principal.roles.has(role))) {
      surface.forbidden?.(principal, id);
      throw new GatehouseError(
        'FORBIDDEN',
        `This needs the role ${access.join(' or ')}; use a token that has it.`,
      );
    }
    limitRate(principal.id, surface.rate(principal));
  }

  async function call(operation: Operation, exchange: Exchange): Promise<Reply> {
    const { request, address, correlationId, arrivedAt } = exchange;
    const principal = await admit(operation, exchange);
    exchange.principal = principal;
    authorize(operation, principal);
    if (changes(operation) && !operation.mayRunTwice) commitment?.admit();
    const limit = operation.bodyLimit ?? BODY_LIMIT_BYTES;
    refuseOversized(request, limit);
    const body = await (operation.body ? readJson : readUnexpected)(request, limit);
    const url = new URL(request.url);
    const input = validate(operation, {
      params: pathParameters(basePath + operation.path, url),
      query: takesAnyQuery(operation) ? {} : queryParameters(url),
      body,
    });
    const ifMatch = request.headers.get('if-match') ?? undefined;
    const reauthenticate = () => admit(operation, exchange);
    const isGone = () => hasHungUp(exchange);
    const hungUp = request.signal;
    const caller = { principal, correlationId };
    const who = { principal, caller, editor: { ...caller, ifMatch } };
    const around = { ...who, address, arrivedAt, isGone, hungUp, reauthenticate };
    if (operation.media === 'text/event-stream')
      return streamReply(operation, request, { ...input, ...around }, closing);
    const handle = async () => {
      const answer = await operation.handler({ ...input, ...around });
      if (checkResponses) checkResult(operation, answer.body);
      if (answer.stored) return storedReply(operation.status, answer.stored, request, pageHeaders(operation));
      return { status: operation.status, body: answer.body, headers: headersOf(operation, answer, basePath) };
    };
    const key = request.headers.get('idempotency-key');
    if (!idempotency || key === null || !takesIdempotencyKey(operation)) return handle();
    const keyed = { principalId: principal.id, key: idempotencyKeyOf(key) };
    const { mayRunTwice = false } = operation;
    const content = contentOf(operation, input, ifMatch);
    return idempotency.once({ ...keyed, content, mayRunTwice }, handle);
  }

  return async (operation: Operation, exchange: Exchange): Promise<Reply> => {
    try {
      const reply = await call(operation, exchange);
      // Its Idempotency-Key is used up: a repetition waits for the same.
      if (changes(operation)) await commitment?.kept();
      return reply;
    } catch (error) {
      if (checkResponses) checkError(operation, error);
      throw error;
    }
  };
}

/** A sign-in may be lost with this gateway: it is repeated at the next one. */
const changes = ({ method, access }: Operation) => method !== 'get' && access !== 'public';

function headersOf(
  { media, location }: Operation,
  { body, etag, setCookie }: Answer<unknown>,
  basePath: string,
): Record<string, string> {
  return {
    ...(etag !== undefined && { ETag: `"${etag}"` }),
    ...(media === 'text/plain' && { 'Content-Type': 'text/plain; charset=utf-8' }),
    ...(setCookie !== undefined && { 'Set-Cookie': setCookie }),
    ...(location && { Location: basePath + location(body) }),
  };
}

/** As it was read: the order of fields and blanks make no other request. */
function contentOf(
  operation: Operation,
  { params, query, body }: Input,
  ifMatch: string | undefined,
): string {
  return JSON.stringify([operation.id, params, query, ifMatch ?? null, operation.body ? body : null]);
}

/**
 * After a stall, such as of the disk, a request may be as old as that, and its sender's hanging up is read after it: in the
 * second turn of the event loop from here, for the first may be past its reading.
 */
async function hasHungUp({ request, isLeaving }: Exchange): Promise<boolean> {
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return request.signal.aborted || isLeaving();
}

function pageHeaders({ media }: Operation): Record<string, string> {
  return media === 'text/html'
    ? { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': PAGE_POLICY }
    : {};
}

type AnyCall = Parameters<Operation['handler']>[0];

/** A HEAD opens nothing: no one would close it. */
async function streamReply(
  { status, handler }: Operation,
  { method, headers }: Request,
  call: AnyCall,
  closing: AbortSignal,
): Promise<Reply> {
  const lastEventId = headers.get('last-event-id') ?? undefined;
  const streamCall = { ...call, lastEventId, closing };
  const body = method === 'HEAD' ? null : (await handler(streamCall)).body;
  // The second one is for a proxy in front, which would hold events back until it has a bufferful.
  return { status, body, headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' } };
}

function refuseMethod(sharingPath: readonly Operation[]) {
  const methods = sharingPath.map(({ method }) => method.toUpperCase());
  const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ');
  const error = new GatehouseError('METHOD_NOT_ALLOWED', `This path takes ${allow}.`);
  return ({ correlationId }: Exchange): Reply => ({
    status: 405,
    body: errorBody(error, correlationId),
    headers: { Allow: allow },
  });
}

function refusePath(basePath: string) {
  return () => {
    throw new GatehouseError(
      'NOT_FOUND',
      `There is nothing at this path; ${basePath}/openapi.json lists all paths.`,
    );
  };
}

/** /encoder/{encoderId} as the router writes it. */
function routerPattern(route: string): string {
  return route.replaceAll(/\{(\w+)\}/g, ':$1');
}
