/** The host dies while a device is given its key: the next host finds out which key the device has, without an alarm. */
import { describe, expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import {
  type OsdpDevice,
  type OsdpDeviceOptions,
  openOsdpDevice,
} from '../../test/simulators/osdp/device.ts';
import { keyFingerprint } from '../contract/osdp.ts';
import type { Watch } from '../contract/rs485.ts';

const ADDRESS = 0;
const NAME = '0a4748-1-1';
const NAMED = [{ address: ADDRESS, hwId: NAME }];
const OLD_KEY = KEY.map((byte) => byte ^ 0xff);
const OTHER_KEY = KEY.map((byte) => byte ^ 0x55);
const PENDING = [{ address: ADDRESS, pending: KEY }];
const LONG_MS = 60_000;
/** Exchanges of a pairing: eight times ID, CAP, three handshakes, ID, KEYSET, ID. */
const EXCHANGES = 18;
const SOM = 0x53;
/** SCS_11 (annex D.1.3). */
const CHALLENGE = 0x11;

/** When the host dies: so many bytes of the request reach the device, and no reply is read. */
interface Death {
  exchange: number;
  bytes: number;
}

const newDevice = (more: Partial<OsdpDeviceOptions> = {}) =>
  openOsdpDevice({ address: ADDRESS, serial: 1, random: testRandom(), ...more });

/** A host that dies in the middle of a pairing. Returns the bytes of the request that it died with. */
async function pairUntil(device: OsdpDevice, keys: Watch['keys'], death: Death): Promise<Uint8Array> {
  let exchanges: number | undefined;
  let last = new Uint8Array();
  const link = await openWireLink({
    answer(request, now) {
      if (exchanges === undefined) return device.answer(request, now) ?? null;
      exchanges += 1;
      if (exchanges < death.exchange) return device.answer(request, now) ?? null;
      if (exchanges === death.exchange) {
        last = Uint8Array.from(request);
        device.answer(request.subarray(0, death.bytes), now);
      }
      return null;
    },
  });
  await link.watch(keys ?? [], NAMED);
  const isMet = () => link.report(NAME) !== undefined;
  await link.until(isMet);
  exchanges = 0;
  void link.execute('pair', { address: ADDRESS, key: KEY, milliseconds: 30_000 }, undefined, LONG_MS);
  await link.until(() => last.length > 0);
  return last;
}

/** The next host, in a time of its own that goes on from there. */
async function openNext(device: OsdpDevice, keys: NonNullable<Watch['keys']>) {
  const link = await openWireLink({ answer: (request, now) => device.answer(request, now + 1e6) ?? null });
  await link.watch(keys, NAMED);
  const challenges = () =>
    link.port.sent.filter(({ bytes }) => bytes[bytes.indexOf(SOM) + 6] === CHALLENGE).length;
  return { ...link, challenges };
}

async function expectHealed(device: OsdpDevice, keys: NonNullable<Watch['keys']>): Promise<void> {
  const hasKey = device.describe(0).isPaired === true;
  const next = await openNext(device, keys);
  await next.clock.advance(5_000);
  expect(next.events).toEqual([]);
  expect(next.port.complaints).toEqual([]);
  if (hasKey) {
    expect(next.report(NAME)).toMatchObject({ connected: true, security: 'secure', sessionFault: null });
    expect(next.report(NAME)?.provenKey).toBe(keyFingerprint(KEY));
    // The daemon has made it the device's own key. The session goes on.
    const before = next.challenges();
    await next.watch([{ address: ADDRESS, key: KEY }], NAMED);
    await next.clock.advance(1_000);
    expect(next.report(NAME)).toMatchObject({ connected: true });
    expect(next.report(NAME)?.provenKey).toBeUndefined();
    expect(next.challenges()).toBe(before);
  } else {
    expect(next.report(NAME)).toMatchObject({ connected: false, security: 'unpaired', sessionFault: null });
    const again = { address: ADDRESS, key: KEY, milliseconds: 10_000 };
    const paired = next.execute('pair', again, undefined, LONG_MS);
    expect(await next.outcome(paired)).toEqual({ hwId: NAME });
  }
}

describe('a host that dies in a pairing', () => {
  const exchanges = Array.from({ length: EXCHANGES }, (_, index) => index + 1);

  it.each(exchanges)('before exchange %i: the device is unpaired, or proves its key', async (exchange) => {
    const device = newDevice();
    await pairUntil(device, [], { exchange, bytes: 0 });
    await expectHealed(device, PENDING);
  });

  it.each(exchanges)('after exchange %i: the device is unpaired, or proves its key', async (exchange) => {
    const device = newDevice();
    await pairUntil(device, [], { exchange, bytes: Number.POSITIVE_INFINITY });
    await expectHealed(device, PENDING);
  });

  it('leaves the device without a key or with it, whatever byte of the KEYSET was the last', async () => {
    const keyset = 14;
    const whole = await pairUntil(newDevice(), [], { exchange: keyset, bytes: 0 });
    const paired: number[] = [];
    for (let bytes = 0; bytes <= whole.length; bytes += 1) {
      const device = newDevice();
      await pairUntil(device, [], { exchange: keyset, bytes });
      if (device.describe(0).isPaired) paired.push(bytes);
      await expectHealed(device, PENDING);
    }
    expect(paired).toEqual([whole.length]);
  });

  it.each(exchanges)('and was to give it a second key, at exchange %i: either is tried', async (exchange) => {
    const device = newDevice();
    await pairUntil(device, [], { exchange, bytes: Number.POSITIVE_INFINITY });
    const hasTaken = device.describe(0).isPaired === true;
    if (!hasTaken) device.setKey(OLD_KEY);
    const next = await openNext(device, [{ address: ADDRESS, key: OLD_KEY, pending: KEY }]);
    await next.connected(NAME);
    expect(next.report(NAME)?.provenKey).toBe(hasTaken ? keyFingerprint(KEY) : undefined);
    expect(next.events).toEqual([]);
    expect(next.port.complaints).toEqual([]);
  });
});

describe('a key that a device may have', () => {
  it('is not tried again and again with a device that has none', async () => {
    const next = await openNext(newDevice(), PENDING);
    await next.clock.advance(120_000);
    expect(next.challenges()).toBe(2);
    expect(next.report(NAME)).toMatchObject({ connected: false, security: 'unpaired' });
    expect(next.events).toEqual([]);
  });

  it('is tried again once the device was away', async () => {
    const device = newDevice();
    let isAway = false;
    const link = await openWireLink({
      answer: (request, now) => (isAway ? null : (device.answer(request, now) ?? null)),
    });
    await link.watch(PENDING, NAMED);
    await link.clock.advance(5_000);
    isAway = true;
    await link.clock.advance(5_000);
    device.setKey(KEY);
    isAway = false;
    await link.connected(NAME);
    expect(link.report(NAME)?.provenKey).toBe(keyFingerprint(KEY));
  });

  it('is polled for at an address that nothing else names', async () => {
    const link = await openWireLink({
      answer: (request, now) => device.answer(request, now) ?? null,
    });
    const device = newDevice({ key: KEY });
    await link.watch(PENDING);
    await link.connected(NAME);
  });

  it('does not hide that the device has neither: one alarm, after two handshakes under each', async () => {
    const next = await openNext(newDevice({ key: OTHER_KEY }), [
      { address: ADDRESS, key: OLD_KEY, pending: KEY },
    ]);
    await next.until(() => next.events.length > 0);
    expect(next.challenges()).toBe(4);
    expect(next.events).toMatchObject([{ kind: 'alarm', data: { alarm: 'wrongKey', raised: true } }]);
    const before = next.challenges();
    await next.clock.advance(60_000);
    // Every 32 exchanges at the most, as with one key.
    expect(next.challenges() - before).toBeLessThan(100);
    expect(next.events).toHaveLength(1);
  });

  it('gives way to the old key, when the device never took it', async () => {
    const next = await openNext(newDevice({ key: OLD_KEY }), [
      { address: ADDRESS, key: OLD_KEY, pending: KEY },
    ]);
    await next.connected(NAME);
    expect(next.challenges()).toBe(1);
    expect(next.report(NAME)?.provenKey).toBeUndefined();
    expect(next.events).toEqual([]);
  });
});

it('says nothing of what a device can carry before that is proven', async () => {
  const link = await openWireLink({ answer: (request, now) => device.answer(request, now) ?? null });
  const device = newDevice({ outputs: 2 });
  await link.watch([], NAMED);
  await link.until(() => link.report(NAME)?.security === 'unpaired');
  await link.clock.advance(3_000);
  expect(link.report(NAME)?.carries).toBeUndefined();
  const pairing = { address: ADDRESS, key: KEY, milliseconds: 30_000 };
  await link.outcome(link.execute('pair', pairing, undefined, LONG_MS));
  await link.connected(NAME);
  expect(link.report(NAME)?.carries).toMatchObject({ relays: 2, pinMemory: true });
});
