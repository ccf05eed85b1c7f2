/** gatehouse cluster: what it says to an operator while NATS is not there yet, and in the bucket of another site. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../test/free-port.ts';
import { natsMissing, openNats } from '../../test/services/events/nats.ts';
import { testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { systemClock } from '../platform/clock.ts';
import { openVault } from '../platform/vault.ts';
import { demote, promote, showCluster } from './cluster.ts';
import { openClusterParts } from './cluster-member.ts';

const NEVER = new AbortController().signal;

/** A gateway `a`, without NATS. `further`: ports of servers of it. */
async function openGateway(...further: number[]) {
  const folder = temporaryFolder();
  const keys = join(folder, 'data', 'keys');
  mkdirSync(keys, { recursive: true });
  chmodSync(keys, 0o700);
  openVault(join(keys, 'vault.key'));
  const config = join(folder, 'gatehouse.yaml');
  const port = await freePort();
  const urls = [port, ...further].map((one) => `nats://127.0.0.1:${one}`);
  const cluster = { name: 'a', urls, replicas: 1 as const };
  writeFileSync(config, JSON.stringify({ dataDirectory: 'data', cluster }));
  const settings = { ...cluster, bucket: 'gatehouse', durability: 'local' as const };
  const parts = openClusterParts({
    cluster: settings,
    dataDirectory: join(folder, 'data'),
    clock: systemClock,
  });
  onTestFinished(() => parts.client[Symbol.dispose]());
  const instance = '11111111-2222-4333-8444-555555555555';
  return {
    folder,
    config,
    port,
    shell: testShell({ clock: systemClock }),
    async wanted() {
      const { wanted } = await parts.bucket.read(NEVER).catch(() => ({ wanted: undefined }));
      return wanted?.value;
    },
    hold(holder: string, site = parts.identity.site) {
      const lease = { site, epoch: 1, holder, instance, version: '1', released: false, beat: 0 };
      return parts.bucket.write('lease', { ...lease, standby: 'b' }, undefined, NEVER);
    },
  };
}

it.skipIf(natsMissing)('takes the word of an operator also while the servers of NATS begin', async () => {
  const { folder, config, port, shell, wanted, hold } = await openGateway();
  await expect(showCluster({ config }, shell)).rejects.toThrow(
    /^NATS does not answer: .*NATS is away; .*NATS does not come back/,
  );
  const promoted = promote({ config, yes: true }, shell);
  await using _nats = await openNats(folder, { port });
  await expect.poll(wanted).toEqual({ active: 'a', force: true, after: 0 });
  // As the gateway does that has waited for it.
  await hold('a');
  await promoted;
  expect(shell.written.stdout).toContain('a is active (epoch 1)');
});

it.skipIf(natsMissing)('says what there is once the servers of NATS have a leader', async () => {
  const [second, monitor, own, other] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const { folder, config, port, shell } = await openGateway(second);
  const alone = `-m ${monitor} -n one --cluster_name site --cluster nats://127.0.0.1:${own} --routes nats://127.0.0.1:${other}`;
  await using _leaderless = await openNats(folder, { port, further: alone.split(' ') });
  const shown = showCluster({ config }, shell);
  const connections = async () => {
    const answer = await fetch(`http://127.0.0.1:${monitor}/varz`);
    return ((await answer.json()) as { total_connections: number }).total_connections;
  };
  await Promise.race([shown, expect.poll(connections).toBeGreaterThan(1)]);
  await using _led = await openNats(temporaryFolder(), { port: second });
  await shown;
  expect(shell.written.stderr).toContain('NATS does not answer yet');
  expect(shell.written.stdout).toContain('no gateway is active');
});

it.skipIf(natsMissing)('writes nothing into the bucket of another site', async () => {
  const { folder, config, port, shell, wanted, hold } = await openGateway();
  await using _nats = await openNats(folder, { port });
  await hold('lobby', 'another');
  const refusal = 'a is of another site than lobby, which has the bucket gatehouse';
  await expect(promote({ config, force: true, yes: true }, shell)).rejects.toThrow(refusal);
  await expect(promote({ config }, shell)).rejects.toThrow(refusal);
  // One of the same name.
  await hold('a', 'another');
  await expect(demote({ config }, shell)).rejects.toThrow('a is of another site than a');
  expect(await wanted()).toBeUndefined();
});
