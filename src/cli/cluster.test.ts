/** gatehouse cluster: what it says to an operator while NATS is not there yet. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../test/services/events/mosquitto.ts';
import { natsMissing, openNats } from '../../test/services/events/nats.ts';
import { testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { systemClock } from '../platform/clock.ts';
import { openVault } from '../platform/vault.ts';
import { promote, showCluster } from './cluster.ts';
import { openClusterParts } from './cluster-member.ts';

const NEVER = new AbortController().signal;

it.skipIf(natsMissing)('takes the word of an operator also while the servers of NATS begin', async () => {
  const folder = temporaryFolder();
  const keys = join(folder, 'data', 'keys');
  mkdirSync(keys, { recursive: true });
  chmodSync(keys, 0o700);
  openVault(join(keys, 'vault.key'));
  const config = join(folder, 'gatehouse.yaml');
  const port = await freePort();
  const cluster = { name: 'a', urls: [`nats://127.0.0.1:${port}`], replicas: 1 as const };
  writeFileSync(config, JSON.stringify({ dataDirectory: 'data', cluster }));
  const shell = testShell({ clock: systemClock });

  await expect(showCluster({ config }, shell)).rejects.toThrow('NATS does not answer: ');
  const promoted = promote({ config, yes: true }, shell);
  await using _nats = await openNats(folder, { port });
  const settings = { ...cluster, bucket: 'gatehouse', durability: 'local' as const };
  const parts = openClusterParts({
    cluster: settings,
    dataDirectory: join(folder, 'data'),
    clock: systemClock,
  });
  onTestFinished(() => parts.client[Symbol.dispose]());
  const written = async () => {
    const { wanted } = await parts.bucket.read(NEVER).catch(() => ({ wanted: undefined }));
    return wanted?.value;
  };
  await expect.poll(written, { timeout: 15_000 }).toEqual({ active: 'a', force: true, after: 0 });
  // As the gateway does that has waited for it.
  const instance = '11111111-2222-4333-8444-555555555555';
  const lease = { site: parts.identity.site, epoch: 1, holder: 'a', instance, version: '1' };
  await parts.bucket.write('lease', { ...lease, standby: null, released: false, beat: 0 }, 0, NEVER);
  await promoted;
  expect(shell.written.stdout).toContain('a is active (epoch 1)');

  await showCluster({ config }, shell);
  expect(shell.written.stdout).toContain('a was active (epoch 1) and is not heard');
});
