/**
 * What a durable change costs beside the framework alone: processor time per PUT of a door, with token, role,
 * validation, group commit and audit, and of a bare Hono that echoes JSON. Both over plain HTTP, in turns, in one run.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openChild } from '../simulators/child.ts';
import { NODE_FLAGS } from '../simulators/daemon-process.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { sendInTurn, type Target } from './load.ts';
import { DOORS, storeSite, WIRING } from './stored-site.ts';
import { type BenchTable, quantile } from './table.ts';

const ROUNDS = 5;
const REQUESTS = 8_000;
/** Until the compiler has seen it all. */
const WARM_UP_REQUESTS = 16_000;
/** Enough that a commit holds several changes, as it does under load. */
const CLIENTS = 16;
const RATIO_TARGET = 5;
/** Of /proc/PID/stat: USER_HZ, which is 100 on every Linux. */
const TICK_MS = 10;

export async function benchApi(): Promise<BenchTable> {
  await using site = await openTestSite({ config: { http: { plain: true } }, more: WIRING });
  const paths = await storeSite(site.daemon);
  await using bare = openChild<{ port: number }>({
    args: [...NODE_FLAGS, join(import.meta.dirname, 'bare-hono.ts')],
  });
  const { port } = await bare.waitFor(() => true);
  const tokens = [site.tokens['front-desk-admin']];
  const ours = { pid: site.daemon.pid, target: { baseUrl: site.daemon.baseUrl, paths, tokens } };
  const theirs = { pid: bare.pid, target: { baseUrl: `http://127.0.0.1:${port}`, paths, tokens } };
  const rounds: { durable: number; echo: number; ratio: number }[] = [];
  for (const { target } of [ours, theirs])
    await sendInTurn(target, { requests: WARM_UP_REQUESTS, clients: CLIENTS });
  for (let round = 0; round < ROUNDS; round += 1) {
    const durable = await cost(ours);
    const echo = await cost(theirs);
    rounds.push({ durable, echo, ratio: durable / echo });
  }
  const median = (of: (round: (typeof rounds)[number]) => number) => quantile(rounds.map(of), 0.5);
  const ratio = median((round) => round.ratio);
  const each = rounds.map((round) => round.ratio.toFixed(1)).join(', ');
  return {
    title: `A durable change: ${ROUNDS} rounds of ${REQUESTS} PUTs of ${DOORS} doors, ${CLIENTS} clients`,
    rows: [
      { what: 'processor time per durable PUT', figure: `${microseconds(median(({ durable }) => durable))}` },
      {
        what: 'processor time per PUT of a bare Hono',
        figure: `${microseconds(median(({ echo }) => echo))}`,
      },
      {
        what: 'the first, in units of the second',
        figure: `${ratio.toFixed(1)} × (${each})`,
        target: `≤ ${RATIO_TARGET} ×`,
        met: ratio <= RATIO_TARGET,
      },
    ],
    notes: ['medians of the rounds; both without TLS, with the same flags of Node'],
  };
}

/** Milliseconds of processor time per request. */
async function cost({ pid, target }: { pid: number; target: Target }): Promise<number> {
  const before = processorMs(pid);
  await sendInTurn(target, { requests: REQUESTS, clients: CLIENTS });
  return (processorMs(pid) - before) / REQUESTS;
}

/** Of all threads, in user and kernel mode (proc(5), fields 14 and 15). */
function processorMs(pid: number): number {
  // The second field is a name in brackets, which may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function microseconds(milliseconds: number): string {
  return `${Math.round(milliseconds * 1_000)} µs`;
}
