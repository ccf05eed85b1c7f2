/** GET /metrics of a whole gateway: who may read it, and what it says. */
import { expect, it } from 'vitest';
import { openTestGateway } from './gateway.ts';

const gateway = () => openTestGateway({ links: [{ id: 'check', protocol: 'loopback' }] });

/** Series → value. Throws at a line that is neither a comment nor a sample (Prometheus text format 0.0.4). */
function parsed(exposition: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of exposition.split('\n')) {
    if (line === '' || /^# (HELP|TYPE) [a-z_0-9]+ ./.test(line)) continue;
    const sample = /^([a-z_0-9]+(?:\{(?:[a-z]+="[^"\\]*",?)+\})?) (-?[0-9.e+-]+|NaN|Nan|\+Inf)$/.exec(line);
    if (!sample?.[1] || samples.has(sample[1])) throw new Error(`not a sample of its own: ${line}`);
    samples.set(sample[1], Number(sample[2]));
  }
  return samples;
}

it('is for anyone who administers the host, and for a token with the role monitor', async () => {
  const { local, token, lan } = await gateway();
  expect(await local('GET', '/metrics')).toMatch(/^# HELP gatehouse_info /);
  expect((await lan('/metrics')).status).toBe(401);
  expect((await lan('/metrics', await token('pms'))).status).toBe(403);
  expect((await lan('/status', await token('pms'))).status).toBe(403);
  expect((await lan('/status', await token('monitor'))).status).toBe(200);
  const answer = await lan('/metrics', await token('monitor'));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(await answer.text()).toMatch(/^# HELP gatehouse_info /);
});

it('counts requests by the pattern of their path, and shows the state of the installation', async () => {
  const { local, token, lan } = await gateway();
  const pms = await token('pms');
  for (const id of ['a', 'b', 'c']) expect((await lan(`/encoder/desk-${id}`, pms)).status).toBe(404);
  const scraped = async () => parsed(await local('GET', '/metrics'));
  // Until the link is up, its reason is one series more.
  await expect.poll(async () => (await scraped()).get('gatehouse_link_up{link="check"}')).toBe(1);
  const samples = await scraped();
  const labels = 'method="GET",route="/encoder/{encoderId}",status="404"';
  const requests = 'gatehouse_http_request_duration_seconds';
  expect(samples.get(`${requests}_count{${labels}}`)).toBe(3);
  expect(samples.get(`${requests}_bucket{${labels},le="+Inf"}`)).toBe(3);
  expect(samples.get('gatehouse_commit_duration_seconds_count')).toBeGreaterThan(1);
  expect(samples.get('gatehouse_commit_jobs_sum')).toBeGreaterThan(1);
  expect(samples.get('gatehouse_encoders_registered')).toBe(0);
  expect(samples.get('gatehouse_settings_waiting{kind="doors"}')).toBe(0);
  expect(samples.get('gatehouse_settings_refused{kind="rs485"}')).toBe(0);
  expect(samples.get('gatehouse_doors_by_presence{presence="unknown"}')).toBe(0);
  expect(samples.get('gatehouse_jobs_running')).toBe(0);
  expect(samples.get('gatehouse_key_write_duration_seconds_count{outcome="failed"}')).toBe(0);
  for (const name of ['battery', 'lqi'])
    expect(samples.get(`gatehouse_locks_by_${name}{level="unknown"}`)).toBe(0);
  expect(samples.get('gatehouse_locks_by_charge{percent="80-100"}')).toBe(0);
  expect(samples.get('gatehouse_disk_space{space="plenty"}')).toBe(1);
  expect(samples.get('gatehouse_database_check{verdict="pending"}')).toBe(1);
  expect(samples.get('gatehouse_certificate_remaining_seconds{certificate="server"}')).toBeGreaterThan(
    30 * 86_400,
  );
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e7);
  expect(samples.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
  // Asked again it says the same things, not each of them twice.
  const again = await scraped();
  for (const key of samples.keys()) if (key.startsWith('gatehouse_')) expect(again.has(key), key).toBe(true);
});

it('moves when a relay is fired', async () => {
  const options = { reportEveryMs: 50, devices: [{ kind: 'rs485', hwId: 'io-1' }] };
  const { local } = await openTestGateway({ links: [{ id: 'bus-1', protocol: 'loopback', options }] });
  const scraped = async () => parsed(await local('GET', '/metrics'));
  const firstDevice = async () => JSON.parse(await local('GET', '/network/rs485')).items?.[0]?.deviceId;
  await expect.poll(firstDevice).toBeTypeOf('string');
  const device = `/network/rs485/${await firstDevice()}`;
  await expect.poll(() => local('PUT', device, { relayIndex: 0 })).toContain(`"relayIndex":0`);
  const pulse = `${device}/pulse`;
  await expect.poll(() => local('POST', pulse)).toContain('"outcome":"confirmed"');
  const fired = 'gatehouse_actuation_duration_seconds_count{action="rs485.pulse",way="rs485",outcome="done"}';
  const samples = await scraped();
  expect(samples.get(fired)).toBe(1);
  expect(samples.get(fired.replace('done', 'unknown'))).toBe(0);
  const bus = 'gatehouse_bus_command_duration_seconds_count{bus="bus-1"}';
  await expect.poll(async () => (await scraped()).get(bus)).toBe(0);
});

it('warns of a token from two weeks before its end: in the metrics, the status and an event', async () => {
  const { local } = await gateway();
  const create = async (label: string, expiresInDays: number) =>
    JSON.parse(await local('POST', '/tokens', { label, roles: ['pms'], expiresInDays })).id as string;
  const [ending, lasting] = [await create('PMS', 14), await create('Bar', 15)];
  const remaining = [...parsed(await local('GET', '/metrics'))].filter(([name]) =>
    name.startsWith('gatehouse_token_remaining_seconds'),
  );
  expect(remaining).toEqual([
    [`gatehouse_token_remaining_seconds{token="${ending}",label="PMS"}`, 13 * 86_400],
  ]);
  const { tokens } = JSON.parse(await local('GET', '/local/status')) as { tokens: object[] };
  expect(tokens).toEqual([expect.objectContaining({ id: ending, label: 'PMS', daysLeft: 13 })]);
  expect(JSON.stringify(tokens)).not.toContain(lasting);
});
