import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/temporary.ts';
import { holdDataDirectory } from './data-directory.ts';

/** Another process that holds the folder; resolves once it does. */
async function holder(folder: string) {
  const module = JSON.stringify(join(import.meta.dirname, 'data-directory.ts'));
  const script = `const { holdDataDirectory } = await import(${module});
    globalThis.lock = holdDataDirectory(${JSON.stringify(folder)}); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

it('is not let to a second holder when the lock file of the first was removed', async () => {
  const folder = temporaryFolder();
  const child = await holder(folder);
  expect(() => holdDataDirectory(folder)).toThrow(/another Gatehouse is running on/);
  rmSync(join(folder, 'gatehouse.lock'));
  expect(() => holdDataDirectory(folder)).toThrow(
    `as process ${child.pid}, and its gatehouse.lock was removed`,
  );
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  holdDataDirectory(folder)[Symbol.dispose]();
});
