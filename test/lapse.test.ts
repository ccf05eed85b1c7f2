/** A whole gateway that is the active one of a cluster: what it does while its lease cannot be renewed, and after it was. */
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { actingUntil } from '../src/platform/acting.ts';
import { systemClock } from '../src/platform/clock.ts';
import { openConnection } from '../src/platform/database/connection.ts';
import { openCommitment } from '../src/services/cluster/commitment.ts';
import { NotShipped } from '../src/services/cluster/kept.ts';
import type { Status } from '../src/services/status/schema.ts';
import { DOOR, LOCK, NETWORK, ZGATE } from './field-site.ts';
import { openTestGateway, type TestGateway } from './gateway.ts';
import { temporaryFolder } from './temporary.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };
const LINKS = {
  networks: [{ id: NETWORK }],
  links: [{ id: 'zb-1', protocol: 'loopback' as const }],
  zgates: [{ deviceId: ZGATE, link: 'zb-1', networkId: NETWORK }],
};

function untilFired(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Its lease and its JetStream are the test's. */
function membership(durability: 'local' | 'quorum' = 'local') {
  let until = Number.POSITIVE_INFINITY;
  let keep: () => Promise<void> = async () => undefined;
  let lastError: string | null = null;
  const clock = systemClock;
  const acting = actingUntil(() => until, 0, clock);
  const shipping = {
    written: () => undefined,
    run: (_: unknown, signal: AbortSignal) => untilFired(signal),
    kept: () => keep(),
    state: () => ({ shipped: 7, waitingBytes: 0, error: lastError }),
  };
  const commitment = openCommitment({ acting, durability, shipping, clock });
  const state = () => ({
    name: 'a',
    epoch: 3,
    acts: clock.monotonic() < until,
    durability,
    standby: { name: 'b', takesOver: true, reason: null, behind: 0, seenSeconds: 0.2 },
    waitingBytes: 0,
    lastError,
  });
  return {
    cluster: { acting, shipping, commitment, state },
    lapse: () => {
      until = clock.monotonic();
    },
    renew: () => {
      until = Number.POSITIVE_INFINITY;
    },
    loseNats: (error: string | null) => {
      lastError = error;
    },
    keep: (next: () => Promise<void>) => {
      keep = next;
    },
  };
}

const statusOf = async ({ local }: TestGateway) => JSON.parse(await local('GET', '/status')) as Status;
const linkIs = (gateway: TestGateway, up: boolean) =>
  vi.waitFor(async () => expect((await statusOf(gateway)).field.links).toMatchObject([{ up }]), PATIENCE);
const make = ({ local }: TestGateway, label: string) => local('POST', '/tokens', { label, roles: ['pms'] });

it('answers what is read alone and holds no link while its lease is not renewed, and goes on when it is', async () => {
  const { cluster, lapse, renew } = membership();
  const gateway = await openTestGateway(LINKS, temporaryFolder(), systemClock, cluster);
  await linkIs(gateway, true);
  expect(await make(gateway, 'before')).toContain('before');
  const { pid } = (await statusOf(gateway)).field.hosts[0] ?? {};

  lapse();
  await linkIs(gateway, false);
  await vi.waitFor(() => expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH'), PATIENCE);
  expect(await make(gateway, 'meanwhile')).toMatch(
    /STORAGE_UNAVAILABLE.*another one may be active.*Nothing was changed/,
  );
  expect(await gateway.local('GET', '/readyz')).toContain('STORAGE_UNAVAILABLE');
  expect(await gateway.local('GET', '/healthz')).toContain('ok');
  expect((await statusOf(gateway)).cluster).toMatchObject({ acts: false, epoch: 3 });
  expect(await gateway.local('GET', '/metrics')).toMatch(/^gatehouse_cluster_acts 0$/m);

  renew();
  await linkIs(gateway, true);
  expect(await make(gateway, 'after')).toContain('after');
  expect(await gateway.local('GET', '/tokens')).not.toContain('meanwhile');
  expect(await gateway.local('GET', '/metrics')).toMatch(/^gatehouse_cluster_standby_behind_messages 0$/m);
});

it('answers a change with quorum once JetStream has it, or says that it has not', async () => {
  const { cluster, keep, loseNats } = membership('quorum');
  const gateway = await openTestGateway({}, temporaryFolder(), systemClock, cluster);
  const acknowledged = Promise.withResolvers<void>();
  keep(() => acknowledged.promise);
  const answers: string[] = [];
  const made = make(gateway, 'kept').then((answer) => answers.push(answer));
  await vi.waitFor(async () => expect(await gateway.local('GET', '/tokens')).toContain('kept'), PATIENCE);
  expect(answers).toEqual([]);
  acknowledged.resolve();
  await made;
  expect(answers[0]).toContain('"token"');

  keep(() => Promise.reject(new NotShipped('no answer within 1000 ms')));
  expect(await make(gateway, 'perhaps')).toMatch(
    /STORAGE_UNAVAILABLE.*no answer within 1000 ms.*OUTCOME_UNKNOWN/s,
  );
  loseNats('no answer within 1000 ms');
  expect(await make(gateway, 'never')).toMatch(
    /STORAGE_UNAVAILABLE.*cluster\.durability is quorum.*Nothing was changed/,
  );
  const tokens = await gateway.local('GET', '/tokens');
  expect(tokens).toContain('perhaps');
  expect(tokens).not.toContain('never');
});

it('locks every lock once after a takeover, as what was opened since the copy only the other gateway knew', async () => {
  const folder = temporaryFolder();
  // The lock is none of the devices of the link: what it is to do waits.
  const before = await openTestGateway(LINKS, folder);
  const document = {
    doors: [{ id: DOOR, accessPointId: 1, mac: LOCK, gatewayId: ZGATE, networkId: NETWORK }],
  };
  await before.local('POST', '/site/import', { document });
  await vi.waitFor(async () => expect((await statusOf(before)).doors.registered).toBe(1), PATIENCE);
  await before.close();

  const { cluster } = membership();
  const takeover = { epoch: 3, from: 'b', recorded: vi.fn(async () => undefined) };
  const gateway = await openTestGateway(LINKS, folder, systemClock, cluster, takeover);
  using connection = openConnection(join(gateway.dataDirectory, 'gatehouse.db'));
  const closings = connection.prepare('SELECT door_id, reason FROM lock_closing').all();
  expect(closings).toMatchObject([{ door_id: DOOR, reason: expect.stringContaining('taken over from b') }]);
  expect(await gateway.local('GET', '/audit?action=cluster.takeover')).toContain('"from":"b"');
  expect(takeover.recorded).toHaveBeenCalledOnce();
});
