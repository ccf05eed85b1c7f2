/** The whole link over a bad wire. OSDP_COMMANDS makes it longer: `npm run bench -- osdp-faults` fires ten thousand. */
import { expect, it } from 'vitest';
import { fireDisturbed } from '../../test/drivers/osdp/disturbed.ts';

const COMMANDS = Number(process.env.OSDP_COMMANDS ?? 1_000);
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_121);

it(
  'fires each relay once, without an error, though every twentieth frame is lost and more are damaged',
  async () => {
    const { outputs, ordered, failures, lost, damaged, sessions, alarms, disconnections } =
      await fireDisturbed(COMMANDS, SEED);
    expect(failures).toEqual([]);
    expect(outputs).toEqual(ordered);
    expect({ alarms, disconnections }).toEqual({ alarms: [], disconnections: 0 });
    expect(lost).toBeGreaterThan(COMMANDS / 20);
    expect(damaged).toBeGreaterThan(COMMANDS / 40);
    // A damaged frame has a CRC that is right once in a while.
    expect(sessions).toBeLessThanOrEqual(1 + Math.ceil(COMMANDS / 500));
  },
  60_000 + 20 * COMMANDS,
);
