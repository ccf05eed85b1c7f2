/** A site with one of everything, each that can be connected connected, and a client that sees nothing but HTTPS. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { vi } from 'vitest';
import { buildBody, drawOperationalKey } from '../simulators/encoder/registration.ts';
import { openTestSite } from '../simulators/test-site.ts';
import type { RoleName } from './specification.ts';

export const NETWORK = 'aaaaaaaa-0000-4000-8000-00000000000a';
export const ZGATE = 'bbbbbbbb-0000-4000-8000-00000000000b';
export const DEVICE = 'cccccccc-0000-4000-8000-00000000000c';
/** On the same bus; its relay opens DOOR. */
const OTHER_DEVICE = 'cccccccc-0000-4000-8000-00000000000d';
export const DOOR = 'dddddddd-0000-4000-8000-00000000000d';
/** Nothing of it was ever set, and no lock has it. */
export const BARE_DOOR = 'dddddddd-0000-4000-8000-00000000000e';
/** Worked by DEVICE once a test says so. */
export const RELAY_DOOR = 'dddddddd-0000-4000-8000-00000000000f';
/** Connected, and not. */
export const ENCODER = 'desk-1';
export const ABSENT_ENCODER = 'desk-2';
const GATEWAY_HARDWARE = '00124b0001020304';
const LOCK = '00124b00aabbccdd';
const WAIT = { interval: 20 };

const SITE = {
  systemConfigVersion: 3,
  groups: [{ id: 'floor-1', name: 'First floor' }],
  schedules: [{ id: 'office', intervals: [{ days: ['mon'], start: '08:00', end: '18:00' }] }],
  templates: [{ id: 'room', type: 'room', onlineEnabled: true, relaySetup: 'pulse', standOpenAllowed: true }],
  doors: [
    {
      id: DOOR,
      accessPointId: 1,
      mac: LOCK,
      gatewayId: ZGATE,
      networkId: NETWORK,
      connectionType: 'zigbee',
      scheduleId: 'office',
      templateId: 'room',
    },
    { id: BARE_DOOR, accessPointId: 2 },
    { id: RELAY_DOOR, accessPointId: 3, connectionType: 'rs485' },
  ],
  rs485: [
    { deviceId: DEVICE, hwId: 'io-1', bus: 'bus-1' },
    { deviceId: OTHER_DEVICE, hwId: 'io-2', bus: 'bus-1', doorId: DOOR },
  ],
};

const CONFIGURATION = {
  // One address tries every wrong credential there is.
  auth: { failureBurst: 100_000 },
  links: [
    { ...loopback('bus-1'), options: played(['rs485', 'io-1'], ['rs485', 'io-2']) },
    { ...loopback('zb-1'), options: played(['gateway', GATEWAY_HARDWARE], ['lock', LOCK]) },
  ],
  networks: [{ id: NETWORK }],
  zgates: [{ deviceId: ZGATE, link: 'zb-1', networkId: NETWORK }],
};

function loopback(id: string) {
  return { id, protocol: 'loopback' };
}

function played(...devices: [string, string][]) {
  return { reportEveryMs: 50, devices: devices.map(([kind, hwId]) => ({ kind, hwId })) };
}

export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: Record<string, unknown>;
}

export interface Asked {
  method: string;
  path: string;
  token?: string | undefined;
  /** Sent as JSON; a string as it is. */
  body?: unknown;
  headers?: Record<string, string>;
}

export type SpecifiedSite = Awaited<ReturnType<typeof openSpecifiedSite>>;

export async function openSpecifiedSite() {
  await using opening = new AsyncDisposableStack();
  const site = opening.use(await openTestSite({ more: CONFIGURATION, simulatesLinks: true }));
  const { daemon, tokens } = site;
  const agent = new Agent({ ca: readFileSync(daemon.caFile, 'utf8'), keepAlive: true });
  opening.defer(() => agent.destroy());

  async function call({ method, path, token, body, headers }: Asked): Promise<Answer> {
    const content = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const asked = request(`${daemon.baseUrl}${path}`, {
      agent,
      method,
      timeout: 10_000,
      headers: {
        ...(content !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
    });
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    asked.on('error', reject).on('response', async (response) => {
      const text = (await response.toArray()).join('');
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text) });
    });
    asked.end(content);
    return promise;
  }

  const encoder = await site.addEncoder(ENCODER, { endlessCards: true });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  await site.register(ABSENT_ENCODER);
  await daemon.importSite(SITE);

  const get = async (path: string, role: RoleName = 'front-desk-admin') =>
    (await call({ method: 'GET', path, token: tokens[role] })).body;
  await vi.waitFor(async () => {
    const [device, zgate, door] = await Promise.all([
      get(`/network/rs485/${DEVICE}`),
      get(`/network/zgate/${ZGATE}`),
      get(`/access/doors/${DOOR}`),
    ]);
    if (device?.reportedSettingsVersion !== device?.settingsVersion) throw new Error('not in force');
    if (zgate?.hwId === null || door?.applied === null) throw new Error('not heard of yet');
  }, WAIT);

  const revoked = await daemon.callLocally('POST', '/tokens', {
    label: 'revoked',
    roles: [...Object.keys(tokens)],
  });
  await daemon.callLocally('DELETE', `/tokens/${revoked.body.id}`);
  const opened = opening.move();
  return {
    call,
    get,
    tokens,
    revokedToken: String(revoked.body.token),
    /** The body of 4.1 for an encoder, with a key of its own. */
    async registration(encoderId: string, key = drawOperationalKey()) {
      return buildBody(encoderId, await site.factory.makeDevice(encoderId), key);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
