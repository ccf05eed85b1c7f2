/** `gatehouse simulate` as a person starts it, in front of a daemon that runs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { freePort } from './free-port.ts';
import { type Child, openChild } from './simulators/child.ts';
import { drawKeys, openTestSite, type TestSite } from './simulators/test-site.ts';
import { waitFor } from './zigbee-site.ts';

const START = join(import.meta.dirname, '../src/start.js');
const GATEWAY = '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a01';
const NETWORK = 'd2f7c1b4-58e0-4c7d-b6a9-1e0f3a5c8d01';
const KEYS = ['6f0d2f0e-0a54-4f0e-8f63-0c4f0a6c0001', '6f0d2f0e-0a54-4f0e-8f63-0c4f0a6c0002'];
const EXIT_USAGE = 2;
const EXIT_NOT_RUNNING = 3;

type Said = Record<string, unknown>;

let site: TestSite;
let config: string;
// A daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

function simulate(...args: string[]): Child<Said> {
  const at = args.includes('--socket') ? [] : ['--config', config];
  return openChild<Said>({
    args: [START, 'simulate', ...args, ...at, '--json', '--data', join(site.directory, 'simulated')],
  });
}
/** What a person reads who is refused, and the exit code. */
async function refusal(...args: string[]): Promise<{ code: number | null; text: string }> {
  await using child = simulate(...args);
  const { code } = await child.exited;
  return { code, text: child.complaints.join('\n') };
}
async function interrupted(child: Child<Said>): Promise<number | null> {
  child.kill('SIGINT');
  return (await child.exited).code;
}
const technician = (method: string, path: string, body?: unknown) =>
  site.daemon.call(method, path, site.tokens['service-tool'], body);

