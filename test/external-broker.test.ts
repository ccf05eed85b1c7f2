/** The whole daemon with a broker of the site between it and its encoders: mosquitto, whose accounts it keeps. */
import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import type { Status } from '../src/services/status/schema.ts';
import { opensslIsMissing, openTestAuthority } from './drivers/encoder/certificates.ts';
import { openEncoderMosquitto } from './drivers/encoder/mosquitto.ts';
import { mosquittoMissing } from './services/events/mosquitto.ts';
import { INSTANT } from './simulators/encoder/commands.ts';
import { drawKeys, openTestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';
import { temporaryFolder } from './temporary.ts';

const WAIT = { timeout: 25_000, interval: 20 };
const KEYS = [1, 2, 3].map((index) => `00000000-0000-4000-8000-00000000000${index}`);

it.skipIf(opensslIsMissing || mosquittoMissing)(
  'keys are written through it, before and after it was killed; a revoked encoder stays out',
  async () => {
    using authority = openTestAuthority('Broker');
    const folder = temporaryFolder();
    const gateway = authority.client('/CN=gatehouse');
    await using broker = await openEncoderMosquitto(folder, authority, ['gatehouse']);
    const [address] = broker.addresses();
    const config = {
      encoders: {
        broker: {
          urls: [`mqtts://127.0.0.1:${address?.port}`],
          caFile: authority.rootFile,
          certFile: gateway.certFile,
          keyFile: gateway.keyFile,
          administration: 'mosquitto-dynsec',
        },
      },
    };
    await using site = await openTestSite({ config });
    // The daemon made its CA at its first start.
    await broker.trust(readFileSync(site.daemon.caFile, 'utf8'));
    const status = async () =>
      (await site.daemon.callLocally('GET', '/local/status')).body.encoders as Status['encoders'];
    await vi.waitFor(async () => expect((await status()).broker.url).not.toBeNull(), WAIT);
    const encoder = await site.addEncoder('desk-1', { timings: INSTANT });
    encoder.start();
    const write = async (requestId: string, index: number) => {
      const keys = drawKeys([KEYS[index] ?? '']);
      await vi.waitFor(
        async () => expect((await site.requestWrite('desk-1', requestId, keys)).status).toBe(202),
        WAIT,
      );
      const end = await site.upstream.waitFor(
        (event) => isTerminalEvent(event) && event.data.requestId === requestId,
      );
      expect(end.data.status).toBe('written');
    };
    await write('r-1', 0);
    await broker.restart();
    await write('r-2', 1);
    await site.daemon.call('POST', '/encoder/desk-1/revoke', site.tokens['service-tool']);
    expect((await site.requestWrite('desk-1', 'r-3', drawKeys([KEYS[2] ?? '']))).status).toBe(422);
    expect(await status()).toMatchObject({ connected: 0, revoked: 1, broker: { administrationError: null } });
  },
  180_000,
);
