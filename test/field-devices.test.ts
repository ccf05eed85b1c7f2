/** Wanted → applied, end to end: the three users of src/services/reconcile/reconcile.ts, through host processes of their own. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CALLER, DEVICE, DOOR, LOCK, linkOptions, openFieldSite, SITE, ZGATE } from './field-site.ts';
import { openDaemon } from './simulators/daemon.ts';
import { temporaryFolder } from './temporary.ts';

const waitFor = (condition: () => void) => vi.waitFor(condition, { interval: 10 });
type DoorSite = Awaited<ReturnType<Awaited<ReturnType<typeof openFieldSite>>['open']>>;
const inForce = ({ rs485 }: DoorSite) => waitFor(() => expect(rs485.state(DEVICE).inForce).toBe(true));

describe('what is wanted', () => {
  it('reaches an RS-485 device, a Zigbee gateway and a lock', async () => {
    const { first } = await openFieldSite();
    const { rs485, zgates, doors } = first;
    await inForce(first);
    // A network whose locks were not seen lately is not moved without a word from somebody.
    await waitFor(() => {
      expect(zgates.get(ZGATE).zgate.connectionState.connected).toBe(true);
      expect(doors.get(DOOR).door.connectionState.lastSeen).not.toBeNull();
    });
    await rs485.update(DEVICE, { ioPins: { output0: true }, relayIndex: 2 }, CALLER);
    await zgates.update(ZGATE, { allowedChannels: [20, 25] }, CALLER);
    await waitFor(() => {
      expect(rs485.get(DEVICE).device).toMatchObject({ settingsVersion: 2, reportedSettingsVersion: 2 });
      expect(zgates.get(ZGATE).zgate).toMatchObject({ hwId: '00124b0001020304', zigbeeChannel: 20 });
      const { door } = doors.get(DOOR);
      expect(door.applied?.versions).toMatchObject({ doorVersion: door.version });
    });
    expect(rs485.get(DEVICE).device).toMatchObject({
      type: 'loopback-rs485',
      platform: { version: '1.0' },
      connectionState: { connected: true },
    });
    expect(doors.get(DOOR).door.applied?.payloads[0]).toMatch(/^[A-Za-z0-9+/=]{20,}$/);
  });

  it('and is refused shows in the state why, and a newer version is tried', async () => {
    const { first } = await openFieldSite();
    const { rs485, zgates, doors, behave } = first;
    await inForce(first);
    await waitFor(() => expect(zgates.get(ZGATE).zgate.connectionState.connected).toBe(true));
    await behave('bus-1', 'io-1', { behaviour: 'refuse' });
    await behave('zb-1', '00124b0001020304', { behaviour: 'refuse' });
    await behave('zb-1', LOCK, { behaviour: 'refuse' });
    await first.change(1);
    await zgates.update(ZGATE, { allowedChannels: [20] }, CALLER);
    await doors.update(DOOR, { number: 12 }, CALLER);
    const refused = {
      code: 'REFUSED',
      message: expect.stringMatching(/^the device refused, as it was set to/),
      permanent: true,
    };
    await waitFor(() => {
      expect(rs485.state(DEVICE)).toMatchObject({ inForce: false, failure: refused, nextAttempt: null });
      expect(zgates.state(ZGATE)).toMatchObject({ inForce: false, failure: refused, nextAttempt: null });
      expect(doors.state(DOOR).configuration).toMatchObject({ failure: refused, nextAttempt: null });
    });
    await behave('bus-1', 'io-1', { behaviour: 'answer' });
    await first.change(2);
    await inForce(first);
    expect(rs485.get(DEVICE).device.reportedSettingsVersion).toBe(3);
  });

  it('comes again, ever more seldom, to a device that forgets', async () => {
    const { first } = await openFieldSite();
    await inForce(first);
    await first.behave('bus-1', 'io-1', { behaviour: 'forget' });
    await first.change(1);
    await waitFor(() => expect(first.rs485.state(DEVICE).failure).toMatchObject({ code: 'BAD_REPLY' }));
    await first.behave('bus-1', 'io-1', { behaviour: 'answer' });
    await inForce(first);
  });

  it('supersedes what is on its way: an attempt that hangs is ended for the newer version', async () => {
    const { first } = await openFieldSite();
    await inForce(first);
    await first.behave('bus-1', 'io-1', { behaviour: 'hang' });
    await first.change(1);
    await waitFor(() =>
      expect(first.rs485.state(DEVICE)).toMatchObject({ failure: null, nextAttempt: null }),
    );
    await first.behave('bus-1', 'io-1', { behaviour: 'answer' });
    const before = performance.now();
    await first.change(2);
    await inForce(first);
    // An attempt may take 20 s.
    expect(performance.now() - before).toBeLessThan(15_000);
    expect(first.rs485.get(DEVICE).device.reportedSettingsVersion).toBe(3);
  });

  it('survives the death of the host in the middle', async () => {
    const { first } = await openFieldSite();
    await inForce(first);
    await first.behave('bus-1', 'io-1', { behaviour: 'hang' });
    await first.change(1);
    await waitFor(() => expect(first.rs485.state(DEVICE).inForce).toBe(false));
    first.killHost('buses');
    await waitFor(() => expect(first.isConnected()).toBe(false));
    await inForce(first);
    expect(first.isConnected()).toBe(true);
  });

  it('survives a restart of the daemon in the middle', async () => {
    const { first, open } = await openFieldSite();
    await inForce(first);
    await first.behave('bus-1', 'io-1', { behaviour: 'hang' });
    await first.change(1);
    await first.close();
    const second = await open();
    expect(second.rs485.state(DEVICE).inForce).toBe(false);
    await inForce(second);
    expect(second.rs485.get(DEVICE).device.reportedSettingsVersion).toBe(2);
  });
});

it('the connection changes when the device goes and comes back, and at no other time', async () => {
  const { first } = await openFieldSite();
  await inForce(first);
  const { rs485, behave } = first;
  const connection = () => rs485.get(DEVICE).device.connectionState;
  const since = connection();
  expect(since.connected).toBe(true);
  await first.change(4);
  await inForce(first);
  await waitFor(() => expect(rs485.state(DEVICE).reportAge).toBeLessThan(40));
  expect(connection()).toEqual(since);
  await behave('bus-1', 'io-1', { connected: false });
  await waitFor(() => expect(connection().connected).toBe(false));
  const gone = connection();
  expect(Date.parse(gone.changedOn)).toBeGreaterThan(Date.parse(since.changedOn));
  await first.change(5);
  await waitFor(() => expect(rs485.state(DEVICE).failure).toMatchObject({ code: 'NO_REPLY' }));
  expect(connection()).toEqual(gone);
  await behave('bus-1', 'io-1', { connected: true });
  await inForce(first);
  expect(connection().connected).toBe(true);
});

it('kill -9 in the middle costs neither what was acknowledged nor a job its end', async () => {
  const device = { kind: 'rs485', hwId: 'io-1', delayMs: 1_000 };
  const daemon = await openDaemon({
    directory: temporaryFolder(),
    http: { host: '127.0.0.1', port: 0 },
    mqtt: { host: '127.0.0.1', port: 0 },
    vendorRoots: [],
    simulatesLinks: true,
    more: { links: [{ id: 'bus-1', protocol: 'loopback', options: linkOptions([device]) }] },
  });
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  await daemon.start();
  const token = await daemon.createToken('service-tool');
  const document = { rs485: SITE.rs485 };
  await daemon.importSite(document);
  const path = `/network/rs485/${DEVICE}`;
  const state = async () => (await daemon.call('GET', `${path}/state`, token)).body;
  await vi.waitFor(async () => expect(await state()).toMatchObject({ inForce: true }));

  const put = await daemon.call('PUT', path, token, { relayIndex: 6, name: 'Lobby' });
  expect(put).toMatchObject({ status: 200, body: { settingsVersion: 2, reportedSettingsVersion: 1 } });
  await daemon.kill();
  await daemon.start();
  await vi.waitFor(async () => expect(await state()).toMatchObject({ inForce: true, busUp: true }));
  const after = await daemon.call('GET', path, token);
  expect(after.body).toMatchObject({ name: 'Lobby', relayIndex: 6, reportedSettingsVersion: 2 });
}, 60_000);
