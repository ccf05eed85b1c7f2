/** A product that does not time pulses itself: outputs, watchdog and the end of a pulse, on a manual clock. */

import { describe, expect, it } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { openTestLink, sent, type TestDevice } from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import type { DriverError, Plain } from '../contract/driver.ts';

const WATCHDOG = 0x0010;
const BOOTS = 0x0020;
const PROFILE: Plain = {
  name: 'switched',
  product: 'Board',
  source: 'made for this test',
  outputs: { table: 'coil', address: 0, count: 4 },
  pulse: {
    way: 'switched',
    watchdog: {
      milliseconds: 5_000,
      time: { address: WATCHDOG, unitMilliseconds: 100 },
      enabledBy: 'time',
      fedBy: 'requests',
    },
  },
};
const hwId = 'bus-1-1';

/** Four coils and a watchdog register; `outputs` as a bit mask. */
function board(outputs = 0) {
  const state = { outputs, watchdog: 0, takesWatchdog: true };
  const device: TestDevice['device'] = {
    advance: () => undefined,
    answer(request) {
      const frame = Buffer.from(request);
      const [functionCode, address, value] = [frame[1], frame.readUInt16BE(2), frame.readUInt16BE(4)];
      switch (functionCode) {
        case 1:
          return framed(1, [1, 1, (state.outputs >> address) & ((1 << value) - 1)]);
        case 3:
          return framed(1, [3, 2, state.watchdog >> 8, state.watchdog & 0xff]);
        case 5:
          state.outputs = value === 0xff00 ? state.outputs | (1 << address) : state.outputs & ~(1 << address);
          return framed(1, request.subarray(1, 6));
        case 6:
          if (state.takesWatchdog && address === WATCHDOG) state.watchdog = value;
          return framed(1, request.subarray(1, 6));
        case 15:
          state.outputs = frame[7] ?? 0;
          return framed(1, request.subarray(1, 6));
        default:
          return framed(1, [(functionCode ?? 0) | 0x80, 1]);
      }
    },
  };
  return { device, behave: undefined as TestDevice['behave'], state };
}

async function openLink(one: ReturnType<typeof board>, profile: Plain = PROFILE) {
  const stations = new Map<number, TestDevice>([[1, one]]);
  const link = await openTestLink({
    stations,
    options: { devices: [{ unitId: 1 }] },
    profiles: { switched: profile },
  });
  await link.clock.advance(2_000);
  return link;
}

/** Less than a request is waited for: one that is on the wire, and the request that opens the relay. */
const OPENS_WITHIN_MS = 60;

const pulse = (milliseconds = 1_000) => ({ hwId, relay: 2, milliseconds });

