/** Pulses of simulated devices, on a manual clock. */
import { describe, expect, it } from 'vitest';
import { openBoard, openOne, profileNamed, sent } from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import type { Plain } from '../contract/driver.ts';
import { profileSchema } from './profile.ts';

const pulse = (more: object = {}) => ({ hwId: 'GIO-0001', relay: 2, milliseconds: 3_000, ...more });

describe('a pulse', () => {
  it('is timed by the device and reported with its end', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    expect(await link.execute('pulse', pulse())).toEqual({
      relay: 2,
      milliseconds: 3_000,
      timedBy: 'device',
    });
    await link.clock.advance(500);
    expect(link.report('GIO-0001')).toMatchObject({ levels: { output2: true }, pulse: { relay: 2 } });
    await link.clock.advance(3_000);
    expect(link.report('GIO-0001')).toMatchObject({ levels: { output2: false }, pulse: null });
    expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
  });

  it('whose acknowledgement is lost is not sent again: the device shows its id', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 16 ? null : reply;
    };
    expect(await link.execute('pulse', pulse())).toMatchObject({ timedBy: 'device' });
    expect(sent(link, 16)).toBe(1);
    expect(device.device.pins.history).toHaveLength(1);
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 1 } });
  });

  it('that was not heard is sent again with its id, and fires once', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    let lost = 0;
    device.behave = (request, answer) => {
      if (request[1] !== 16 || lost >= 2) return answer();
      lost += 1;
      return null;
    };
    expect(await link.execute('pulse', pulse())).toMatchObject({ timedBy: 'device' });
    expect(sent(link, 16)).toBe(3);
    expect(device.device.pins.history).toHaveLength(1);
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 1 } });
  });

  it('whose answer is lost in a power dip is not fired twice', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    let isDipped = false;
    device.behave = (request, answer) => {
      const reply = answer();
      if (request[1] !== 16 || isDipped) return reply;
      isDipped = true;
      device.device.restart(link.clock.monotonic());
      return null;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await link.clock.advance(5_000);
    expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
  });

  it('that was not heard is not sent again to a device that counts no restarts', async () => {
    const { bootCount: _, ...profile } = profileNamed('gatehouse-io') as { [key: string]: Plain };
    const { link, device } = await openOne(undefined, { profiles: { 'gatehouse-io': profile } });
    await using _link = link;
    device.behave = (request, answer) => (request[1] === 16 ? null : answer());
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(sent(link, 16)).toBe(1);
  });

  it('has another id than the one before, also when no one knows what became of that', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 16 ? null : reply;
    };
    // Carried out each time, as the device shows, though it never says so.
    expect(await link.execute('pulse', pulse())).toMatchObject({ relay: 2 });
    // Three misses are a spell offline.
    await link.clock.advance(60_000);
    expect(await link.execute('pulse', pulse({ relay: 3 }))).toMatchObject({ relay: 3 });
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 2, relay: 3 } });
  });

  it('has another id than one that the device may have taken without our knowing', async () => {
    const options = { devices: [{ unitId: 17 }], pollEveryMs: 60_000 };
    const { link, device } = await openOne(undefined, { options });
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 16 ? null : reply;
    };
    await expect(link.execute('pulse', pulse(), 60)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    device.behave = undefined;
    await link.execute('pulse', pulse({ relay: 3 }));
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 2, relay: 3 } });
    expect(device.device.pins.history.map(({ output }) => output)).toEqual([2, 3]);
  });

  it('has another id than one that somebody else has given', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    await link.execute('pulse', pulse());
    const theirs = framed(1, Buffer.from('10020000040800020005000000c8', 'hex'));
    device.device.answer(theirs, link.clock.monotonic());
    await link.clock.advance(1_000);
    await link.execute('pulse', pulse({ relay: 3 }));
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 3, relay: 3 } });
  });

  it.each([
    ['busy', 6],
    ['refused', 3],
  ])('whose first answer was lost is not denied because its repetition is %s', async (_, code) => {
    const { link, device } = await openOne();
    await using _link = link;
    let writes = 0;
    device.behave = (request, answer) => {
      const isLook = request[1] === 3 && request[3] === 2;
      // It shows late what it has taken: its relay is closed, and lastId is 0.
      if (isLook && writes === 1) return framed(17, [3, 16, 0, 4, 0, 0, 0, 0, 0, 1, ...Array(8).fill(0)]);
      if (request[1] !== 16) return answer();
      writes += 1;
      if (writes > 1) return framed(17, [0x90, code]);
      answer();
      return null;
    };
    expect(await link.execute('pulse', pulse())).toMatchObject({ timedBy: 'device' });
    expect(writes).toBe(2);
  });

  it('that the device takes without closing its relay is unknown', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.device.pins.break(true);
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(device.device.describe(0)).toMatchObject({ pulse: { id: 1, relay: 2 } });
    expect(sent(link, 16)).toBe(1);
    device.device.pins.break(false);
    expect(await link.execute('pulse', pulse({ relay: 3 }))).toMatchObject({ relay: 3 });
  });

  it('that the device takes without closing its relay is unknown, though its acknowledgement is lost', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.device.pins.break(true);
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 16 ? null : reply;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(sent(link, 16)).toBe(1);
  });

  it('that the device did not hear has no reply, and is not sent later', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => (request[1] === 16 ? null : answer());
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'NO_REPLY' });
    device.behave = undefined;
    await link.clock.advance(5_000);
    expect(device.device.pins.history).toEqual([]);
  });

  it('that was carried out and was opened by a power cut is unknown', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => {
      if (request[1] !== 16) return answer();
      if (device.device.pins.history.length > 0) return null;
      answer();
      device.device.restart(link.clock.monotonic());
      return null;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(device.device.pins.history).toHaveLength(2);
  });

  it('after which the device is silent is unknown', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    let isDead = false;
    device.behave = (request, answer) => {
      const reply = answer();
      isDead ||= request[1] === 16;
      return isDead ? null : reply;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  it('is not sent after its deadline, nor to a device that is gone', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    await expect(link.execute('pulse', pulse(), 0)).rejects.toMatchObject({ code: 'DEADLINE_PASSED' });
    device.behave = () => null;
    await link.clock.advance(5_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(sent(link, 16)).toBe(0);
  });
});

