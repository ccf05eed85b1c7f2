/** What a poll costs the process that has the port, in a secure channel and in clear text. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from '../processes.ts';
import type { BenchTable } from '../table.ts';
import { addressesTo, type OsdpBus, openBenchBus, openGatewayOn, type Security } from './site.ts';

type Wire = Pick<OsdpBus, 'baudRate' | 'pacing'>;

const ADDRESSES = addressesTo(9);
/** Replies are there at once and in one piece, so that nearly all the time is work. */
const NO_WIRE: Wire = { baudRate: 230_400, pacing: 'none' };
const WIRE: Wire = { baudRate: 115_200, pacing: 'exact' };
const TARGET_MS = 0.2;
/** Until the compiler of Node has seen enough of it. */
const SETTLE_MS = 15_000;
/** Linux counts hundredths of a second: of so many polls that one of them is no matter. */
const SECONDS = 15;

export async function benchOsdpProcessor(): Promise<BenchTable> {
  const [plain, secure] = [await costMs('plain', NO_WIRE), await costMs('secure', NO_WIRE)];
  const onWire = { plain: await costMs('plain', WIRE), secure: await costMs('secure', WIRE) };
  return {
    title: `OSDP: processor time of the link's process per poll, ${ADDRESSES.length} devices as fast as they answer`,
    rows: [
      {
        what: 'secure, replies at once',
        figure: `${secure.toFixed(3)} ms; ${(secure / plain).toFixed(2)} of a plain one`,
        target: `≤ ${TARGET_MS} ms`,
        met: secure <= TARGET_MS,
      },
      { what: 'plain, replies at once', figure: `${plain.toFixed(3)} ms` },
      { what: `secure, ${WIRE.baudRate} baud byte by byte`, figure: `${onWire.secure.toFixed(3)} ms` },
      { what: `plain, ${WIRE.baudRate} baud byte by byte`, figure: `${onWire.plain.toFixed(3)} ms` },
    ],
    notes: [
      'All of it: reports and timers too, and what is left of the silence before a request once that is made: the thread is',
      'held for it, asleep but for its last 0.07 ms.',
      'A UART or USB adapter hands over a reply in one or a few pieces, not in fifteen.',
    ],
  };
}

async function costMs(security: Security, wire: Wire): Promise<number> {
  const plan = { ...wire, security, addresses: ADDRESSES };
  await using bus = await openBenchBus(plan);
  await using gateway = await openGatewayOn(bus, plan);
  await sleep(SETTLE_MS);
  await bus.setBus({ resetStats: true });
  const before = cpuSeconds(gateway.hostPid());
  await sleep(SECONDS * 1_000);
  const { exchanges } = await bus.stats();
  return (1_000 * (cpuSeconds(gateway.hostPid()) - before)) / exchanges;
}
