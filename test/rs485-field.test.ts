/** RS-485 devices end to end, on a bus that a host process plays: found, scanned, fired, heard. */
import { expect, it, vi } from 'vitest';
import { PINS } from '../drivers/contract/settings.ts';
import { CALLER, DEVICE, openFieldSite } from './field-site.ts';

const ioPins = Object.fromEntries(PINS.map((pin) => [pin, false]));
const FIRED = { ioPins, relayIndex: 2, unlockDurationMilliseconds: 1_250, useInputPinMemory: false };
const waitFor = <T>(condition: () => T) => vi.waitFor(condition, { interval: 10 });
type FieldSite = Awaited<ReturnType<typeof openFieldSite>>['first'];

const rows = ({ rs485 }: FieldSite) => rs485.list({ limit: 100 }).items;
const idOf = (site: FieldSite, hwId: string) =>
  rows(site).find((device) => device.hwId === hwId)?.deviceId ?? '';
const scan = async ({ rs485 }: FieldSite, body: object) =>
  (await rs485.scan({ repeats: 1, ...body }, CALLER)) as { id: string };
const job = ({ jobs }: FieldSite, id: string) => jobs.get(id, CALLER.principal);

it('devices are found by what they say, by a scan, and polled from then on, also in a new host', async () => {
  const { first } = await openFieldSite([
    { kind: 'rs485', hwId: 'io-1', address: 1 },
    { kind: 'rs485', hwId: 'loud', address: 2 },
    { kind: 'rs485', hwId: 'quiet', address: 3, quiet: true },
  ]);
  await waitFor(() =>
    expect(
      rows(first)
        .map(({ hwId }) => hwId)
        .toSorted(),
    ).toEqual(['io-1', 'loud']),
  );
  const { id } = await scan(first, { from: 0, to: 31 });
  await waitFor(() =>
    expect(job(first, id)).toMatchObject({
      kind: 'rs485-scan',
      status: 'done',
      progress: { done: 32, total: 32, percent: 100 },
      result: {
        addresses: [
          { address: 1, answered: true, deviceId: DEVICE, isNew: false },
          { address: 2, answered: true, isNew: false },
          { address: 3, answered: true, isNew: true, identity: { hwId: 'quiet' } },
        ],
      },
    }),
  );
  const quiet = idOf(first, 'quiet');
  const isHeard = () =>
    waitFor(() => expect(first.rs485.get(quiet).device.connectionState.connected).toBe(true));
  await isHeard();
  first.killHost('buses');
  await waitFor(() => expect(first.rs485.get(quiet).device.connectionState.connected).toBe(false));
  await isHeard();
  expect(first.rs485.buses.overview()).toMatchObject([
    { id: 'bus-1', up: true, devices: [{ deviceId: DEVICE }, { hwId: 'loud' }, { hwId: 'quiet' }] },
  ]);
});

it('a scan is one at a time on its bus, ends when it is cancelled, and says so when the gateway ended', async () => {
  const slow = [1, 20].map((address) => ({
    kind: 'rs485',
    hwId: `slow-${address}`,
    address,
    delayMs: 1_000,
  }));
  const { first, open } = await openFieldSite(slow);
  await waitFor(() => expect(first.rs485.buses.overview()).toMatchObject([{ up: true }]));
  const { id } = await scan(first, { from: 0, to: 31 });
  await expect(scan(first, {})).rejects.toMatchObject({ code: 'IN_PROGRESS' });
  await waitFor(() => expect(job(first, id).progress).toMatchObject({ done: 16, total: 32 }));
  await first.jobs.cancel(id, CALLER);
  await waitFor(() => expect(job(first, id)).toMatchObject({ status: 'cancelled', result: null }));
  // What the cancelled one found stays.
  await waitFor(() => expect(rows(first).map(({ hwId }) => hwId)).toContain('slow-1'));

  const second = await scan(first, { from: 0, to: 31 });
  await first.close();
  const again = await open();
  expect(job(again, second.id)).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } });
  await waitFor(() => expect(again.rs485.buses.overview()).toMatchObject([{ up: true }]));
  const third = await scan(again, { from: 1, to: 1 });
  await waitFor(() => expect(job(again, third.id).status).toBe('done'));
});

