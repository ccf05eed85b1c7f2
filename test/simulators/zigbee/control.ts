/**
 * The hand of a person or a test on a simulated Zigbee network, over HTTP on this machine alone. JSON in, JSON out.
 *
 *   GET  /                     GatewayStats of simulation.ts
 *   POST /                     GatewayChange of plan.ts, any of: {"drop": true} · {"plugged": false} · {"silent": true} ·
 *                              {"selfReset": true} · {"newStick": {"ieee": "…"}} · {"airMs": 15} · {"lossRate": 0.1} ·
 *                              {"confirm": {"status": "MAC_NO_ACK", "frames": 3}} · {"reading": false}; answers the stats
 *   GET  /locks/<ieee>         LockState of lock.ts: what it executed and received with the times, credentials, schedules …
 *   POST /locks/<ieee>         LockChange of plan.ts, any of: {"card": "04a1b2c3"} · {"pin": "1234"} · {"manual": "unlock"} ·
 *                              {"door": "open"} · {"battery": {"percent": 12}} · {"faults": {"lostResponses": 1}}, null ends
 *                              one or all · {"checkIn": true} · {"leave": true} · {"readdress": "silently"} …; answers the state
 *   POST /locks/<ieee>/join    the lock, or a router, asks to join:
 *                              {"outcome": "joined" | "closed" | "noNetwork" | "keyMismatch"}
 *
 * What is wrong is answered 400 {"error": "…"}, a lock that is not there 404.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { z } from 'zod';
import { gatewayChange, type LockChange, lockChange } from './plan.ts';
import type { Simulation } from './simulation.ts';

export interface Control extends AsyncDisposable {
  /** Such as http://127.0.0.1:40001. */
  readonly url: string;
}

interface Answer {
  status: number;
  body: unknown;
}

const BODY_MAX_BYTES = 64 * 1024;

export async function openControl(simulation: Simulation): Promise<Control> {
  const server = createServer((request, response) => {
    handle(request, simulation)
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

async function handle(request: IncomingMessage, simulation: Simulation): Promise<Answer> {
  const { method, url = '/' } = request;
  if (method !== 'GET' && method !== 'POST') return { status: 405, body: { error: 'GET or POST' } };
  const [, ieee, join] = /^\/locks\/([0-9a-f]{16})(\/join)?$/.exec(url) ?? [];
  if (ieee !== undefined) return await handleLock(request, simulation, ieee, join !== undefined);
  if (url !== '/') return { status: 404, body: { error: `nothing is at ${url}` } };
  if (method === 'POST') await simulation.changeGateway(gatewayChange.parse(await json(request)));
  return { status: 200, body: simulation.stats() };
}

async function handleLock(
  request: IncomingMessage,
  simulation: Simulation,
  ieee: string,
  isJoin: boolean,
): Promise<Answer> {
  const missing = { status: 404, body: { error: `no lock is ${ieee}` } };
  if (isJoin) {
    const outcome = request.method === 'POST' ? simulation.join(ieee) : undefined;
    return outcome === undefined ? missing : { status: 200, body: { outcome } };
  }
  if (request.method === 'POST') {
    // The names are those of Faults: zod cannot tell it from a mapped shape.
    simulation.change(ieee, lockChange.parse(await json(request)) as LockChange);
  }
  const state = simulation.state(ieee);
  return state ? { status: 200, body: state } : missing;
}

async function json(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_MAX_BYTES) throw new RangeError(`more than ${BODY_MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}

function explained(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error);
  return error instanceof Error ? error.message : String(error);
}
