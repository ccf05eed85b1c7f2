/** The simulated bus itself: its transactions against the time the wire would take. Other benches build on it. */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { openSimulatedBus } from '../simulators/bus/bus.ts';
import { framed, silenceMs } from '../simulators/bus/modbus/frame.ts';
import { type BusPlan, characterMs } from '../simulators/bus/plan.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

const UNIT = 17;
const TURNAROUND_MS = 1;
/** The poll of a gatehouse-io: ten registers. */
const REGISTERS = 10;
const REQUEST = framed(UNIT, [3, 0, 0, 0, REGISTERS]);
const REPLY_LENGTH = 5 + 2 * REGISTERS;
const WARM_UP = 10;
/** At 9600 baud, of the median: what a bench that says "97 % of the wire limit" has to know exactly. */
const TARGET = 0.01;

export async function benchSimulatedBus(): Promise<BenchTable> {
  const rows: Row[] = [];
  for (const [baudRate, transactions] of [
    [9_600, 150],
    [19_200, 300],
    [115_200, 600],
  ] as const) {
    const { expectedMs, tookMs } = await transact(baudRate, transactions);
    const off = (share: number) => quantile(tookMs, share) / expectedMs - 1;
    const percent = (share: number) => `${(100 * off(share)).toFixed(2)} %`;
    rows.push({
      what: `${baudRate} 8E1, ${expectedMs.toFixed(3)} ms by the formula`,
      figure: `p50 +${percent(0.5)}, p99 +${percent(0.99)}`,
      ...(baudRate === 9_600 && { target: 'p50 within 1 %', met: Math.abs(off(0.5)) <= TARGET }),
    });
  }
  return {
    title: 'Simulated bus, paced byte by byte: one poll of ten registers after the other',
    rows,
    notes: [
      'Seen by a blocking reader at the other end of the pty. Formula: characters, t3.5, turnaround of 1 ms.',
    ],
  };
}

async function transact(
  baudRate: number,
  transactions: number,
): Promise<{ expectedMs: number; tookMs: number[] }> {
  const line = { baudRate, parity: 'even', stopBits: 1 } as const;
  const plan: BusPlan = {
    ...line,
    protocol: 'modbus',
    pacing: 'exact',
    devices: [{ address: UNIT, kind: 'gatehouse-io', turnaroundMs: TURNAROUND_MS }],
  };
  await using bus = await openSimulatedBus(plan);
  const character = characterMs(line);
  const silence = silenceMs(character);
  const port = openSync(bus.port, constants.O_RDWR | constants.O_NOCTTY);
  const tookMs: number[] = [];
  for (let transaction = -WARM_UP; transaction < transactions; transaction += 1) {
    const begun = performance.now();
    writeSync(port, REQUEST);
    readFully(port, REPLY_LENGTH);
    if (transaction >= 0) tookMs.push(performance.now() - begun);
    const free = performance.now() + silence;
    while (performance.now() < free);
  }
  closeSync(port);
  const { collisions, badFrames, shortGaps } = await bus.stats();
  if (collisions + badFrames + shortGaps > 0)
    throw new Error(`${collisions} collisions, ${badFrames} bad frames, ${shortGaps} short gaps`);
  return {
    expectedMs: (REQUEST.length + REPLY_LENGTH) * character + silence + TURNAROUND_MS,
    tookMs,
  };
}

function readFully(port: number, length: number): void {
  const bytes = Buffer.alloc(length);
  for (let read = 0; read < length; ) read += readSync(port, bytes, read, length - read, null);
}
