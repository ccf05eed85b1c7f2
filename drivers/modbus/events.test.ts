/** Inputs and alarms of simulated devices, on a manual clock. */
import { describe, expect, it } from 'vitest';
import { io, openBoard, openOne, settingsWith } from '../../test/drivers/modbus/link.ts';

/** A board whose counters have sixteen bits, with its memory of inputs in use. */
async function openCounting() {
  const { link, device } = await openBoard('expertdaq-ex9060-m');
  const settings = settingsWith({ pins: ['input2'] });
  await link.execute('applySettings', { hwId: 'bus-1-1', settingsVersion: 1, settings });
  return { link, device };
}

describe('inputs and alarms', () => {
  const remembering = () => io('GIO-0001', { settings: { useInputPinMemory: true, ioPins: 0x000f } });

  it('are reported by the counters of the device, round 16, over a spell offline too', async () => {
    const { link, device } = await openOne(remembering());
    await using _ = link;
    const press = (times: number) => {
      for (let time = 0; time < times; time += 1) {
        device.device.pins.setInput(1, true, link.clock.monotonic());
        device.device.pins.setInput(1, false, link.clock.monotonic());
      }
    };
    press(15);
    await link.clock.advance(500);
    device.behave = () => null;
    await link.clock.advance(3_000);
    press(3);
    device.behave = undefined;
    await link.clock.advance(60_000);
    expect(link.events.map(({ kind, data }) => [kind, data])).toMatchObject([
      ['input', { hwId: 'GIO-0001', input: 'input1', activations: 15, total: 15 }],
      ['input', { hwId: 'GIO-0001', input: 'input1', activations: 3, total: 18 }],
    ]);
    expect(new Set(link.events.map(({ id }) => id)).size).toBe(2);
    expect(link.report('GIO-0001')?.edges?.input1?.total).toBe(18);
  });

  it.each([
    ['counters of four bits', () => openOne(remembering())],
    ['wide ones', () => openCounting()],
  ])('are not made by an old reply that is handed on once more (%s)', async (_, open) => {
    const { link, device } = await open();
    await using _link = link;
    const first = new Map<string, Uint8Array>();
    let again = new Map<string, Uint8Array>();
    device.behave = (request, answer) => {
      const asked = Buffer.from(request).toString('hex');
      const [reply, old] = [answer(), again.get(asked)];
      again.delete(asked);
      if (reply && !first.has(asked)) first.set(asked, reply);
      return old ?? reply;
    };
    await link.clock.advance(1_000);
    for (let press = 1; press <= 3; press += 1) {
      device.device.pins.setInput(2, true, link.clock.monotonic());
      device.device.pins.setInput(2, false, link.clock.monotonic());
      await link.clock.advance(1_000);
      again = new Map(first);
      await link.clock.advance(1_000);
    }
    expect(link.events.map(({ data }) => (data as { activations: number }).activations)).toEqual([1, 1, 1]);
  });

  it('are counted from poll to poll without the pin memory, and not where a pin is not in use', async () => {
    const { link, device } = await openOne(io('GIO-0001', { settings: { ioPins: 0x0001 } }));
    await using _ = link;
    for (const active of [true, false, true]) {
      device.device.pins.setInput(0, active, 0);
      device.device.pins.setInput(2, active, 0);
      await link.clock.advance(500);
    }
    expect(link.events.map(({ data }) => data)).toMatchObject([
      { input: 'input0', activations: 1, total: 1 },
      { input: 'input0', activations: 1, total: 2 },
    ]);
  });

  it('of a device that has restarted begin again', async () => {
    const { link, device } = await openOne(remembering());
    await using _ = link;
    device.device.pins.pulseInput(0, 10, link.clock.monotonic());
    await link.clock.advance(500);
    device.device.restart(link.clock.monotonic());
    await link.clock.advance(2_000);
    expect(link.events).toHaveLength(1);
  });

  it('do not hold up polls while they are stored, and lose nothing', async () => {
    const stored: unknown[] = [];
    let release = Promise.withResolvers<void>();
    const { link, device } = await openOne(remembering(), {
      async emit(event) {
        await release.promise;
        stored.push(event.data);
      },
    });
    await using _ = link;
    const polls = link.wire.sent.length;
    for (let press = 0; press < 5; press += 1) {
      device.device.pins.pulseInput(3, 50, link.clock.monotonic());
      device.device.alarm({ tamper: press % 2 === 0 });
      await link.clock.advance(500);
    }
    expect(link.wire.sent.length - polls).toBeGreaterThan(10);
    release.resolve();
    release = Promise.withResolvers<void>();
    release.resolve();
    await link.clock.advance(100);
    expect(stored).toMatchObject([
      { input: 'input3', activations: 1, total: 1 },
      { alarm: 'tamper', raised: true },
      { input: 'input3', activations: 4, total: 5 },
    ]);
    expect(link.report('GIO-0001')).toMatchObject({ tamper: true, edges: { input3: { total: 5 } } });
  });

  it('report tamper and supply faults, raised and cleared', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.device.alarm({ supplyFault: true });
    await link.clock.advance(500);
    device.device.alarm({ supplyFault: false });
    await link.clock.advance(500);
    expect(link.events.map(({ kind, data }) => [kind, data])).toMatchObject([
      ['alarm', { hwId: 'GIO-0001', alarm: 'supply', raised: true }],
      ['alarm', { hwId: 'GIO-0001', alarm: 'supply', raised: false }],
    ]);
  });

  it('of a bought board are read by functions 1 and 2', async () => {
    const { link, device } = await openBoard('waveshare-io-8');
    await using _ = link;
    device.device.pins.setInput(3, true, 0);
    await link.clock.advance(1_000);
    expect(link.report('bus-1-1')).toMatchObject({ levels: { input3: true, input0: false, output0: false } });
    expect(link.events.map(({ data }) => data)).toMatchObject([
      { hwId: 'bus-1-1', input: 'input3', activations: 1 },
    ]);
  });

  describe.each([
    ['a Gatehouse controller with its pin memory', () => openOne(remembering())],
    ['one without', () => openOne(io('GIO-0001', { settings: { ioPins: 0x000f } }))],
    ['a bought board', () => openBoard('waveshare-io-8')],
  ])('of %s', (_, open) => {
    it('count from the poll before, however long nothing has changed', async () => {
      const { link, device } = await open();
      await using _link = link;
      await link.clock.advance(12_000);
      const pressedAt = link.clock.monotonic();
      device.device.pins.setInput(1, true, pressedAt);
      await link.clock.advance(500);
      const [{ since }] = link.events.map(({ data }) => data) as [{ since: number }];
      expect([since <= pressedAt, pressedAt - since < 500]).toEqual([true, true]);
    });

    it('count from before a spell offline', async () => {
      const { link, device } = await open();
      await using _link = link;
      await link.clock.advance(12_000);
      const silentFrom = link.clock.monotonic();
      device.behave = () => null;
      await link.clock.advance(3_000);
      device.device.pins.setInput(1, true, link.clock.monotonic());
      device.behave = undefined;
      await link.clock.advance(60_000);
      const [{ since }] = link.events.map(({ data }) => data) as [{ since: number }];
      expect([since <= silentFrom, silentFrom - since < 500]).toEqual([true, true]);
    });
  });
});
