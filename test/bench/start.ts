/** From the start of the process to its first answer on the interface, with an installation that exists already. */
import { openTestSite } from '../simulators/test-site.ts';
import { residentMegabytes } from './desk.ts';
import { type BenchTable, quantile } from './table.ts';

const STARTS = 7;
const START_TARGET_MS = 600;

export async function benchStart(): Promise<BenchTable> {
  // Opening the site is the first start, which makes the database and the certificates.
  await using site = await openTestSite();
  const { daemon } = site;
  const starts: number[] = [];
  const resident: number[] = [];
  for (let count = 0; count < STARTS; count += 1) {
    await daemon.kill();
    const begun = performance.now();
    await daemon.start();
    starts.push(performance.now() - begun);
    resident.push(residentMegabytes(daemon.pid));
  }
  const median = quantile(starts, 0.5);
  return {
    title: `Start: ${STARTS} warm starts after kill -9`,
    rows: [
      {
        what: 'process start → first answer over HTTPS',
        figure: `median ${Math.round(median)} ms, slowest ${Math.round(Math.max(...starts))} ms`,
        target: `≤ ${START_TARGET_MS} ms`,
        met: median <= START_TARGET_MS,
      },
      { what: 'memory when ready, nobody connected', figure: `median ${quantile(resident, 0.5)} MB` },
    ],
  };
}
