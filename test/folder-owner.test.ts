/**
 * Commands that root runs in the data directory of a compromised service: what its user has planted there leads nowhere.
 * A root of its own would show more; each link here points to a file that stands for one of root's.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { ownerOf } from '../src/cli/folder-owner.ts';
import { openTestGateway } from './gateway.ts';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 120_000 });

const NOBODY = 65_534;
/** A pair of `gatehouse backup key`, for tests alone. */
const SECRET = 'AGE-SECRET-KEY-1YNY5P8GSYD2FQ4N5NKJVAQSU49JMWYH7VNWES2UL7CSUSQMPMNCSQ260XN';
const PUBLIC = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';
const isRoot = process.getuid?.() === 0;

/** The closed data directory of a service that runs as no one, and a folder of root's beside it. */
async function service() {
  const gateway = await openTestGateway();
  await gateway.close();
  const { folder, dataDirectory, configFile } = gateway;
  chmodSync(folder, 0o755);
  rmSync(join(dataDirectory, 'backups'), { recursive: true, force: true });
  for (const path of ['.', ...readdirSync(dataDirectory, { recursive: true, encoding: 'utf8' })])
    chownSync(join(dataDirectory, path), NOBODY, NOBODY);
  const roots = join(folder, 'roots');
  mkdirSync(roots, { mode: 0o700 });
  writeFileSync(join(roots, 'shadow'), 'root', { mode: 0o600 });
  const command = (...argv: string[]) => {
    const start = join(import.meta.dirname, '../src/start.js');
    const { status, stdout, stderr } = spawnSync(process.execPath, [start, ...argv, '--config', configFile], {
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const identity = join(folder, 'key.txt');
  writeFileSync(identity, SECRET);
  return {
    folder,
    dataDirectory,
    roots,
    command,
    backUp: (...more: string[]) => command('backup', '--recipient', PUBLIC, ...more),
    restore: (archive: string) => command('restore', archive, '--identity', identity, '--yes'),
  };
}

function expectUntouched(roots: string): void {
  expect(readdirSync(roots)).toEqual(['shadow']);
  expect(readFileSync(join(roots, 'shadow'), 'utf8')).toBe('root');
  for (const path of [roots, join(roots, 'shadow')]) expect(statSync(path).uid, path).toBe(0);
}

describe.skipIf(!isRoot)('root', () => {
  it('backs up and restores with the rights of the service, and brings the copy where only root may write', async () => {
    const { folder, dataDirectory, roots, backUp, restore } = await service();
    rmSync(join(roots, 'shadow'));
    expect(backUp('--to', `${roots}/`)).toMatchObject({ status: 0 });
    const [copy = ''] = readdirSync(roots);
    expect(statSync(join(roots, copy))).toMatchObject({ uid: 0 });
    // A key that differs is replaced, and what was there is kept.
    writeFileSync(join(dataDirectory, 'keys', 'vault.key'), Buffer.alloc(32, 7));
    expect(restore(join(roots, copy))).toMatchObject({ status: 0, stderr: '' });
    for (const path of readdirSync(dataDirectory, { recursive: true, encoding: 'utf8' }))
      expect(lstatSync(join(dataDirectory, path)).uid, path).toBe(NOBODY);
    expect(readdirSync(folder)).not.toContain('restoring');
  });

  it.each<[string, string, string]>([
    ['backup', 'backups', ''],
    ['backup', 'keys/vault.key', 'shadow'],
    ['backup', 'pki/root.key', 'shadow'],
    ['backup', 'zigbee', ''],
    ['restore', 'restoring', ''],
    ['restore', 'gatehouse.lock', 'shadow'],
    ['restore', 'backups', ''],
    ['restore', 'keys', ''],
    ['restore', 'gatehouse.db', 'shadow'],
    ['doctor', 'doctor.tmp', 'shadow'],
  ])('%s follows no link from %s', async (name, planted, target) => {
    const { folder, dataDirectory, roots, command, backUp, restore } = await service();
    const copy = join(folder, 'copy.age');
    if (name === 'restore') expect(backUp('--to', copy)).toMatchObject({ status: 0 });
    rmSync(join(dataDirectory, planted), { recursive: true, force: true });
    symlinkSync(join(roots, target), join(dataDirectory, planted));
    if (name === 'backup') backUp();
    else if (name === 'restore') restore(copy);
    else command(name);
    expectUntouched(roots);
  });
});

it.skipIf(!isRoot)('a folder has the first owner other than root on the way to it, links included', () => {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const data = join(folder, 'data');
  mkdirSync(join(data, 'below'), { recursive: true });
  expect(ownerOf(join(data, 'below'))).toBe(undefined);
  chownSync(data, NOBODY, NOBODY);
  expect(ownerOf(join(data, 'below', 'not yet'))).toEqual({ uid: NOBODY, gid: NOBODY });
  symlinkSync(join(data, 'below'), join(folder, 'link'));
  expect(ownerOf(join(folder, 'link'))).toEqual({ uid: NOBODY, gid: NOBODY });
});
