/** A refusal of a switching command: what it proves, and what it does not. On a manual clock. */
import { describe, expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
const ADAM_4068 = { name: '4068', kind: 'safety' } as const;

const pulse = (milliseconds: number) => ({ hwId: 'lobby-01', relay: 0, milliseconds });

describe('a pulse', () => {
  it.each([I_7060, ADAM_4068])(
    'is confirmed when $name closes its relay, loses the answer, and refuses the repetition',
    async (given) => {
      await using bench = await openTestDriver({ 1: given });
      await bench.clock.advance(2_000);
      const module = bench.modules.module(1);
      const pending = bench.execute('pulse', pulse(1_000));
      Object.assign(module, { mute: 1, refusals: 1 });
      await expect(bench.settled(pending)).resolves.toMatchObject({ relay: 0 });
      expect(module.now().outputs).toBe(1);
      await bench.clock.advance(1_500);
      expect(module.now().outputs).toBe(0);
    },
  );

  it('is refused when the module answers the first attempt with a refusal, and is sent once', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    const pending = bench.execute('pulse', pulse(1_000)).catch((error: unknown) => error);
    module.refusals = 1;
    expect(await bench.settled(pending)).toMatchObject({ code: 'REFUSED' });
    expect(module.now().outputs).toBe(0);
    expect(bench.sentAt('#011001')).toHaveLength(1);
  });

  it.each([I_7060, ADAM_4068])(
    'is confirmed when $name closes its relay and says that it does not',
    async (given) => {
      await using bench = await openTestDriver({ 1: given });
      await bench.clock.advance(2_000);
      const module = bench.modules.module(1);
      Object.assign(module, { refusals: 1, refusesWhatItDoes: true });
      expect(await bench.settled(bench.execute('pulse', pulse(1_000)))).toMatchObject({ relay: 0 });
      expect(module.now().outputs).toBe(1);
      expect(bench.sentAt('#011001')).toHaveLength(1);
      await bench.clock.advance(1_500);
      expect(module.now().outputs).toBe(0);
    },
  );
});
