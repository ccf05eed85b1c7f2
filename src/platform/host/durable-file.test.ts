import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { makeFolder } from './durable-file.ts';

it('makes a folder and those above it, for this user alone', () => {
  const folder = temporaryFolder();
  makeFolder(join(folder, 'a', 'b'));
  for (const made of ['a', 'a/b']) expect(statSync(join(folder, made)).mode & 0o777).toBe(0o700);
});

it('leaves a folder that is there as it is', () => {
  const folder = join(temporaryFolder(), 'a');
  mkdirSync(folder, { mode: 0o755 });
  makeFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o755);
});

it('gives up where no folder can be made', () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  expect(() => makeFolder(file)).toThrow('EEXIST');
  expect(() => makeFolder(join(file, 'a'))).toThrow('EEXIST');
  expect(() => makeFolder('/proc/gatehouse/a')).toThrow('ENOENT');
});
