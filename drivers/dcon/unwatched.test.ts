/** A module that is let go while a pulse of it is only beginning. On a manual clock, 9600 baud. */
import { describe, expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
const LOBBY_2 = { address: 2, hwId: 'lobby-02' };
const pulse = { hwId: LOBBY_2.hwId, relay: 0, milliseconds: 60_000 };

/** Module 1 is configured, and keeps `~**` coming; module 2 is watched. */
async function openBench() {
  const bench = await openTestDriver({ 1: I_7060, 2: I_7060 }, { options: { devices: [{ address: 1 }] } });
  await bench.settled(bench.execute('watch', { devices: [LOBBY_2] }));
  await bench.clock.advance(3_000);
  const begin = () => bench.execute('pulse', pulse).catch((error: unknown) => error);
  const on = async () => {
    for (let waited = 0; bench.modules.module(2).now().outputs === 0; waited += 1) {
      if (waited > 1_000) throw new Error('it was not switched on');
      await bench.clock.advance(1);
    }
  };
  return Object.assign(bench, { begin, on });
}

describe('a module that is let go', () => {
  it('has its output off though the pulse was not confirmed yet', async () => {
    await using bench = await openBench();
    const pending = bench.begin();
    await bench.on();
    await bench.execute('watch', { devices: [] });
    await bench.settled(pending);
    await bench.clock.advance(5_000);
    expect(bench.report(LOBBY_2.hwId)).toMatchObject({ connected: false });
    expect(bench.modules.module(2).now()).toEqual({ outputs: 0, timedOut: false });
  });

  it('takes no pulse any more once its outputs are being switched off', async () => {
    await using bench = await openBench();
    const first = bench.begin();
    await bench.settled(first);
    await bench.execute('watch', { devices: [] });
    const second = bench.begin();
    expect(await bench.settled(second)).toMatchObject({ code: 'DEVICE_OFFLINE' });
    await bench.clock.advance(5_000);
    expect(bench.modules.module(2).now()).toEqual({ outputs: 0, timedOut: false });
  });

  it('is left to its watchdog when OFF cannot be sent, and nothing keeps that from running out', async () => {
    await using bench = await openBench();
    const module = bench.modules.module(2);
    await bench.settled(bench.begin());
    module.mute = Number.POSITIVE_INFINITY;
    module.stuck = 1;
    await bench.execute('watch', { devices: [] });
    await bench.clock.advance(30_000);
    expect(module.now()).toEqual({ outputs: 0, timedOut: true });
    expect(bench.report(LOBBY_2.hwId)).toMatchObject({ connected: false });
    // Module 1 is fed again.
    await bench.clock.advance(10_000);
    expect(bench.modules.module(1).now().timedOut).toBe(false);
  });

  it('has its outputs off when the driver is stopped before the pulse was confirmed', async () => {
    await using bench = await openBench();
    const pending = bench.begin();
    await bench.on();
    bench.stop.abort(new Error('the gateway stops'));
    await bench.settled(bench.run);
    await bench.settled(pending);
    expect(bench.modules.module(2).now()).toEqual({ outputs: 0, timedOut: false });
  });
});
