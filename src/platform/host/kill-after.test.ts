import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const MODULE = JSON.stringify(join(import.meta.dirname, 'kill-after.ts'));

function run(script: string) {
  const source = `const { killAfter } = await import(${MODULE}); ${script}`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', source], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGTERM',
  });
}

it('ends a process whose event loop stands still in a call, with its last words', () => {
  const { signal, stderr } = run(
    "killAfter(1, 'last words\\n'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
  );
  expect([signal, stderr]).toEqual(['SIGKILL', 'last words\n']);
});

it('lets a process end that has nothing left to do', () => {
  expect(run("killAfter(3_600_000, 'never');")).toMatchObject({ status: 0, stderr: '' });
});