describe('a product whose pulses the gateway times', () => {
  it('has every output switched off first, and its watchdog set, before it is used', async () => {
    const one = board(0b1011);
    await using link = await openLink(one);
    expect(link.wire.sent.slice(0, 3).map(({ bytes }) => bytes[1])).toEqual([15, 6, 3]);
    expect(one.state).toMatchObject({ outputs: 0, watchdog: 50 });
    expect(link.report(hwId)).toMatchObject({ connected: true, levels: { output0: false } });
  });

  it('is not used without its watchdog, or while an output stays on', async () => {
    const one = board();
    one.state.takesWatchdog = false;
    await using link = await openLink(one);
    await link.clock.advance(5_000);
    expect(link.report(hwId)).toBeUndefined();
    expect(messagesOf(link.bus())).toEqual([
      expect.stringMatching(/the watchdog of Board at address 1 does not take its time of 5000 ms/),
    ]);
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    one.state.takesWatchdog = true;
    one.behave = (request, answer) => (request[1] === 1 ? framed(1, [1, 1, 0b0100]) : answer());
    await link.clock.advance(6_000);
    expect(messagesOf(link.bus())).toEqual([
      expect.stringMatching(/output2 of Board at address 1 does not go off/),
    ]);
  });

  it('closes its relay for the time of the pulse, and shows it', async () => {
    const one = board();
    await using link = await openLink(one);
    expect(await link.execute('pulse', pulse())).toEqual({
      relay: 2,
      milliseconds: 1_000,
      timedBy: 'gateway',
    });
    await link.clock.advance(800);
    expect(one.state.outputs).toBe(0b0100);
    expect(link.report(hwId)).toMatchObject({ levels: { output2: true }, pulse: { relay: 2 } });
    await link.clock.advance(700);
    expect(one.state.outputs).toBe(0);
    expect(link.report(hwId)).toMatchObject({ levels: { output2: false }, pulse: null });
  });

  it('closes it for no longer when the answer is lost, and is not asked twice', async () => {
    const one = board();
    await using link = await openLink(one);
    let closedAt: number | undefined;
    one.behave = (request, answer) => {
      const reply = answer();
      if (request[1] !== 5 || closedAt !== undefined) return reply;
      closedAt = link.clock.monotonic();
      return null;
    };
    await link.execute('pulse', pulse(2_000));
    expect(sent(link, 5)).toBe(1);
    await link.clock.advance((closedAt ?? 0) + 2_000 - 1 - link.clock.monotonic());
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(OPENS_WITHIN_MS);
    expect(one.state.outputs).toBe(0);
  });

  it('that refuses what it has carried out is believed by its relay', async () => {
    const one = board();
    await using link = await openLink(one);
    const refusal = framed(1, [0x85, 2]);
    one.behave = (request, answer) => (request[1] === 5 && request[4] === 0xff ? refusal : answer());
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'REFUSED' });
    expect(link.report(hwId)).toMatchObject({ pulse: null });
    one.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 5 && request[4] === 0xff ? refusal : reply;
    };
    expect(await link.execute('pulse', pulse())).toMatchObject({ relay: 2, timedBy: 'gateway' });
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(1_000 + OPENS_WITHIN_MS);
    expect(one.state.outputs).toBe(0);
  });

  it('is not ordered again to close a relay that is open after a lost answer: a power dip may have opened it', async () => {
    const one = board();
    await using link = await openLink(one);
    let closings = 0;
    one.behave = (request, answer) => {
      if (request[1] !== 5 || request[4] === 0) return answer();
      answer();
      closings += 1;
      // Its watchdog keeps its time without power.
      one.state.outputs = 0;
      return null;
    };
    await expect(link.execute('pulse', pulse(2_000))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await link.clock.advance(5_000);
    expect(closings).toBe(1);
  });

  it('that counts its restarts is ordered again when it did not hear, and closes its relay for no longer', async () => {
    const one = board();
    await using link = await openLink(one, { ...PROFILE, bootCount: { address: BOOTS } });
    let askedAt: number | undefined;
    one.behave = (request, answer) => {
      if (request[1] !== 5 || askedAt !== undefined) return answer();
      askedAt = link.clock.monotonic();
      return null;
    };
    await link.execute('pulse', pulse(2_000));
    expect(sent(link, 5)).toBe(2);
    await link.clock.advance((askedAt ?? 0) + 2_000 - 1 - link.clock.monotonic());
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(OPENS_WITHIN_MS);
    expect(one.state.outputs).toBe(0);
  });

  it('is ordered again to open its relay until it shows that it has', async () => {
    const one = board();
    await using link = await openLink(one);
    await link.execute('pulse', pulse());
    let ignored = 0;
    one.behave = (request, answer) => {
      // Acknowledged and not done, three times.
      if (request[1] !== 5 || ignored >= 3) return answer();
      ignored += 1;
      return framed(1, request.subarray(1, 6));
    };
    await link.clock.advance(5_000);
    expect(ignored).toBe(3);
    expect(one.state.outputs).toBe(0);
  });

  it('keeps it closed for a second pulse, and opens it once', async () => {
    const one = board();
    await using link = await openLink(one);
    await link.execute('pulse', pulse(2_000));
    await link.clock.advance(500);
    await link.execute('pulse', pulse(3_000));
    await link.clock.advance(2_500);
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(1_500);
    expect(one.state.outputs).toBe(0);
    expect(link.wire.sent.filter(({ bytes }) => bytes[1] === 5)).toHaveLength(3);
  });

  it.each([
    ['and keeps what is still to be on', 0b1111, 0b0100],
    ['and is not ordered again what it has lost', 0b1011, 0],
  ])('that was away is switched off before it is used again, %s', async (_, found, left) => {
    const one = board();
    await using link = await openLink(one);
    await link.execute('pulse', pulse(60_000));
    one.behave = () => null;
    await link.clock.advance(5_000);
    expect(link.report(hwId)).toMatchObject({ connected: false, pulse: null });
    expect(link.report(hwId)?.levels).toEqual({});
    one.state.outputs = found;
    one.behave = undefined;
    await link.clock.advance(20_000);
    expect(link.report(hwId)).toMatchObject({ connected: true });
    expect(one.state.outputs).toBe(left);
  });

  it('is ordered to open at the end of its pulse though each answer comes late', async () => {
    const one = board();
    await using link = await openLink(one);
    one.behave = (_, answer) => {
      const reply = answer();
      if (reply) void link.clock.sleep(300).then(() => link.wire.deliver(reply));
      return null;
    };
    // Each reading is late as well, and may be older than the pulse.
    const outcome = await link.execute('pulse', pulse(1_200), 5_000).catch(({ code }: DriverError) => code);
    expect(outcome).toBe('OUTCOME_UNKNOWN');
    await link.clock.advance(5_000);
    const orders = link.wire.sent.filter(({ bytes }) => bytes[1] === 5);
    const last = orders.findLast(({ bytes }) => bytes[4] === 0xff);
    const off = orders.find((one) => one.at > (last?.at ?? 0));
    expect(off?.bytes[4]).toBe(0);
    // The time-out of a request that is under way then, and no wait for answers that are late.
    expect((off?.at ?? 0) - (last?.at ?? 0)).toBeLessThan(1_200 + 125);
    expect(one.state.outputs).toBe(0);
  });

  it('that is asked for a relay which does not answer opens another one in time', async () => {
    const one = board();
    await using link = await openLink(one, { ...PROFILE, bootCount: { address: BOOTS } });
    await link.execute('pulse', pulse(1_000));
    const closedAt = link.clock.monotonic();
    const isOther = (request: Uint8Array) => request[1] === 5 && request[3] === 3;
    one.behave = (request, answer) => (isOther(request) ? null : answer());
    // Three requests, each with the wait for its late answer, go on beyond the end of the first pulse.
    await link.clock.advance(850);
    const orders = link.execute('pulse', { ...pulse(1_000), relay: 3 }, 5_000).catch(() => undefined);
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(closedAt + 1_000 + OPENS_WITHIN_MS + 125 - link.clock.monotonic());
    expect(one.state.outputs).toBe(0);
    await link.clock.advance(10_000);
    await orders;
  });

  it('that was away for the rest of a pulse is not ordered to close again', async () => {
    const one = board();
    await using link = await openLink(one);
    await link.execute('pulse', pulse(4_000));
    one.behave = () => null;
    await link.clock.advance(3_000);
    one.state.outputs = 0;
    await link.clock.advance(10_000);
    one.behave = (_, answer) => {
      const reply = answer();
      expect(one.state.outputs).toBe(0);
      return reply;
    };
    await link.clock.advance(30_000);
    expect(link.report(hwId)).toMatchObject({ connected: true, pulse: null });
  });

  it('whose caller has gone before it was answered is opened again', async () => {
    const one = board();
    await using link = await openLink(one);
    // It closes the relay, and its answer is lost.
    one.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 5 ? null : reply;
    };
    await expect(link.execute('pulse', pulse(60_000), 60)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(one.state.outputs).toBe(0b0100);
    one.behave = undefined;
    await link.clock.advance(2_000);
    expect(one.state.outputs).toBe(0);
    expect(link.report(hwId)).toMatchObject({ levels: { output2: false }, pulse: null });
  });

  it('is set up again after a pause as long as its watchdog, before a pulse is taken', async () => {
    const one = board();
    await using link = await openLink(one);
    link.clock.hold(5_200);
    const before = link.wire.sent.length;
    // The press comes before the next poll, and none of its requests is sent with the watchdog run out.
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await link.clock.advance(2_000);
    const since = link.wire.sent.slice(before).map(({ bytes }) => bytes[1]);
    expect(since).toContain(6);
    expect(since).not.toContain(5);
    expect(link.report(hwId)).toMatchObject({ connected: true });
    expect(messagesOf(link.bus())).toEqual([expect.stringMatching(/was not fed in time \(.* ms\)/)]);
    await link.execute('pulse', pulse());
    expect(one.state.outputs).toBe(0b0100);
  });

  it('is refused on a bus that keeps no pace with its watchdog, and the device shows why', async () => {
    const one = board();
    await using link = await openLink(one);
    expect(link.report(hwId)).toMatchObject({ watchdog: { unfed: null } });
    for (let time = 1; time <= 3; time += 1) {
      link.clock.hold(4_900);
      await link.clock.advance(4_000);
      expect(link.report(hwId)).toMatchObject({
        connected: true,
        watchdog: { unfed: { pauseMilliseconds: expect.any(Number) } },
      });
      const orders = link.execute('pulse', pulse()).then(
        () => 'fired',
        (error: Error) => error.message,
      );
      expect(await orders).toMatch(time < 3 ? /^fired$/ : /nothing was sent.*the bus is too slow/);
    }
    await link.clock.advance(120_000);
    await link.execute('pulse', pulse());
    await link.clock.advance(600_000);
    expect(link.report(hwId)).toMatchObject({ watchdog: { unfed: null } });
  });

  it('is kept closed when its replies are lost three times in a row and it is met again', async () => {
    const one = board();
    await using link = await openLink(one);
    let lost = 0;
    one.behave = (request, answer) => {
      const reply = answer();
      if ((request[1] !== 5 && lost === 0) || lost >= 3) return reply;
      lost += 1;
      return null;
    };
    await link.execute('pulse', pulse(3_000));
    expect(link.history(hwId).some(({ connected }) => !connected)).toBe(true);
    await link.clock.advance(2_000);
    expect(lost).toBe(3);
    expect(one.state.outputs).toBe(0b0100);
    await link.clock.advance(2_000);
    expect(one.state.outputs).toBe(0);
  });

  it('that has lost its relay in a restart shows no pulse', async () => {
    const one = board();
    await using link = await openLink(one);
    await link.execute('pulse', pulse(60_000));
    one.state.outputs = 0;
    await link.clock.advance(3_000);
    expect(link.report(hwId)).toMatchObject({ levels: { output2: false }, pulse: null });
  });

  it('is left to its watchdog by a driver that closes', async () => {
    const one = board();
    const link = await openLink(one);
    await link.execute('pulse', pulse());
    await link[Symbol.asyncDispose]();
    await link.clock.advance(10_000);
    expect(link.clock.sleepers()).toBe(0);
  });
});
