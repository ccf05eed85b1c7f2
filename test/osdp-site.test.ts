/** OSDP end to end, on a simulated bus: a device is paired, and is spoken to in its secure channel from then on. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { readPcapng } from './pcapng-reader.ts';
import { waitFor } from './rs485-site.ts';
import { testShell } from './shell.ts';
import { openSimulatedBus } from './simulators/bus/bus.ts';
import { openTestSite } from './simulators/test-site.ts';

const PATH = '/network/rs485';
const NAME = '0a4748-1-4711';

async function openOsdpSite(device3: { keyRestartMs?: number } = {}, more: Record<string, unknown> = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-osdp-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const bus = stack.use(
    await openSimulatedBus({
      protocol: 'osdp',
      baudRate: 115_200,
      parity: 'none',
      stopBits: 1,
      pacing: 'cheap',
      link: join(folder, 'readers'),
      devices: [{ address: 3, kind: 'osdp-io', hwId: '4711', osdp: device3 }],
    }),
  );
  const options = { port: bus.port, baudRate: 115_200, pollEveryMs: 20, devices: [{ address: 3 }] };
  const links = [{ id: 'readers', protocol: 'osdp', options }];
  const site = stack.use(await openTestSite({ more: { links, ...more } }));
  const call = (
    method: string,
    path: string,
    body?: object,
    role: 'service-tool' | 'front-desk' | 'front-desk-admin' = 'service-tool',
  ) => site.daemon.call(method, path, site.tokens[role], body);
  const device = async () => {
    const { items } = (await call('GET', PATH)).body as { items: { deviceId: string; hwId: string }[] };
    const found = items.find(({ hwId }) => hwId === NAME);
    if (!found) throw new Error(`${NAME} was not found`);
    return (await call('GET', `${PATH}/${found.deviceId}`)).body as {
      deviceId: string;
      connectionState: { connected: boolean };
    };
  };
  const state = async () => (await call('GET', `${PATH}/${(await device()).deviceId}/state`)).body;
  const pair = async (seconds: number) => {
    const { status, body } = await call('POST', `${PATH}/buses/readers/pair`, { address: 3, seconds });
    expect(status).toBe(202);
    return waitFor(async () => {
      const job = (await call('GET', `/jobs/${(body as { id: string }).id}`)).body as { status: string };
      expect(job.status).not.toBe('running');
      return job;
    });
  };
  /** `gatehouse osdp pair`, as a technician types it. */
  const pairByHand = async (...argv: string[]) => {
    const { ended, written } = gatehouse(['osdp', 'pair', ...argv]);
    return { exitCode: await ended, ...written };
  };
  function gatehouse(argv: string[], stopping = new AbortController().signal) {
    const shell = testShell({ clock: systemClock, stopping });
    const socket = join(site.daemon.directory, 'admin.sock');
    return { ended: run([...argv, '--socket', socket], shell), written: shell.written };
  }
  const opened = stack.move();
  return {
    bus,
    site,
    call,
    device,
    state,
    pair,
    pairByHand,
    gatehouse,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

it('gives a device its key within a window, and keeps it, also over a new daemon', {
  timeout: 120_000,
}, async () => {
  await using osdp = await openOsdpSite();
  const { bus, site, call, device, state, pair, pairByHand } = osdp;
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'unpaired' }));
  expect((await device()).connectionState.connected).toBe(false);
  const refused = await call('POST', `${PATH}/buses/readers/pair`, { address: 3 }, 'front-desk');
  expect(refused.status).toBe(403);
  const unanswered = await pairByHand('readers', '9', '--seconds', '1');
  expect(unanswered).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no one answers at address 9'),
  });
  const byHand = await pairByHand('readers', '3', '--seconds', '20');
  expect(byHand).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`${NAME} has its key`) });
  expect(byHand.stderr).toContain('The window is open for 20 s');
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'secure', address: 3 }));
  await waitFor(async () => expect((await device()).connectionState.connected).toBe(true));
  expect(await bus.state(3)).toMatchObject({ isPaired: true, isSecure: true });

  await expectCardToBeMasked(osdp);

  await site.daemon.kill();
  await site.daemon.start();
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'secure' }));
  const { items } = (await call('GET', '/audit?limit=100')).body as {
    items: { action: string; outcome: string; detail: object }[];
  };
  const pairings = items.filter(({ action }) => action === 'rs485.pair');
  expect(pairings.map(({ outcome }) => outcome).toSorted()).toEqual([
    'accepted',
    'accepted',
    'done',
    'failed',
  ]);

  // Another one stands there now, with a key that no one here knows.
  await bus.set(3, { osdp: { key: '00112233445566778899aabbccddeeff' } });
  await bus.set(3, { restart: true });
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'none' }));
  expect(await pair(2)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('install mode') },
  });
  await bus.set(3, { osdp: { key: null } });
  expect(await pair(20)).toMatchObject({ status: 'done' });
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'secure' }));
});

