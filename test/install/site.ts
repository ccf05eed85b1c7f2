/** What is connected to the controller: a bus behind a USB adapter, an encoder and its vendor, desk software. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSimulatedBus, type SimulatedBus } from '../simulators/bus/bus.ts';
import { type Device, makeFactory } from '../simulators/encoder/factory.ts';
import { call, register } from '../simulators/encoder/registration.ts';
import { openSiteEncoder, type SiteEncoder } from '../simulators/site.ts';
import { VENDOR_KEY } from '../simulators/test-site.ts';

export const ENCODER = 'desk-1';
/** So that one certificate is good for the controller and for whatever replaces it. */
const NAME = '127.0.0.1';
const PATIENCE_MS = 120_000;
const LOOK_MS = 500;
export interface Site extends AsyncDisposable {
  bus: SimulatedBus;
  /** HTTPS and MQTT, the same at the controller and at this host. */
  ports: readonly [https: number, mqtt: number];
  name: string;
  /** Of the encoders' vendor, in PEM. */
  vendorRoot: string;
  /** One exchange with the interface, as desk software has them. */
  call(method: string, path: string, body?: unknown): ReturnType<typeof call>;
  /** What is wanted of the answer to a GET, once it is there: until then undefined or nothing comes. */
  until<T>(path: string, wanted: (body: Record<string, unknown>) => T | undefined): Promise<T>;
  /** The root that is trusted from now on, in PEM. */
  trust(root: string): void;
  useToken(token: string): void;
  /** Registers the encoder, and switches it on. */
  registerEncoder(): Promise<void>;
  encoder(): SiteEncoder;
  /** Resolves when the encoder is. */
  connected(): Promise<void>;
}

export async function openSite(folder: string): Promise<Site> {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(
    await openSimulatedBus({
      protocol: 'modbus',
      baudRate: 19_200,
      parity: 'even',
      stopBits: 1,
      pacing: 'none',
      devices: [{ address: 1, kind: 'gatehouse-io', hwId: 'IO-1' }],
    }),
  );
  const factory = await makeFactory();
  const device: Device = await factory.makeDevice(ENCODER);
  const ports = [await freePort(), await freePort()] as const;
  let ca = '';
  let token: string | undefined;
  let encoder: SiteEncoder | undefined;
  const open = stack.move();
  const baseUrl = `https://${NAME}:${ports[0]}`;
  const ask = (method: string, path: string, body?: unknown) =>
    call({ method, url: baseUrl + path, ca, body, ...(token !== undefined && { token }) });
  async function until<T>(path: string, wanted: (body: Record<string, unknown>) => T | undefined) {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await ask('GET', path).catch((error: Error) => error);
      const found = answer instanceof Error || answer.status !== 200 ? undefined : wanted(answer.body);
      if (found !== undefined) return found;
      if (performance.now() > deadline)
        throw new Error(`${path} did not say what is waited for: ${JSON.stringify(answer)}`);
      await sleep(LOOK_MS);
    }
  }
  return {
    bus,
    ports,
    name: NAME,
    vendorRoot: factory.root,
    call: ask,
    until,
    connected: () =>
      until(
        `/encoder/${ENCODER}`,
        ({ connectionState }) => (connectionState as { connected: boolean }).connected || undefined,
      ).then(() => undefined),
    trust(root) {
      ca = root;
    },
    useToken(next) {
      token = next;
    },
    async registerEncoder() {
      if (token === undefined) throw new Error('there is no token yet');
      const request = { baseUrl, ca, token, encoderId: ENCODER, device, vendorKey: VENDOR_KEY };
      const bundle = await patiently(() => register(request));
      encoder = open.use(await openSiteEncoder({ directory: join(folder, ENCODER), bundle, device }));
      encoder.start();
    },
    encoder() {
      if (!encoder) throw new Error('the encoder is not registered yet');
      return encoder;
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** A request of an emulated machine may take longer than anyone waits for a real one. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(LOOK_MS);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
