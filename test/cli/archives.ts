/** Archives of gateways, for the tests of backup and restore. */
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openConnection } from '../../src/platform/database/connection.ts';
import { piecesOf, unpackArchive, writeArchive } from '../../src/services/backup/archive.ts';
import type { Manifest } from '../../src/services/backup/manifest.ts';
import { openTestGateway, type TestGateway } from '../gateway.ts';
import { type TestShell, testShell } from '../shell.ts';
import { temporaryFolder } from '../temporary.ts';

/** Of `gatehouse backup key`, for tests alone. */
export const SECRET = 'AGE-SECRET-KEY-1YNY5P8GSYD2FQ4N5NKJVAQSU49JMWYH7VNWES2UL7CSUSQMPMNCSQ260XN';
export const PUBLIC = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';

export let shell: TestShell;
export let identity: string;
beforeEach(() => {
  shell = testShell({ clock: systemClock as TestShell['clock'] });
  identity = join(temporaryFolder(), 'key.txt');
  writeFileSync(identity, `# public key: ${PUBLIC}\n${SECRET}\n`);
});

export const plain = async (...argv: string[]) => {
  shell.written.stdout = '';
  shell.written.stderr = '';
  return run(argv, shell);
};
export const command = (gateway: Pick<TestGateway, 'configFile'>, ...argv: string[]) =>
  plain(...argv, '--config', gateway.configFile);
export const backUp = (gateway: TestGateway, to: string, ...more: string[]) =>
  command(gateway, 'backup', '--recipient', PUBLIC, '--to', to, ...more);
export const restore = (gateway: Pick<TestGateway, 'configFile'>, archive: string, ...more: string[]) =>
  command(gateway, 'restore', archive, '--identity', identity, '--yes', ...more);

export function rowsIn<Row>(file: string, sql: string): Row[] {
  using connection = openConnection(file);
  return connection.prepare<[], Row>(sql).all();
}

export const tokensIn = (file: string) =>
  rowsIn<{ label: string }>(file, 'SELECT label FROM token ORDER BY created_at, label').map(
    ({ label }) => label,
  );

export const auditOf = async (gateway: TestGateway) =>
  JSON.parse(await gateway.local('POST', '/local/audit/verify', {}));

/** A gateway with an archive that knows one token, and a second token made after it. */
export async function backedUp(changes = {}) {
  const gateway = await openTestGateway(changes);
  await gateway.token('pms');
  const archive = join(gateway.folder, 'copy.age');
  expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
  await gateway.token('front-desk');
  return { gateway, archive };
}

export function systemOf({ dataDirectory }: TestGateway) {
  const [row] = rowsIn<{ system_id: string; database_id: string; epoch: number }>(
    join(dataDirectory, 'gatehouse.db'),
    'SELECT * FROM system',
  );
  if (!row) throw new Error('no system');
  return row;
}

export function alter(file: string, sql: string): void {
  using connection = openConnection(file);
  connection.exec(sql);
}

export function flipped(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}

/** The archive put together again, as anyone who has the public key can. `change` gets its folder and its manifest. */
export async function repack(
  archive: string,
  change: (folder: string, manifest: Manifest) => unknown,
): Promise<void> {
  const folder = temporaryFolder();
  const source = openSync(archive, 'r');
  const manifest = await unpackArchive(piecesOf(source), { identities: [SECRET] }, folder);
  closeSync(source);
  await change(folder, manifest);
  const files = manifest.files.map(({ name }) => ({ name, content: readFileSync(join(folder, name)) }));
  for (const [index, { content }] of files.entries())
    if (manifest.files[index]) manifest.files[index].bytes = content.length;
  const target = openSync(archive, 'w');
  await writeArchive(target, { manifest, files }, { recipients: [PUBLIC] }, () => {});
  closeSync(target);
}
