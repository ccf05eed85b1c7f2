/**
 * `npm run faults -- delivery | takeover [--seeds N] [--from N] [--hours H]`: the campaigns of test/faults with further seeds; `--hours` goes on
 * with new seeds for so long. Exits 1 at the first seed that fails, and names it.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const CAMPAIGNS: Record<string, string> = {
  delivery: 'test/faults/delivery.test.ts',
  takeover: 'test/faults/takeover.test.ts',
};
/** Seeds of one run of the tests. */
const TOGETHER = 5;

const options = { seeds: { type: 'string' }, from: { type: 'string' }, hours: { type: 'string' } } as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const file = CAMPAIGNS[positionals[0] ?? ''];
if (!file) {
  console.error(
    `usage: npm run faults -- ${Object.keys(CAMPAIGNS).join(' | ')} [--seeds N] [--from N] [--hours H]`,
  );
  process.exit(2);
}
const end = performance.now() + Number(values.hours ?? 0) * 3_600_000;
let next = Number(values.from ?? 1);
const last = next + Number(values.seeds ?? 20) - 1;
const wanted = () => (values.hours === undefined ? next <= last : performance.now() < end);
while (wanted()) {
  const count = values.hours === undefined ? Math.min(TOGETHER, last - next + 1) : TOGETHER;
  const seeds = Array.from({ length: count }, (_, index) => next + index);
  const env = { ...process.env, FAULT_SEEDS: seeds.join(',') };
  const argv = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', file];
  const { status } = spawnSync(process.execPath, argv, { cwd: ROOT, env, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
  next += count;
}
console.log(`seeds ${values.from ?? 1} to ${next - 1}: nothing was lost`);
