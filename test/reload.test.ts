/** The configuration read again while a gateway runs, with the host processes of its links. */
import { writeFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import type { ConfigInput } from '../src/platform/config/config.ts';
import type { Status } from '../src/services/status/schema.ts';
import { openTestGateway, type TestGateway } from './gateway.ts';
import { testShell } from './shell.ts';

const NETWORK = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
const GATEWAY = '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40';
const link = (id: string, options: Record<string, unknown> = {}) => ({ id, protocol: 'loopback', options });
const HTTP = { listen: '127.0.0.1:0', plain: true };
const BASE = { dataDirectory: 'data', http: HTTP, encoders: { listen: '127.0.0.1:0' } };

const statusOf = async ({ local }: TestGateway) => JSON.parse(await local('GET', '/local/status')) as Status;
const linkOf = async (site: TestGateway, id: string) =>
  (await statusOf(site)).field.links.find((one) => one.id === id);
const isUp = (site: TestGateway, id: string) =>
  vi.waitFor(async () => expect(await linkOf(site, id)).toMatchObject({ up: true }), { timeout: 20_000 });
async function reload({ configFile, local }: TestGateway, changes: ConfigInput | string) {
  const text = typeof changes === 'string' ? changes : JSON.stringify({ ...BASE, ...changes });
  writeFileSync(configFile, text);
  return JSON.parse(await local('POST', '/local/reload'));
}

it('opens what is new, closes what is gone and opens again what has changed; other links go on', async () => {
  const site = await openTestGateway({ links: [link('a') as never, link('b') as never] });
  await isUp(site, 'a');
  await isUp(site, 'b');
  const before = await statusOf(site);

  const added = await reload(site, { links: [link('a'), link('b'), link('c')] as never });
  expect(added).toEqual({ opened: ['c'], reopened: [], closed: [], needsRestart: [] });
  await isUp(site, 'c');
  const buses = JSON.parse(
    await site.lan('/network/rs485/buses', await site.token('service-tool')).then((answer) => answer.text()),
  );
  expect(buses.items.map(({ id }: { id: string }) => id)).toEqual(['a', 'b', 'c']);

  const changed = await reload(site, {
    links: [link('a'), link('c', { devices: [{ hwId: 'x', kind: 'rs485' }] })] as never,
  });
  expect(changed).toEqual({ opened: [], reopened: ['c'], closed: ['b'], needsRestart: [] });
  await isUp(site, 'c');
  const after = await statusOf(site);
  expect(after.field.links.map(({ id }) => id)).toEqual(['a', 'c']);
  // The same process, and the link has never been down.
  expect(after.field.hosts).toMatchObject([{ id: 'field', pid: before.field.hosts[0]?.pid, restarts: 0 }]);
  expect(after.field.links[0]).toEqual(before.field.links[0]);
  const audited = JSON.parse(
    await site.lan('/audit?limit=10', await site.token('service-tool')).then((answer) => answer.text()),
  );
  expect(audited.items.map(({ action }: { action: string }) => action)).toContain('configuration.reload');
}, 60_000);

it('has a network and a gateway that are new, each on a host process of its own, and ends that of one that is gone', async () => {
  const site = await openTestGateway({ links: [link('a') as never] });
  await isUp(site, 'a');
  const zigbee = { ...link('zb'), host: 'zb' };
  const gateway = { deviceId: GATEWAY, link: 'zb', networkId: NETWORK };
  await reload(site, { links: [link('a'), zigbee] as never, networks: [{ id: NETWORK }], zgates: [gateway] });
  await isUp(site, 'zb');
  const bearer = await site.token('service-tool');
  const read = async (path: string) => (await site.lan(path, bearer)).json();
  expect(await read(`/network/zgate/${GATEWAY}`)).toMatchObject({ networkId: NETWORK });
  expect(await read(`/network/state/${NETWORK}`)).toMatchObject({ declared: true });
  expect(await read('/network/rs485/buses')).toMatchObject({ items: [{ id: 'a' }] });

  expect(await reload(site, { links: [link('a')] as never })).toMatchObject({ closed: ['zb'] });
  expect((await statusOf(site)).field.hosts.map(({ id }) => id)).toEqual(['field']);
  expect(await read(`/network/zgate/${GATEWAY}/state`)).toMatchObject({ linkUp: null });
}, 60_000);

it('changes nothing by a faulty file, and says why until it is mended', async () => {
  const site = await openTestGateway({ links: [link('a') as never] });
  const refused = await reload(site, 'links:\n  - { id: a, protocol: lopback }\n');
  expect(refused).toMatchObject({
    error: 'CONFIGURATION_INVALID',
    message: expect.stringMatching(/gatehouse\.yaml:2:.*did you mean "loopback"/),
  });
  const { configuration, field } = await statusOf(site);
  expect(configuration.error).toMatch(/did you mean "loopback"/);
  expect(field.links).toMatchObject([{ id: 'a' }]);
  await reload(site, { links: [link('a')] as never });
  expect((await statusOf(site)).configuration).toMatchObject({ error: null, needsRestart: [] });
}, 60_000);

it('names settings that wait for a restart, until the file has the old ones again', async () => {
  const site = await openTestGateway();
  const changes = { http: { ...HTTP, listen: '127.0.0.1:1', requestBurst: 7 }, log: { level: 'debug' } };
  const answer = await reload(site, changes as never);
  expect(answer.needsRestart).toEqual(['http.listen', 'http.requestBurst', 'log.level']);
  expect((await statusOf(site)).configuration.needsRestart).toEqual(answer.needsRestart);
  expect(await reload(site, {})).toMatchObject({ needsRestart: [] });
}, 60_000);

it('leaves the daemon within reach of the command line while its file has a mistake, which status repeats', async () => {
  const site = await openTestGateway({ adminSocket: 'admin.sock' });
  for (const mistake of ['htpp: {}', 'log: "unclosed']) {
    await reload(site, `adminSocket: admin.sock\ndataDirectory: data\n${mistake}\n`);
    const shell = testShell();
    expect(await run(['status', '--config', site.configFile], shell)).toBe(0);
    expect(shell.written.stdout).toMatch(/✗ {2}reload +the last one changed nothing: .*gatehouse\.yaml:3:/);
    expect(shell.written.stderr).toMatch(/gatehouse\.yaml has mistakes \(gatehouse config check\)/);
  }
});
