/**
 * The hand of a person or a test on a simulated bus, over HTTP on this machine alone. JSON in, JSON out.
 *
 *   GET  /                  {protocol, port, devices: [state …]}
 *   GET  /stats             BusStats of simulation.ts
 *   GET  /devices/17        {address, kind, hwId, inputs: {input0: false …}, outputs: {output0: false …}, history: [{output,
 *                           on, monotonicMs, at}], faults, requests, …} and what the kind has: settings, bootCount, pulse
 *   POST /devices/17        any of: {"inputs": {"input0": true}} · {"pulseInput": {"input": "input0", "milliseconds": 200}} ·
 *                           {"faults": {"dead": true}}, null ends one or all · {"restart": true} · {"swap": {"hwId": "…"}} ·
 *                           {"tamper": true} · {"supplyFault": true} · {"turnaroundMs": 5} ·
 *                           {"osdp": {"card": {"bits": 26, "data": "ffc00000"}}}; answers the state
 *   POST /                  any of: {"plugged": false} hangs up, true replugs · {"localEcho": true} · {"reading": false} ·
 *                           {"skipMs": 20000} lets the devices' clocks go on ·
 *                           {"idleNoise": {"everyMs": 50, "bytes": "00ff"}} or null · {"resetStats": true}; answers the stats
 *
 * All fields are in plan.ts. What is wrong is answered 400 {"error": "…"}, an address no one has 404.
 */
import type { IncomingMessage } from 'node:http';
import { type Answer, type Control, readJson, serveControl } from '../control.ts';
import { busChange, type CheckedPlan, type DeviceChange, deviceChange } from './plan.ts';
import type { Simulation } from './simulation.ts';

export function openControl(simulation: Simulation, plan: CheckedPlan): Promise<Control> {
  return serveControl((request) => handle(request, simulation, plan));
}

async function handle(request: IncomingMessage, simulation: Simulation, plan: CheckedPlan): Promise<Answer> {
  const { method, url = '/' } = request;
  const [, address] = /^\/devices\/(\d{1,3})$/.exec(url) ?? [];
  if (address !== undefined) return await handleDevice(request, simulation, Number(address));
  if (method === 'GET' && url === '/stats') return { status: 200, body: simulation.stats() };
  if (url !== '/') return { status: 404, body: { error: `nothing is at ${url}` } };
  if (method === 'GET') {
    const devices = simulation.addresses.map((each) => simulation.state(each));
    return { status: 200, body: { protocol: plan.protocol, port: simulation.port, devices } };
  }
  if (method !== 'POST') return { status: 405, body: { error: 'GET or POST' } };
  await simulation.changeBus(busChange.parse(await readJson(request)));
  return { status: 200, body: simulation.stats() };
}

async function handleDevice(
  request: IncomingMessage,
  simulation: Simulation,
  address: number,
): Promise<Answer> {
  if (request.method === 'POST') {
    // The names are those of Faults: zod cannot infer it from a mapped shape.
    simulation.change(address, deviceChange.parse(await readJson(request)) as DeviceChange);
  }
  const state = simulation.state(address);
  if (state) return { status: 200, body: state };
  return { status: 404, body: { error: `no device is at ${address}` } };
}
