import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const run = (program: string, ...args: string[]) =>
  spawnSync(process.execPath, [join(import.meta.dirname, program, 'main.ts'), ...args], {
    encoding: 'utf8',
    timeout: 30_000,
    input: '',
  });

it.each(['bus', 'zigbee', 'encoder'])('the program of %s says how it is used', (program) => {
  const { status, stdout } = run(program, '--help');
  expect([status, stdout]).toEqual([0, expect.stringContaining(`node test/simulators/${program}/main.ts`)]);
});

it('a simulation without a plan says how it is used, as an error', () => {
  const { status, stderr } = run('bus');
  expect([status, stderr]).toEqual([2, expect.stringContaining('PLAN.json')]);
});
