/** Relays that do not open when they are ordered to, under a watchdog that each request feeds. On a manual clock. */
import { describe, expect, it } from 'vitest';
import { openBoard, openTestLink, profileNamed, type TestDevice } from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';

const hwId = 'bus-1-1';
const PULSE_MS = 1_200;
const WATCHDOG_MS = 5_000;
/** Tries, with what is under way at their end. */
const TRIES_MS = 1_500;
const KINDS = ['wago-750-do8', 'icp-das-tm-r5'] as const;
const pulse = (relay = 2, milliseconds = PULSE_MS) => ({ hwId, relay, milliseconds });

const isOff = ([, functionCode, , , high]: Uint8Array) =>
  functionCode === 15 || (functionCode === 5 && high === 0);
const refusing =
  (answer: (request: Uint8Array) => number[]): NonNullable<TestDevice['behave']> =>
  (request, carriedOut) =>
    isOff(request) ? framed(1, answer(request)) : carriedOut();
const WAYS = [
  ['is busy', refusing(([, functionCode = 0]) => [functionCode | 0x80, 6])],
  ['fails', refusing(([, functionCode = 0]) => [functionCode | 0x80, 4])],
  ['acknowledges', refusing((request) => [...request.subarray(1, 6)])],
] as const;

describe.each(KINDS)('%s', (kind) => {
  it.each(WAYS)(
    '%s and does not open: its watchdog does, as it is not polled meanwhile',
    async (_, behave) => {
      const { link, device } = await openBoard(kind);
      await using _link = link;
      await link.execute('pulse', pulse());
      device.behave = behave;
      await link.clock.advance(30_000);
      device.device.advance(link.clock.monotonic());
      const [on, off] = device.device.pins.history;
      expect(off?.on).toBe(false);
      const closedMs = (off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0);
      expect(closedMs).toBeLessThan(PULSE_MS + TRIES_MS + WATCHDOG_MS);
      expect(device.device.pins.history).toHaveLength(2);
      device.behave = undefined;
      await link.clock.advance(20_000);
      expect(link.report(hwId)).toMatchObject({
        connected: true,
        levels: { output2: false },
        relayFault: null,
      });
    },
  );

  it('is asked nothing else until then', async () => {
    const { link, device } = await openBoard(kind);
    await using _link = link;
    await link.execute('pulse', pulse());
    device.behave = WAYS[0][1];
    await link.clock.advance(PULSE_MS + TRIES_MS);
    const before = link.wire.sent.length;
    const other = link.execute('pulse', pulse(3), 200);
    await expect(other).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    const probe = link.execute('probe', { addresses: [1], repeats: 1 }, 200);
    await expect(probe).rejects.toMatchObject({ code: 'BUSY' });
    await link.clock.advance(WATCHDOG_MS - 500);
    expect(link.wire.sent.length).toBe(before);
    expect(link.report(hwId)).toMatchObject({ connected: false, levels: {}, relayFault: { relay: 2 } });
  });

  it('whose relay is closed by a frame that comes late is ordered to open it', async () => {
    const { link, device } = await openBoard(kind);
    await using _link = link;
    let held: (() => void) | undefined;
    device.behave = (request, answer) => {
      if (request[1] !== 5 || held) return answer();
      held = answer;
      return null;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await link.clock.advance(10_000);
    expect(device.device.pins.history).toEqual([]);
    held?.();
    expect(device.device.pins.outputs()).toBe(0b100);
    await link.clock.advance(1_000);
    expect(device.device.pins.outputs()).toBe(0);
    expect(link.report(hwId)).toMatchObject({ connected: true, levels: { output2: false } });
  });

  it.each(WAYS)('%s when it is met with a relay closed: its watchdog opens it', async (_, behave) => {
    const { link, device } = await openBoard(kind);
    await link.execute('pulse', pulse(2, 60_000));
    await link[Symbol.asyncDispose]();
    const diedAt = link.clock.monotonic();
    device.behave = behave;
    const next = await openTestLink({
      stations: link.stations,
      options: { devices: [{ unitId: 1 }] },
      profiles: { [kind]: profileNamed(kind) },
      clock: link.clock,
    });
    await using _next = next;
    await next.clock.advance(30_000);
    device.device.advance(next.clock.monotonic());
    const off = device.device.pins.history.at(-1);
    expect(off?.on).toBe(false);
    expect((off?.monotonicMs ?? 0) - diedAt).toBeLessThan(TRIES_MS + WATCHDOG_MS);
  });
});
