/** 500 encoders that all lost the gateway at once: how long after its start until the last one is back, and what it takes of memory. */
import { INSTANT } from '../simulators/encoder/commands.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { connectEncoders, residentMegabytes } from './desk.ts';
import { type BenchTable, quantile } from './table.ts';
import { until } from './zigbee/waiting.ts';

const ENCODERS = 500;
const STARTS = 3;
/** They wait longer after each failure, up to 2 s: without that five hundred have the machine to themselves while nothing listens. */
const TIMINGS = { ...INSTANT, reconnectMs: 200 };
const BACK_TARGET_MS = 5_000;
const RSS_TARGET_MB = 250;
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 50;

export async function benchReconnect(): Promise<BenchTable> {
  await using site = await openTestSite();
  await using _encoders = await connectEncoders(site, undefined, ENCODERS, TIMINGS);
  const back: number[] = [];
  const resident: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    await site.daemon.kill();
    await site.daemon.start();
    const begun = performance.now();
    await until('all encoders are back', PATIENCE_MS, LOOK_EVERY_MS, async () => {
      const { body } = await site.daemon.callLocally('GET', '/local/status');
      return (body.encoders as { connected: number }).connected === ENCODERS;
    });
    back.push(performance.now() - begun);
    resident.push(residentMegabytes(site.daemon.pid));
  }
  const [slowest, most] = [Math.max(...back), Math.max(...resident)];
  return {
    title: `${ENCODERS} encoders come back after kill -9 and a start, ${STARTS} times`,
    rows: [
      {
        what: 'the gateway serves → the last encoder is connected',
        figure: `${back.map((milliseconds) => (milliseconds / 1_000).toFixed(1)).join(', ')} s`,
        target: `≤ ${BACK_TARGET_MS / 1_000} s`,
        met: slowest <= BACK_TARGET_MS,
      },
      {
        what: 'memory of the daemon then',
        figure: `${resident.join(', ')} MB`,
        target: `≤ ${RSS_TARGET_MB} MB`,
        met: most <= RSS_TARGET_MB,
      },
    ],
    notes: [`the encoders are one process; median ${quantile(back, 0.5).toFixed(0)} ms`],
  };
}
