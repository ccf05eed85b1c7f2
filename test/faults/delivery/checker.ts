/** Reads what each side has recorded, and says what is wrong. Offline: it knows nothing of how it came. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { temporaryFolder } from '../../temporary.ts';
import type { Step } from './recorder.ts';

const CONSUMER = join(import.meta.dirname, '../../../docs/examples/consumer.js');

interface Delivered {
  id: string;
  source: string;
  subject: string;
  sequence?: string;
}

/** `recorded`: what the gateway said is on its disk. `delivered`: what a sink took, in order, repeats and all. */
export function faultsOf(recorded: readonly Step[], delivered: readonly string[]): string[] {
  const faults: string[] = [];
  const bodies = new Map<string, string>();
  const newest = new Map<string, number>();
  const keys = new Set<string>();
  for (const text of delivered) {
    const { replayed: _, ...event } = JSON.parse(text) as Delivered & { replayed: boolean };
    const { id, source, subject, sequence } = event;
    const body = JSON.stringify(event);
    const before = bodies.get(id);
    if (before !== undefined) {
      if (before !== body) faults.push(`${subject}: a repeat differs`);
      continue;
    }
    bodies.set(id, body);
    if (keys.has(subject)) faults.push(`${subject} has two events of a final status`);
    keys.add(subject);
    const n = Number(sequence);
    if (n <= (newest.get(source) ?? 0)) faults.push(`${source}: ${n} after ${newest.get(source)}`);
    newest.set(source, n);
  }
  for (const { encoder, n } of recorded)
    if (!keys.has(`${encoder}-${n}`)) faults.push(`${encoder}-${n} is lost`);
  return [...faults, ...faultsByConsumer(delivered)];
}

/** What the example consumer of the documentation finds missing. */
function faultsByConsumer(delivered: readonly string[]): string[] {
  const { status, stderr } = spawnSync(process.execPath, [CONSUMER, join(temporaryFolder(), 'state')], {
    input: delivered.map((line) => `${line}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  return status === 0 ? [] : [`the example consumer: ${stderr}`];
}
