/** Ten thousand commands, by the whole link, over a wire that loses one frame of twenty and damages three of a hundred. */
import { fireDisturbed } from '../../drivers/osdp/disturbed.ts';
import type { BenchTable } from '../table.ts';

const COMMANDS = 10_000;
const SEED = 485;

export async function benchOsdpFaults(): Promise<BenchTable> {
  const begun = performance.now();
  const { failures, outputs, ordered, lost, damaged, sessions, disconnections, alarms } = await fireDisturbed(
    COMMANDS,
    SEED,
  );
  const isSame = outputs.length === ordered.length && ordered.every((relay, at) => relay === outputs[at]);
  return {
    title: `OSDP: ${COMMANDS} relays fired in a secure channel over a bad wire`,
    rows: [
      {
        what: 'each carried out once, in order, and known to be',
        figure: `${failures.length} errors; ${outputs.length} carried out${isSame ? '' : ', not those that were ordered'}`,
        target: 'no error, none twice',
        met: failures.length === 0 && isSame,
      },
      {
        what: 'the session',
        figure: `${sessions} in all, ${disconnections} times gone, ${alarms.length} alarms`,
        target: 'never gone, no alarm',
        met: disconnections === 0 && alarms.length === 0,
      },
    ],
    notes: [
      `${lost} frames were lost and ${damaged} damaged, in both directions. The time of the wire is a manual clock's: it took ${((performance.now() - begun) / 1_000).toFixed(0)} s.`,
    ],
  };
}
