/**
 * The way of a person or a test to a simulation, over HTTP on this machine alone: JSON in, JSON out. What is wrong is
 * answered 400 {"error": "…"}.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { z } from 'zod';

export interface Control extends AsyncDisposable {
  /** Such as http://127.0.0.1:40001. */
  readonly url: string;
}

export interface Answer {
  status: number;
  body: unknown;
}

const BODY_MAX_BYTES = 64 * 1024;

/** What `handle` throws is answered 400. */
export async function serveControl(handle: (request: IncomingMessage) => Promise<Answer>): Promise<Control> {
  const server = createServer((request, response) => {
    handle(request)
      .catch((error: unknown) => ({ status: 400, body: { error: explained(error) } }))
      .then((answer) => send(response, answer))
      .catch(() => response.destroy());
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** The body of a request. Rejects when it is too long, or no JSON. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_MAX_BYTES) throw new RangeError(`more than ${BODY_MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** From the other end, the address being that of the control. Rejects with what was wrong. */
export async function callControl<Result>(
  address: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const sent = request(`${address}${path}`, { method, agent: false }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
    );
  });
  sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  const { status, text } = await promise;
  const answer = JSON.parse(text);
  if (status !== 200) throw new Error(`${method} ${path}: ${answer.error}`);
  return answer;
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}

function explained(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error);
  return error instanceof Error ? error.message : String(error);
}
