/** Doors on relays that stand open, on the real daemon and over each protocol. Devices keep clocks of their own. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CELLAR, LOBBY, openRs485Site, READERS, type Rs485Site, waitFor } from './rs485-site.ts';
import type { SimulatedBus } from './simulators/bus/bus.ts';

/** As the interface promises: by then a relay that no one looks after has let go. */
const LETS_GO_MS = 20_000;
const READER = '0a4748-1-4711';
const RELAY = 2;

interface Door {
  protocol: string;
  id: string;
  bus: SimulatedBus;
}

let all: Rs485Site;
let doors: Door[];

const call = (method: string, path: string, body?: object) => {
  const isWiring = path.startsWith('/network') || path.startsWith('/jobs');
  const token = all.site.tokens[isWiring ? 'service-tool' : 'front-desk-admin'];
  return all.site.daemon.call(method, path, token, body);
};
const state = async ({ id }: Door) => (await call('GET', `/access/doors/${id}/state`)).body;
const relay = async ({ bus }: Door) => (await bus.state(1)).outputs[`output${RELAY}`];
const openings = async ({ bus }: Door) =>
  (await bus.state(1)).history.filter(({ output, on }) => output === RELAY && !on).length;
const each = <T>(work: (door: Door) => Promise<T>) => Promise.all(doors.map(work));
const all3 = <T>(value: T) => doors.map(() => value);
const relaysAre = async (on: boolean) => waitFor(async () => expect(await each(relay)).toEqual(all3(on)));
const areHeld = () =>
  waitFor(async () => {
    for (const door of doors)
      expect(await state(door)).toMatchObject({ standingOpen: { on: true, failure: null } });
  });

beforeAll(async () => {
  all = await openRs485Site({ lobby: LOBBY, cellar: CELLAR, readers: READERS });
  const { lobby, cellar, readers } = all;
  if (!readers) throw new Error('no readers');
  await waitFor(() => all.device(READER));
  const { body } = await call('POST', '/network/rs485/buses/readers/pair', { address: 1, seconds: 30 });
  const { id: job } = body as { id: string };
  await waitFor(async () => expect((await call('GET', `/jobs/${job}`)).body.status).toBe('done'));
  const wired = [
    ['modbus', 'IO-1', lobby],
    ['dcon', 'cellar-01', cellar],
    ['osdp', READER, readers],
  ] as const;
  doors = await Promise.all(
    wired.map(async ([protocol, hwId, bus]) => {
      const id = String((await call('POST', '/access/doors', { name: protocol })).body.id);
      await all.configure(hwId, { doorId: id, relayIndex: RELAY, unlockDurationMilliseconds: 500 });
      // The gateway times its relay.
      if (protocol === 'dcon') await all.prove(hwId);
      return { protocol, id, bus };
    }),
  );
}, 90_000);
afterAll(() => all[Symbol.asyncDispose]());

const standOpen = () =>
  each(async ({ id }) =>
    expect(await call('POST', `/access/doors/${id}/stand-open`, { seconds: 3_600 })).toMatchObject({
      status: 200,
    }),
  );
const skip = () => each(({ bus }) => bus.setBus({ skipMs: LETS_GO_MS }));

it('stand open, unlocked or not', async () => {
  await each(({ id }) => call('PUT', `/access/doors/${id}`, { standOpenEnabled: true }));
  expect(await each(relay)).toEqual(all3(false));
  await standOpen();
  await areHeld();
  await relaysAre(true);
  const before = await each(openings);
  for (const { id } of doors)
    expect((await call('POST', `/access/doors/${id}/unlock`)).body).toMatchObject({
      outcome: 'confirmed',
      via: 'rs485',
    });
  expect([await each(relay), await each(openings)]).toEqual([all3(true), before]);
}, 60_000);

it('close by themselves when the bus is cut, and stand open again when it is back', async () => {
  await each(({ bus }) => bus.hangUp());
  await skip();
  expect(await each(relay)).toEqual(all3(false));
  await each(({ bus }) => bus.replug());
  await relaysAre(true);
  await areHeld();
}, 60_000);

it('close by themselves when no one lives to close them, and stand open again after a start', async () => {
  const host = all.hostPid();
  // Left alone, it would end the pulses as it goes.
  process.kill(host, 'SIGSTOP');
  await all.site.daemon.kill();
  process.kill(host, 'SIGKILL');
  expect(await each(relay)).toEqual(all3(true));
  await skip();
  expect(await each(relay)).toEqual(all3(false));
  await all.site.daemon.start();
  await relaysAre(true);
}, 60_000);

it('close when somebody ends it', async () => {
  const before = await each(openings);
  await each(({ id }) => call('DELETE', `/access/doors/${id}/stand-open`));
  await waitFor(async () => {
    for (const door of doors) expect((await state(door)).standingOpen).toBeNull();
  });
  await skip();
  await relaysAre(false);
  expect(await each(openings)).toEqual(before.map((count) => count + 1));
}, 60_000);
