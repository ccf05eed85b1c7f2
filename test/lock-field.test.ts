/** Locks end to end, behind a gateway that a host process plays: heard of, configured, lost, reset. */
import { expect, it, vi } from 'vitest';
import { CALLER, DOOR, LOCK, openFieldSite, ZGATE } from './field-site.ts';

const waitFor = <T>(condition: () => T) => vi.waitFor(condition, { interval: 10 });
type FieldSite = Awaited<ReturnType<typeof openFieldSite>>['first'];

const state = ({ doors }: FieldSite) => doors.state(DOOR);
const inForce = (site: FieldSite) =>
  waitFor(() => {
    const { connection, configuration } = state(site);
    expect(connection).toMatchObject({ status: 'connected' });
    expect(configuration).toMatchObject({ inForce: true, reported: configuration.wanted });
  });
const statuses = ({ doors }: FieldSite) => doors.pending(DOOR).items.map(({ status }) => status);
const configured = ({ audits }: FieldSite) =>
  audits.filter(({ action, outcome }) => action === 'door.configure' && outcome === 'done').length;

it('a lock is configured, published to live readers, and configured again when it has forgotten all', async () => {
  const { first } = await openFieldSite();
  await inForce(first);
  await waitFor(() => {
    const published = first.published.map(({ type, data }) => [
      type,
      data.status ?? data.outcome ?? data.connected,
    ]);
    expect(published).toContainEqual(['gatehouse.door.applied.v1', 'applied']);
    expect(published).toContainEqual(['gatehouse.door.connection.v1', 'connected']);
    expect(published).toContainEqual(['gatehouse.zgate.connection.v1', true]);
  });
  expect(first.doors.counts()).toMatchObject({ registered: 1, connected: 1, disconnected: 0, unknown: 0 });
  const times = configured(first);
  await first.behave('zb-1', LOCK, { version: 0 });
  await waitFor(() => expect(configured(first)).toBe(times + 1));
  await inForce(first);
  expect(first.doors.reconciler.summary()).toEqual({ waiting: 0, refused: 0 });
});

it('a lost gateway makes its doors unknown, until it is back with its locks', async () => {
  const { first } = await openFieldSite();
  await inForce(first);
  first.killHost('zigbee');
  await waitFor(() => expect(state(first).connection).toMatchObject({ status: 'unknown' }));
  const since = state(first).connection?.since;
  expect(first.zgates.get(ZGATE).zgate.connectionState).toEqual({ connected: false, changedOn: since });
  await inForce(first);
});

it('what waits for a lock that is away goes out when it is back; what it refuses shows', async () => {
  const { first } = await openFieldSite();
  await inForce(first);
  const { doors, behave } = first;
  await behave('zb-1', LOCK, { connected: false });
  await waitFor(() => expect(state(first).connection).toMatchObject({ status: 'disconnected' }));
  await doors.update(DOOR, { number: 12 }, CALLER);
  await waitFor(() => expect(state(first).configuration.failure).toMatchObject({ code: 'NO_REPLY' }));
  expect(first.doors.reconciler.summary()).toEqual({ waiting: 1, refused: 0 });
  expect(statuses(first)[0]).toBe('sent');
  await behave('zb-1', LOCK, { connected: true });
  await inForce(first);
  await behave('zb-1', LOCK, { behaviour: 'refuse' });
  await doors.update(DOOR, { number: 13 }, CALLER);
  await waitFor(() => expect(statuses(first)[0]).toBe('refused'));
  expect(first.doors.reconciler.summary()).toEqual({ waiting: 0, refused: 1 });
  await behave('zb-1', LOCK, { behaviour: 'answer' });
  await doors.cancelPending(DOOR, CALLER);
  await inForce(first);
  expect(doors.options(DOOR).body.number).toBe(12);
  expect(statuses(first).slice(0, 3)).toEqual(['acknowledged', 'cancelled', 'acknowledged']);
});

it('a lock that was configured elsewhere is overtaken, also after a restart of the daemon', async () => {
  const { first, open } = await openFieldSite();
  await inForce(first);
  await first.behave('zb-1', LOCK, { version: 40 });
  await waitFor(() => expect(first.doors.get(DOOR).door.configVersion).toBe(41));
  await inForce(first);
  await first.close();
  const second = await open();
  await inForce(second);
  expect(second.doors.get(DOOR).door.configVersion).toBe(41);
});