it('keeps a device that was just sent its key when the daemon was killed: it proves that key to the next one', {
  timeout: 60_000,
}, async () => {
  await using osdp = await openOsdpSite({ keyRestartMs: 3_000 });
  const { bus, site, call, state } = osdp;
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'unpaired' }));
  await call('POST', `${PATH}/buses/readers/pair`, { address: 3, seconds: 60 });
  await waitFor(async () => expect(await bus.state(3)).toMatchObject({ isPaired: true }));
  await site.daemon.kill();
  await site.daemon.start();
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'secure', sessionFault: null }));
  const audited = async () => {
    const { items } = (await call('GET', '/audit?limit=100')).body as {
      items: { action: string; outcome: string }[];
    };
    return items.filter(({ action }) => action === 'rs485.pair').map(({ outcome }) => outcome);
  };
  // The kill left its outcome unknown, and what the device proved afterwards is recorded by the system.
  await waitFor(async () => expect((await audited()).toSorted()).toEqual(['accepted', 'done', 'unknown']));
  await site.daemon.kill();
  await site.daemon.start();
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'secure' }));
});

it('keeps the key of a device whose address was set at its switch, and which a scan found there', {
  timeout: 60_000,
}, async () => {
  await using osdp = await openOsdpSite();
  const { bus, call, device, state, pair } = osdp;
  const isConnected = async () => (await device()).connectionState.connected;
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'unpaired' }));
  expect(await pair(20)).toMatchObject({ status: 'done' });
  await waitFor(async () => expect(await isConnected()).toBe(true));
  await bus.set(3, { osdp: { address: 9 } });
  await waitFor(async () => expect(await isConnected()).toBe(false));
  const { body } = await call('POST', `${PATH}/scan`, { bus: 'readers', from: 9, to: 9 });
  await waitFor(async () =>
    expect((await call('GET', `/jobs/${(body as { id: string }).id}`)).body).toMatchObject({
      status: 'done',
    }),
  );
  await waitFor(async () => expect([await isConnected(), (await state()).address]).toEqual([true, 9]));
});

