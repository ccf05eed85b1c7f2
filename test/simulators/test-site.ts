/** A whole site for one test: the real daemon, a notification broker, a factory, and encoders as they are added. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Answer, type Daemon, type DaemonOptions, openDaemon, ROLES, type Role } from './daemon.ts';
import type { Timings } from './encoder/commands.ts';
import { type Factory, makeFactory } from './encoder/factory.ts';
import { type Bundle, register } from './encoder/registration.ts';
import { openSiteEncoder, type SiteEncoder } from './site.ts';
import { openUpstream, type Upstream } from './upstream.ts';

export interface TestSite extends AsyncDisposable {
  readonly directory: string;
  readonly daemon: Daemon;
  readonly upstream: Upstream;
  readonly factory: Factory;
  readonly factoryFiles: { caCert: string; caKey: string };
  readonly tokens: Record<Role, string>;
  /** Registers with a new operational key. */
  register(encoderId: string): Promise<Bundle>;
  /** Registers and prepares an encoder, closed with the site; `start` starts it. */
  addEncoder(encoderId: string, options?: AddEncoderOptions): Promise<SiteEncoder>;
  requestWrite(encoderId: string, requestId: string, entries: KeyData[]): Promise<Answer>;
}

export interface AddEncoderOptions {
  timings?: Partial<Timings>;
  endlessCards?: boolean;
}

export interface KeyData {
  keyId: string;
  blocks: string[];
}

/** Defaults of the configuration. */
export const VENDOR_KEY = 'vendor';

export async function openTestSite(
  options: Pick<DaemonOptions, 'config' | 'environment' | 'more' | 'simulatesLinks'> = {},
): Promise<TestSite> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-site-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const factory = await makeFactory();
  const factoryFiles = await factory.save(join(directory, 'factory'));
  const upstream = stack.use(await openUpstream());
  const daemon = stack.use(
    await openDaemon({
      directory,
      http: { host: '127.0.0.1', port: 0 },
      mqtt: { host: '127.0.0.1', port: 0 },
      vendorRoots: [factoryFiles.caCert],
      upstreamUrl: upstream.url,
      ...options,
    }),
  );
  await daemon.start();
  const tokens = {} as Record<Role, string>;
  for (const role of ROLES) tokens[role] = await daemon.createToken(role);
  const opened = stack.move();

  const registerDevice = async (encoderId: string) => {
    const device = await factory.makeDevice(encoderId);
    const bundle = await register({
      baseUrl: daemon.baseUrl,
      ca: readFileSync(daemon.caFile, 'utf8'),
      token: tokens['service-tool'],
      encoderId,
      device,
      vendorKey: VENDOR_KEY,
    });
    return { device, bundle };
  };
  return {
    directory,
    daemon,
    upstream,
    factory,
    factoryFiles,
    tokens,
    register: async (encoderId) => (await registerDevice(encoderId)).bundle,
    async addEncoder(encoderId, encoderOptions = {}) {
      const registered = await registerDevice(encoderId);
      const encoder = await openSiteEncoder({
        directory: join(directory, 'encoders', encoderId),
        ...registered,
        ...encoderOptions,
      });
      return opened.use(encoder);
    },
    requestWrite: (encoderId, requestId, data) =>
      daemon.call('PUT', `/encoder/${encoderId}/write-request/${requestId}`, tokens['front-desk'], { data }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export function drawKeys(keyIds: string[]): KeyData[] {
  return keyIds.map((keyId) => ({ keyId, blocks: [randomBytes(16).toString('hex')] }));
}
