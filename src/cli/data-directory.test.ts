import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { canMount, smallDisk } from '../../test/small-disk.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { holdDataDirectory } from './data-directory.ts';

/** Another process that holds the folder and has a file of it open, as a gateway its database; resolves once it does. */
async function holder(folder: string) {
  const module = JSON.stringify(join(import.meta.dirname, 'data-directory.ts'));
  const script = `const { holdDataDirectory } = await import(${module});
    globalThis.lock = holdDataDirectory(${JSON.stringify(folder)});
    (await import('node:fs')).openSync(${JSON.stringify(join(folder, 'gatehouse.db'))}, 'a'); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

it.each([
  { what: 'removed', move: (lock: string) => rmSync(lock) },
  { what: 'renamed', move: (lock: string) => renameSync(lock, `${lock}.old`) },
  {
    what: 'moved to another folder',
    move: (lock: string) => renameSync(lock, join(temporaryFolder(), 'lock')),
  },
])('is refused to a second holder when the lock file of the first was $what', async ({ move }) => {
  const folder = temporaryFolder();
  const child = await holder(folder);
  expect(() => holdDataDirectory(folder)).toThrow(/another Gatehouse is running on/);
  move(join(folder, 'gatehouse.lock'));
  expect(() => holdDataDirectory(folder)).toThrow(
    `as process ${child.pid}, and its gatehouse.lock was removed or renamed`,
  );
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  holdDataDirectory(folder)[Symbol.dispose]();
});

it('names a lock file that is a link', () => {
  const folder = temporaryFolder();
  const lock = join(folder, 'gatehouse.lock');
  symlinkSync(folder, lock);
  expect(() => holdDataDirectory(folder)).toThrow(`${lock} is a link to ${folder}: put the file`);
});

it.skipIf(!canMount())('says that its disk can only be read, and names no rights', () => {
  const disk = smallDisk(65_536);
  holdDataDirectory(disk.folder)[Symbol.dispose]();
  disk.setReadOnly(true);
  for (const folder of [disk.folder, join(disk.folder, 'below', 'data')])
    expect(() => holdDataDirectory(folder)).toThrow(
      new RegExp(`^dataDirectory: ${folder} cannot be used: its disk can only be read now: .*remount,rw`),
    );
});