it('opens a door for the cards that its list or the service allows, and for its request to exit', {
  timeout: 60_000,
}, async () => {
  const service = await openDecisions();
  const access = { decisionService: { url: service.url } };
  await using osdp = await openOsdpSite({}, { access });
  const { bus, call, device, state, pair } = osdp;
  await waitFor(async () => expect(await state()).toMatchObject({ security: 'unpaired' }));
  expect(await pair(20)).toMatchObject({ status: 'done' });
  const { deviceId } = await waitFor(async () => {
    const found = await device();
    expect(found.connectionState.connected).toBe(true);
    return found;
  });
  const desk = 'front-desk-admin';
  const { id } = (await call('POST', '/access/doors', { name: 'lobby' }, desk)).body as { id: string };
  const settings = { doorId: id, relayIndex: 2, unlockDurationMilliseconds: 500, ioPins: { input1: true } };
  expect((await call('PUT', `${PATH}/${deviceId}`, settings)).status).toBe(200);
  const rules = { allowList: true, requestToExit: [{ deviceId, input: 'input1' }] };
  const setRules = async (body: object) =>
    expect((await call('PUT', `/access/doors/${id}/access-rules`, body, desk)).status).toBe(200);
  await setRules(rules);
  for (const bits of ['ffc12340', '0f0f0f40']) {
    const listed = { card: { bits, count: 26 }, doors: [id] };
    expect((await call('PUT', `/access/cards/${randomUUID()}`, listed, desk)).status).toBe(200);
  }
  /** Of the relay, once it has fallen open after the last. */
  const expectOpenings = (count: number) =>
    waitFor(async () => {
      const { history, outputs } = await bus.state(3);
      const closed = history.filter(({ output, on }) => output === 2 && on).length;
      expect([closed, outputs.output2]).toEqual([count, false]);
    });
  const decided = async () => {
    const { items } = (await call('GET', '/audit?action=door.access&limit=100')).body as {
      items: { outcome: string; detail: { reason?: string } }[];
    };
    return items.map(({ outcome }) => outcome).toReversed();
  };
  const present = (data: string) => bus.set(3, { osdp: { card: { bits: 26, data } } });
  const expectDecisions = (outcomes: string[]) =>
    waitFor(async () => expect(await decided()).toEqual(outcomes));

  await present('aaaaaa80');
  await expectDecisions(['refused']);
  await present('ffc12340');
  await expectOpenings(1);
  await bus.set(3, { inputs: { input1: true } });
  await expectOpenings(2);

  // The service is asked before the list, and its no is final.
  await setRules({ decisionService: true });
  await present('0f0f0f00');
  await expectOpenings(3);
  service.open = false;
  await present('0f0f0f40');
  await expectDecisions(['refused', 'accepted', 'accepted', 'accepted', 'refused']);
  expect(service.asked).toEqual(['0f0f0f00', '0f0f0f40']);
  // Where it is away the list decides.
  service.close();
  await present('ffc12340');
  await expectOpenings(4);
});

/** A decision service that allows each card while `open`. */
async function openDecisions() {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    asked.push(JSON.parse(await text(request)).bits);
    response.end(JSON.stringify({ open: service.open }));
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/decide`;
  const service = { url, asked, open: true, close };
  return service;
}

/** A trace that is decrypted shows that there was a card, and the audit that somebody has looked. */
async function expectCardToBeMasked({
  bus,
  site,
  call,
  gatehouse,
}: Awaited<ReturnType<typeof openOsdpSite>>) {
  const file = join(site.directory, 'decrypted.pcapng');
  const stop = new AbortController();
  const { ended, written } = gatehouse(['bus', 'trace', 'readers', '--decrypt', '--file', file], stop.signal);
  const packets = () => (existsSync(file) ? readPcapng(readFileSync(file)).packets : []);
  await waitFor(async () => expect(packets().length).toBeGreaterThan(2));
  await bus.set(3, { osdp: { card: { bits: 26, data: 'ffc12340' } } });
  const cards = () => packets().filter(({ comment }) => comment?.includes('a card or what was typed'));
  await waitFor(async () => expect(cards()).not.toEqual([]));
  stop.abort();
  expect(await ended, written.stderr).toBe(0);
  const [shown] = cards();
  expect(shown?.comment).toContain('decrypted: on the wire');
  // osdp_RAW of reader 0: format, 26 bits, and none of them.
  expect(shown?.data.toString('hex')).toMatch(/5383\w{4}\w{2}02165000011a0000000000/);
  const all = packets().map(({ data }) => data.toString('hex'));
  expect(all.join(' ')).not.toContain('ffc12340');
  await waitFor(async () => {
    const { items } = (await call('GET', '/audit?limit=20')).body as { items: { action: string }[] };
    const [done, accepted] = items.filter(({ action }) => action === 'rs485.trace');
    expect(accepted).toMatchObject({ outcome: 'accepted', detail: { decrypt: true } });
    expect(done).toMatchObject({ outcome: 'done', detail: { decrypted: expect.any(Number) } });
  });
}