describe('a pulse of a bought relay board', () => {
  const hwId = 'bus-1-1';

  it('flashes a relay for the time asked, rounded up, and shows it', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    const answer = await link.execute('pulse', { hwId, relay: 5, milliseconds: 1_250 });
    expect(answer).toEqual({ relay: 5, milliseconds: 1_300, timedBy: 'device' });
    await link.clock.advance(500);
    expect(link.report(hwId)).toMatchObject({ levels: { output5: true }, pulse: { relay: 5 } });
    await link.clock.advance(2_000);
    const [on, off] = device.device.pins.history;
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeCloseTo(1_300);
  });

  it('is reported once: without an acknowledgement the relay shows what came of it', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 5 ? null : reply;
    };
    expect(await link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).toMatchObject({ relay: 5 });
    expect(sent(link, 5)).toBe(1);
    device.behave = (request, answer) => (request[1] === 5 ? null : answer());
    // Its relay is open, and would be so too after a power cut in mid-pulse: the board has no boot count.
    await expect(link.execute('pulse', { hwId, relay: 6, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    // That relay is closed already: it does not say.
    await expect(link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    expect(sent(link, 5)).toBe(3);
  });

  it('that the device accepts and takes long for is not ordered again, and counts when its relay shows it', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 5 ? framed(1, [0x85, 5]) : reply;
    };
    expect(await link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).toMatchObject({ relay: 5 });
    expect(sent(link, 5)).toBe(1);
    device.behave = (request, answer) => (request[1] === 5 ? framed(1, [0x85, 5]) : answer());
    await expect(link.execute('pulse', { hwId, relay: 6, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'BAD_REPLY',
    });
    expect(sent(link, 5)).toBe(2);
  });

  it.each([
    // A device may refuse what it has carried out, against the standard.
    [1, 'an illegal function'],
    [2, 'an illegal address'],
    [3, 'an illegal value'],
    [7, 'a negative acknowledgement'],
    [4, 'its own failure'],
    [6, 'busy'],
    [0x0a, 'no path behind a gateway'],
    [8, 'damaged memory'],
    [0x0b, 'the silence behind a gateway'],
    [0x41, 'what no edition names'],
  ])('that is answered with exception %d, %s, counts by what its relay shows', async (code) => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    const refused = framed(1, [0x85, code]);
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 5 ? refused : reply;
    };
    expect(await link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).toMatchObject({ relay: 5 });
    let isDead = false;
    device.behave = (request) => {
      isDead ||= request[1] === 5;
      return request[1] === 5 ? refused : null;
    };
    await expect(link.execute('pulse', { hwId, relay: 6, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    expect(isDead).toBe(true);
    expect(sent(link, 5)).toBe(2);
  });

  it.each([
    [1, 'REFUSED'],
    [2, 'REFUSED'],
    [3, 'REFUSED'],
    // Some devices answer so what they have carried out, and an open relay may have been opened by a power cut.
    [6, 'OUTCOME_UNKNOWN'],
    [0x0a, 'OUTCOME_UNKNOWN'],
  ])('that is answered with exception %d and leaves the relay open is %s', async (code, error) => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    device.behave = (request, answer) => (request[1] === 5 ? framed(1, [0x85, code]) : answer());
    const pulse = { hwId, relay: 5, milliseconds: 2_000 };
    await expect(link.execute('pulse', pulse)).rejects.toMatchObject({ code: error });
  });

  it('is not confirmed by the relay that an earlier, withdrawn pulse may have closed', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    const pulse = { hwId, relay: 5, milliseconds: 20_000 };
    // The first one is done; neither its reply nor a poll is heard.
    device.behave = (_request, answer) => {
      answer();
      return null;
    };
    await expect(link.execute('pulse', pulse, 60)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    device.behave = (request, answer) => (request[1] === 5 ? null : answer());
    await expect(link.execute('pulse', pulse)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(sent(link, 5)).toBe(2);
  });

  it('is not confirmed by the reply to a poll that was sent before it', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    const closed = framed(1, [1, 1, 0x20]);
    device.behave = () => null;
    await link.clock.advance(250);
    // The pulse is lost. What comes first afterwards is the reply to the poll before, when the relay was closed.
    let isLate = true;
    device.behave = (request, answer) => {
      if (request[1] === 5) return null;
      const reply = isLate ? closed : answer();
      isLate = false;
      return reply;
    };
    await expect(link.execute('pulse', { hwId, relay: 5, milliseconds: 20_000 })).rejects.toMatchObject({
      // Open as it was read afterwards; without a boot count that proves nothing.
      code: 'OUTCOME_UNKNOWN',
    });
    expect(isLate).toBe(false);
  });

  it('that was carried out and was opened by a power cut is unknown', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      if (request[1] !== 5) return reply;
      device.device.restart(link.clock.monotonic());
      return null;
    };
    await expect(link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
  });

  it('is not believed when only its echo answers', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    device.behave = (request, answer) => (request[1] === 5 ? request : answer());
    await expect(link.execute('pulse', { hwId, relay: 5, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'BAD_REPLY',
    });
  });

  it('has no time that is sent as plain on, 0xFF00', () => {
    const board = profileNamed('waveshare-relay-8') as { pulse: object };
    const withUnits = (unitsMax: number) =>
      profileSchema.safeParse({ ...board, pulse: { ...board.pulse, unitsMax } }).success;
    expect(withUnits(0xfeff)).toBe(true);
    expect(withUnits(0xff00)).toBe(false);
  });

  it('never shortens a pulse under way', async () => {
    const { link, device } = await openBoard('waveshare-relay-8');
    await using _ = link;
    await link.execute('pulse', { hwId, relay: 0, milliseconds: 5_000 });
    await link.execute('pulse', { hwId, relay: 0, milliseconds: 1_000 });
    await link.clock.advance(10_000);
    const [on, off] = device.device.pins.history;
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThanOrEqual(5_000);
  });

  it.each([
    ['a relay it does not have', { relay: 8 }],
    ['no time', { milliseconds: 0 }],
  ])('refuses %s', async (_, more) => {
    const { link } = await openBoard('waveshare-relay-8');
    await using _link = link;
    await expect(
      link.execute('pulse', { hwId, relay: 0, milliseconds: 1_000, ...more }),
    ).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });
});
