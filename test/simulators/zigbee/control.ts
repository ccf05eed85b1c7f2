/**
 * The hand of a person or a test on a simulated Zigbee network, over HTTP on this machine alone. JSON in, JSON out.
 *
 *   GET  /                     GatewayStats of simulation.ts
 *   POST /                     GatewayChange of plan.ts, any of: {"drop": true} · {"plugged": false} · {"silent": true} ·
 *                              {"selfReset": true} · {"newStick": {"ieee": "…"}} · {"airMs": 15} · {"lossRate": 0.1} ·
 *                              {"confirm": {"status": "MAC_NO_ACK", "frames": 3, "delivered": true}} · {"full": 1} · {"reading": false};
 *                              answers the stats
 *   GET  /locks/<ieee>         LockState of lock.ts: what it executed and received with the times, credentials, schedules …
 *   POST /locks/<ieee>         LockChange of plan.ts, any of: {"card": "04a1b2c3"} · {"pin": "1234"} · {"manual": "unlock"} ·
 *                              {"door": "open"} · {"battery": {"percent": 12}} · {"faults": {"lostResponses": 1}}, null ends
 *                              one or all · {"checkIn": true} · {"leave": true} · {"readdress": "silently"} …; answers the state
 *   POST /locks/<ieee>/join    the lock, or a router, asks to join:
 *                              {"outcome": "joined" | "closed" | "noNetwork" | "keyMismatch"}
 *
 * What is wrong is answered 400 {"error": "…"}, a lock that is not there 404.
 */
import type { IncomingMessage } from 'node:http';
import { type Answer, type Control, readJson, serveControl } from '../control.ts';
import { gatewayChange, type LockChange, lockChange } from './plan.ts';
import type { Simulation } from './simulation.ts';

export function openControl(simulation: Simulation): Promise<Control> {
  return serveControl((request) => handle(request, simulation));
}

async function handle(request: IncomingMessage, simulation: Simulation): Promise<Answer> {
  const { method, url = '/' } = request;
  if (method !== 'GET' && method !== 'POST') return { status: 405, body: { error: 'GET or POST' } };
  const [, ieee, join] = /^\/locks\/([0-9a-f]{16})(\/join)?$/.exec(url) ?? [];
  if (ieee !== undefined) return await handleLock(request, simulation, ieee, join !== undefined);
  if (url !== '/') return { status: 404, body: { error: `nothing is at ${url}` } };
  if (method === 'POST') await simulation.changeGateway(gatewayChange.parse(await readJson(request)));
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
    // The names are those of Faults: zod cannot infer it from a mapped shape.
    simulation.change(ieee, lockChange.parse(await readJson(request)) as LockChange);
  }
  const state = simulation.state(ieee);
  return state ? { status: 200, body: state } : missing;
}