describe('simulate', () => {
  beforeAll(async () => {
    const [bus, stick] = [await freePort(), await freePort()];
    const devices = [{ unitId: 1 }, { unitId: 2 }];
    const links = [
      { id: 'training', protocol: 'modbus', options: { port: `tcp://127.0.0.1:${bus}`, devices } },
      { id: 'floor-1', protocol: 'zigbee', options: { port: `tcp://127.0.0.1:${stick}` } },
    ];
    const zgates = [{ deviceId: GATEWAY, link: 'floor-1', networkId: NETWORK }];
    site = stack.use(await openTestSite({ more: { links, zgates, networks: [{ id: NETWORK }] } }));
    config = join(site.directory, 'gatehouse.yaml');
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('has devices on a bus of the configuration', async () => {
    await using child = simulate('bus', 'training');
    await child.waitFor(({ event }) => event === 'up');
    await waitFor(async () => {
      const { items } = (await technician('GET', '/network/rs485?bus=training&connected=true')).body;
      expect(items).toHaveLength(2);
    });
    expect(await interrupted(child)).toBe(0);
  });

  it('has locks that join where a technician lets them in', async () => {
    const page = { items: [] as { id: string }[] };
    let doors = page.items;
    await using child = simulate('zigbee', 'floor-1', '--locks', '2');
    await child.waitFor(({ event }) => event === 'up');
    await waitFor(async () => {
      const { body } = await technician('GET', `/network/zgate/${GATEWAY}`);
      expect(body).toMatchObject({ connectionState: { connected: true } });
    });
    expect(child.messages.filter(({ event }) => event === 'joined')).toEqual([]);
    const window = await technician('POST', `/network/zgate/${GATEWAY}/permit-join`, { seconds: 60 });
    expect(window.status).toBe(200);
    await waitFor(async () => {
      ({ items: doors } = (await technician('GET', '/access/doors?connected=true')).body as typeof page);
      expect(doors).toHaveLength(2);
    });
    await vi.waitFor(
      () => expect(child.messages.filter(({ event }) => event === 'joined')).toHaveLength(2),
      15_000,
    );
    await technician('POST', `/network/zgate/${GATEWAY}/permit-join`, { seconds: 0 });
    expect(await interrupted(child)).toBe(0);

    // As locks do that had no power for a while.
    await using again = simulate('zigbee', 'floor-1', '--locks', '2');
    await waitFor(async () => {
      const { body } = await technician('POST', `/access/doors/${doors[0]?.id}/unlock`);
      expect(body).toMatchObject({ outcome: 'confirmed' });
    });
    expect(await interrupted(again)).toBe(0);
  });

  it('has an encoder that writes what is put on it, once its maker is trusted', async () => {
    const untrusted = await refusal('encoder', 'desk-9');
    expect(untrusted.code).toBe(EXIT_USAGE);
    const root = join(site.directory, 'simulated/maker/ca.pem');
    expect(untrusted.text).toContain(`vendorRoots: [${site.factoryFiles.caCert}, ${root}]`);

    const settings = parse(readFileSync(config, 'utf8')) as { encoders: { vendorRoots: string[] } };
    settings.encoders.vendorRoots.push(root);
    writeFileSync(config, stringify(settings));
    await site.daemon.kill();
    await site.daemon.start();

    await using child = simulate('encoder', 'desk-9', '--no-cards');
    await child.waitFor(({ event }) => event === 'connected');
    const { status } = await site.requestWrite('desk-9', 'r-1', drawKeys(KEYS));
    expect(status).toBe(202);
    for (const keyId of KEYS) {
      await child.waitFor((one) => one.keyId === keyId && one.status === 'cardRequested');
      child.say({ do: 'card' });
      await child.waitFor((one) => one.keyId === keyId && one.status === 'written');
    }
    expect(await interrupted(child)).toBe(0);

    await using again = simulate('encoder', 'desk-9');
    await again.waitFor(({ event }) => event === 'connected');
    expect((await technician('GET', '/encoder/desk-9')).body).toMatchObject({
      metadata: { simulated: 'true' },
    });
    expect(await interrupted(again)).toBe(0);
  });

  it('has a message for the console to register, and takes its answer', async () => {
    const [message, answer] = ['message.json', 'answer.json'].map((name) => join(site.directory, name));
    await using first = simulate('encoder', 'desk-8', '--message', String(message));
    expect((await first.exited).code).toBe(0);
    const { id, ...body } = JSON.parse(readFileSync(String(message), 'utf8'));
    const registered = await technician('PUT', `/encoder/${id}`, body);
    expect(registered.status).toBe(200);
    writeFileSync(String(answer), JSON.stringify(registered.body));
    await using child = simulate('encoder', 'desk-8', '--credentials', String(answer));
    await child.waitFor(({ event }) => event === 'connected');
    expect(await interrupted(child)).toBe(0);
  });

  it('says what to write where a link is not there, and what is wrong with its arguments', async () => {
    const missing = await refusal('bus', 'cellar');
    expect(missing).toMatchObject({
      code: EXIT_USAGE,
      text: expect.stringContaining('port: tcp://127.0.0.1:5001'),
    });
    expect((await refusal('bus', 'floor-1')).code).toBe(EXIT_USAGE);
    expect((await refusal('bus', 'training', '--kind', 'i-7060')).text).toContain(
      'Expected --kind gatehouse-io',
    );
    expect((await refusal('zigbee', 'floor-1', '--locks', '51')).code).toBe(EXIT_USAGE);
    expect((await refusal('encoder', 'desk-9', '--socket', '/nowhere/admin.sock')).code).toBe(
      EXIT_NOT_RUNNING,
    );
  });

  it('is refused where a device is real, unless it is wanted all the same', async () => {
    await site.register('front-desk');
    const refused = await refusal('bus', 'training');
    expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('encoder front-desk') });
    // A link that is wired to a door: what runs is judged by the file, before anything is played.
    const settings = parse(readFileSync(config, 'utf8')) as { links: object[] };
    settings.links.push({ id: 'cellar', protocol: 'modbus', options: { port: '/dev/ttyS9', devices: [] } });
    writeFileSync(config, stringify(settings));
    expect((await refusal('zigbee', 'floor-1')).text).toContain('link cellar, encoder');
    // Not even then on the wire itself.
    expect(await refusal('bus', 'cellar', '--i-know')).toMatchObject({
      code: EXIT_USAGE,
      text: expect.stringContaining('a simulator listens on tcp://127.0.0.1 alone'),
    });
    await using child = simulate('bus', 'training', '--i-know');
    await child.waitFor(({ event }) => event === 'up');
    expect(await interrupted(child)).toBe(0);
  });
});