it('a pulse fires once: confirmed, refused, or unknown when the host dies in the middle', async () => {
  const { first } = await openFieldSite([
    { kind: 'rs485', hwId: 'io-1', address: 1, version: 1 },
    { kind: 'rs485', hwId: 'gate', address: 2, version: 1, settings: FIRED },
  ]);
  await waitFor(() => expect(idOf(first, 'gate')).not.toBe(''));
  const gate = idOf(first, 'gate');
  await waitFor(() => expect(first.rs485.get(gate).device.connectionState.connected).toBe(true));
  expect(await first.rs485.pulse(gate, CALLER)).toEqual({
    relay: 2,
    milliseconds: 1_300,
    outcome: 'confirmed',
    timedBy: 'device',
  });
  await waitFor(() =>
    expect(first.rs485.state(gate)).toMatchObject({
      levels: { output2: true },
      pulse: { relay: 2 },
      effectiveUnlockMilliseconds: 1_300,
    }),
  );
  await waitFor(() => expect(first.rs485.state(gate)).toMatchObject({ levels: {}, pulse: null }));

  await first.behave('bus-1', 'gate', { behaviour: 'refuse' });
  await expect(first.rs485.pulse(gate, CALLER)).rejects.toMatchObject({ code: 'NO_RELAY' });
  await first.behave('bus-1', 'gate', { behaviour: 'hang' });
  const firing = first.rs485.pulse(gate, CALLER);
  await waitFor(() => expect(first.audits.at(-1)).toMatchObject({ outcome: 'accepted' }));
  first.killHost('buses');
  expect(await firing).toMatchObject({ relay: 2, outcome: 'unknown', timedBy: null });
  await waitFor(() => expect(first.rs485.get(gate).device.connectionState.connected).toBe(false));
  await expect(first.rs485.pulse(gate, CALLER)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  await waitFor(() => expect(first.rs485.get(gate).device.connectionState.connected).toBe(true));
  expect(first.rs485.state(gate)).toMatchObject({ pulse: null, levels: {} });
  const outcomes = first.audits
    .filter(({ action }) => action === 'rs485.pulse')
    .map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['accepted', 'done', 'accepted', 'failed', 'accepted', 'unknown']);
});

it('inputs and alarms are published once, and a restart of the gateway is no change of a device', async () => {
  const { first, open } = await openFieldSite([{ kind: 'rs485', hwId: 'io-1', address: 1 }]);
  const connection = (site: FieldSite) => site.rs485.get(DEVICE).device.connectionState;
  const eventsOf = ({ published }: FieldSite) => published.filter(({ subject }) => subject === DEVICE);
  await waitFor(() => expect(eventsOf(first)).toMatchObject([{ data: { connected: true } }]));
  const since = connection(first);
  const { signal } = new AbortController();
  const emit = (site: FieldSite, kind: string, data: object) =>
    site.field.execute('bus-1', { kind, data: { hwId: 'io-1', ...data }, timeoutMs: 5_000 }, signal);
  await emit(first, 'press', { input: 'input1', times: 3 });
  await emit(first, 'alarm', { alarm: 'tamper', raised: true, id: 'opened' });
  await emit(first, 'alarm', { alarm: 'tamper', raised: true, id: 'opened' });
  expect(eventsOf(first).slice(1)).toMatchObject([
    {
      type: 'gatehouse.rs485.input.v1',
      subject: DEVICE,
      data: { input: 'input1', activations: 3, total: 3 },
    },
    { type: 'gatehouse.rs485.alarm.v1', subject: DEVICE, data: { alarm: 'tamper', raised: true } },
  ]);
  await waitFor(() => expect(first.rs485.state(DEVICE).edges).toMatchObject({ input1: { total: 3 } }));
  await first.close();

  const second = await open();
  await waitFor(() => expect(connection(second)).toEqual(since));
  await emit(second, 'alarm', { alarm: 'tamper', raised: true, id: 'opened' });
  expect(eventsOf(second)).toEqual([]);
});
