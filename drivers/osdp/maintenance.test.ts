/** A device is paired or moved, and meanwhile something else is wanted of its address, or its window is closed. */
import { describe, expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom, type WireOptions } from '../../test/drivers/osdp/wire.ts';
import { type OsdpDevice, openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { keyFingerprint } from '../contract/osdp.ts';

const NAME = (serial: number) => `0a4748-1-${serial}`;
const BAUD = 115_200;
const WINDOW_MS = 10_000;
const LONG_MS = 60_000;
const SOM = 0x53;
/** SCS_11 (annex D.1.3). */
const CHALLENGE = 0x11;
const random = testRandom();

const keyed = (address: number, serial: number) =>
  openOsdpDevice({ address, serial, key: KEY, random, baudRate: BAUD });

async function openLine(present: OsdpDevice[], more: Partial<WireOptions> = {}) {
  const link = await openWireLink({
    answer(request, now) {
      const replies = present.map((device) => device.answer(request, now));
      return replies.find((reply) => reply !== undefined) ?? null;
    },
    ...more,
  });
  const pair = (address: number, signal?: AbortSignal) =>
    link.execute('pair', { address, key: KEY, milliseconds: WINDOW_MS }, signal, LONG_MS);
  const readdress = (serial: number, address: number) =>
    link.execute('readdress', { hwId: NAME(serial), address, baudRate: BAUD }, undefined, LONG_MS);
  return { link, pair, readdress };
}

describe('a device that is moved', () => {
  it('does not come to where another one is being paired', async () => {
    const device = keyed(0, 1);
    const { link, pair, readdress } = await openLine([device]);
    await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
    await link.connected(NAME(1));
    const paired = pair(7);
    await link.clock.advance(1_000);
    expect(await link.outcome(readdress(1, 7))).toBe('BUSY');
    expect(device.place()).toBe(0);
    expect(await link.outcome(paired)).toBe('NO_REPLY');
  });

  it('is not paired meanwhile, neither where it was nor where it goes', async () => {
    const { link, pair, readdress } = await openLine([keyed(0, 1)]);
    await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
    await link.connected(NAME(1));
    const moved = readdress(1, 7);
    expect(await link.outcome(Promise.all([pair(0), pair(7)]))).toEqual(['BUSY', 'BUSY']);
    expect(await link.outcome(moved)).toEqual({ answered: { address: 7, baudRate: BAUD }, found: 7 });
    await link.connected(NAME(1));
  });

  it('is found where it was, though a list leaves that out', async () => {
    const { link, readdress } = await openLine([keyed(0, 1)]);
    await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
    await link.connected(NAME(1));
    const moved = readdress(1, 0);
    await link.watch([]);
    expect(await link.outcome(moved)).toMatchObject({ found: 0 });
  });
});

describe('a window', () => {
  /** From the first ID to the proof of its own key. */
  const moments = Array.from({ length: 18 }, (_, index) => index + 1);

  /** `call`: with the reply to that request, when the driver has it and has not looked at it. */
  async function openNew(at: number, call: () => void) {
    const device = openOsdpDevice({ address: 0, serial: 1, random });
    let requests = 0;
    let isOpen = false;
    const { link, pair } = await openLine([], {
      answer(request, now) {
        const reply = device.answer(request, now) ?? null;
        if (isOpen) requests += 1;
        if (requests !== at || !isOpen || !reply) return reply;
        isOpen = false;
        void link.clock.sleep(10).then(() => {
          link.port.deliver(reply);
          call();
        });
        return null;
      },
    });
    await link.watch([], [{ address: 0, hwId: NAME(1) }]);
    await link.until(() => link.report(NAME(1))?.security === 'unpaired');
    isOpen = true;
    return { link, pair };
  }

  it.each(moments)('that is closed gives the device up, or has it paired: at exchange %i', async (at) => {
    const cancelled = new AbortController();
    const { link, pair } = await openNew(at, () => cancelled.abort(new Error('cancelled')));
    const outcome = await link.outcome(pair(0, cancelled.signal));
    await link.clock.advance(3_000);
    if (outcome === 'OUTCOME_UNKNOWN') {
      // The KEYSET was sent. The device is tried under that key, and proves it without another window.
      expect(link.report(NAME(1))).toMatchObject({ connected: true, provenKey: keyFingerprint(KEY) });
    } else if (typeof outcome === 'string') {
      expect(link.report(NAME(1))).toMatchObject({ connected: false, security: 'unpaired' });
      expect(await link.outcome(pair(0))).toEqual({ hwId: NAME(1) });
    }
    await link.connected(NAME(1));
    expect(link.report(NAME(1))).toMatchObject({ security: 'secure', sessionFault: null });
  });

  it.each(moments)(
    'goes on, and its key counts, though a list from before comes: at exchange %i',
    async (at) => {
      const { link, pair } = await openNew(at, () => void link.watch([]));
      expect(await link.outcome(pair(0))).toEqual({ hwId: NAME(1) });
      await link.watch([], [{ address: 0, hwId: NAME(1) }]);
      await link.connected(NAME(1));
      await link.clock.advance(1_000);
      expect(link.report(NAME(1))).toMatchObject({ connected: true, security: 'secure' });
    },
  );
});

describe('a device that has a key', () => {
  const OTHER = KEY.map((byte) => byte ^ 1);

  it('and is in a secure session is not paired, and its session goes on', async () => {
    const device = keyed(0, 1);
    const { link } = await openLine([device]);
    await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
    await link.connected(NAME(1));
    const wanted = { address: 0, key: OTHER, milliseconds: WINDOW_MS };
    // The clock stands still: nothing is waited for.
    expect(await link.execute('pair', wanted, undefined, LONG_MS)).toBe('REFUSED');
    await link.clock.advance(1_000);
    expect(link.report(NAME(1))).toMatchObject({ connected: true, sessionFault: null });
    expect(device.sessions()).toBe(1);
    expect(link.events.filter(({ kind }) => kind === 'alarm')).toEqual([]);
  });

  it.each([true, false])(
    'that is not known here ends the window at once, without an alarm: %s',
    async (insistsOnKey) => {
      const device = openOsdpDevice({
        address: 0,
        serial: 1,
        key: OTHER,
        random,
        baudRate: BAUD,
        insistsOnKey,
      });
      const { link, pair } = await openLine([device]);
      await link.watch([], [{ address: 0, hwId: NAME(1) }]);
      await link.until(() => link.report(NAME(1))?.security === 'unpaired');
      const before = link.clock.monotonic();
      expect(await link.outcome(pair(0))).toBe('REFUSED');
      expect(link.clock.monotonic() - before).toBeLessThan(WINDOW_MS);
      expect(link.events.filter(({ kind }) => kind === 'alarm')).toEqual([]);
    },
  );
});

it('is met once, though it was being asked who it is when it was listed', async () => {
  const { link } = await openLine([keyed(0, 1)]);
  await link.watch([]);
  const probed = link.execute('probe', { addresses: [0], repeats: 100 }, undefined, LONG_MS);
  await link.clock.advance(50);
  await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
  expect(await link.outcome(probed)).toMatchObject({ results: [{ identity: { hwId: NAME(1) } }] });
  await link.connected(NAME(1));
  const handshakes = link.port.sent.filter(({ bytes }) => bytes[bytes.indexOf(SOM) + 6] === CHALLENGE);
  expect(handshakes).toHaveLength(1);
});

it('is polled again for its pairing, though it had asked for nothing but a file', async () => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random, files: { isExclusive: true } });
  const { link, pair } = await openLine([device]);
  await link.watch([{ address: 0, key: KEY }], [{ address: 0, hwId: NAME(1) }]);
  await link.connected(NAME(1));
  const piece = { hwId: NAME(1), type: 1, total: 2_000, offset: 0, data: new Uint8Array(1_000) };
  expect(await link.outcome(link.execute('sendFile', piece))).toMatchObject({ stage: 'sending' });
  expect(await link.outcome(pair(0))).toEqual({ hwId: NAME(1) });
});
