import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  alter,
  backedUp,
  backUp,
  identity,
  plain,
  repack,
  restore,
  rowsIn,
  shell,
  tokensIn,
} from '../../test/cli/archives.ts';
import { openTestGateway } from '../../test/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { canMount, smallDisk } from '../../test/small-disk.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { openDatabase } from '../platform/database/database.ts';
import { silentLog } from '../platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../platform/principal.ts';
import { openVault } from '../platform/vault.ts';
import { openAudit } from '../services/audit/audit.ts';
import type { Manifest } from '../services/backup/manifest.ts';

vi.setConfig({ testTimeout: 240_000 });

const verify = (archive: string, ...more: string[]) =>
  plain('backup', 'verify', archive, '--identity', identity, ...more);
const OTHER = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';

/** Takes rows of the audit away, past the trigger that keeps them. */
const without = (rows: string) => (folder: string) => {
  const file = join(folder, 'data', 'gatehouse.db');
  const trigger = 'audit_is_append_only_delete';
  const [made] = rowsIn<{ sql: string }>(file, `SELECT sql FROM sqlite_schema WHERE name = '${trigger}'`);
  alter(file, `DROP TRIGGER ${trigger}; DELETE FROM audit WHERE ${rows}; ${made?.sql}`);
};

describe('an archive that somebody has put together', () => {
  it.each<[string, RegExp, (folder: string, manifest: Manifest) => unknown]>([
    [
      'lacks its database',
      /files lack the database/,
      (_folder, manifest) => {
        manifest.files = manifest.files.filter(({ name }) => name !== 'data/gatehouse.db');
      },
    ],
    [
      'names a configuration that it has not',
      /configuration is not the first of its files/,
      (_folder, manifest) => {
        manifest.configuration = 'config/none.yaml';
      },
    ],
    [
      'names another system',
      /not of one piece: its manifest names the system 5c2f0a52-.*, its database /,
      (_folder, manifest) => {
        manifest.systemId = OTHER;
      },
    ],
    [
      'names another database',
      /not of one piece: its manifest names the database 5c2f0a52-.*, its database /,
      (_folder, manifest) => {
        manifest.databaseId = OTHER;
      },
    ],
    [
      'names another schema',
      /not of one piece: its manifest names the schema 99, its database \d+/,
      (_folder, manifest) => {
        manifest.schema = 99;
      },
    ],
  ])('and %s passes no check, and is not restored', async (_what, message, change) => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    await repack(archive, change);
    expect(await verify(archive)).toBe(1);
    expect(shell.written.stderr).toMatch(message);
    expect(shell.written.stdout).toBe('');
    expect(await restore(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(message);
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
  });

  it('and has a configuration that is none passes no check', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    await repack(archive, (folder, manifest) => {
      writeFileSync(join(folder, manifest.configuration), '"');
      for (const file of manifest.files) if (file.name === manifest.configuration) file.bytes = 1;
    });
    expect(await verify(archive)).toBe(1);
    expect(shell.written.stderr).toMatch(
      /is not whole: a blank controller cannot be restored by the configuration/,
    );
    expect(shell.written.stdout).toBe('');
  });

  it.each([
    ['first', 'seq = 1'],
    ['newest', 'seq = (SELECT max(seq) FROM audit)'],
    ['all', 'TRUE'],
  ])('and lacks rows of the audit (%s) passes no check, and a restore warns', async (_which, rows) => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    await repack(archive, without(rows));
    expect(await verify(archive)).toBe(1);
    expect(shell.written.stderr).toMatch(
      /is not whole: The audit in the copy is not as it was written, from/,
    );
    expect(shell.written.stdout).toBe('');
    expect(await restore(gateway, archive)).toBe(0);
    expect(shell.written.stderr).toMatch(/^! The audit in the copy is not as it was written/m);
  });

  it('brings no control sequence to the terminal', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    await repack(archive, (_folder, manifest) => {
      manifest.version = '\u001b]0;x\u0007';
      manifest.leftOut = ['\u009b2J'];
    });
    expect(await verify(archive)).toBe(0);
    const checked = shell.written.stdout;
    expect(await restore(gateway, archive)).toBe(0);
    for (const text of [checked, shell.written.stderr]) expect(text).not.toMatch(/(?!\n)\p{Cc}/u);
    expect(checked).toContain('Gatehouse \uFFFD]0;x\uFFFD,');
  });
});

it('an archive whose old audit entries were removed for their age is whole', async () => {
  const { gateway, archive } = await backedUp();
  await gateway.close();
  await repack(archive, removeOldEntries);
  expect(await verify(archive), shell.written.stderr).toBe(0);
  expect(shell.written.stdout).toMatch(/✓ .*copy\.age is whole/);
});

/** As the daemon does a year later. */
async function removeOldEntries(folder: string): Promise<void> {
  const data = join(folder, 'data');
  const file = join(data, 'gatehouse.db');
  await using database = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
  const clock = manualClock(Date.now() + 400 * 86_400_000);
  const vault = openVault(join(data, 'keys', 'vault.key'), { create: false });
  const audit = openAudit({
    database,
    clock,
    log: silentLog,
    macKey: vault.deriveKey('audit'),
    sign: async () => 'a checkpoint',
    verifySignature: undefined,
  });
  await audit.checkpoints.take();
  const entry = { action: 'x.y', object: 'x/y', outcome: 'done', correlationId: 'c' };
  await database.commit(() => audit.record({ ...entry, principal: LOCAL_ADMINISTRATOR }));
  const ending = new AbortController();
  const time = { now: () => clock.now(), synchronised: () => true };
  const keeping = audit.retention({ time, retentionDays: 30 }).keep(ending.signal);
  await clock.advance(3_600_000);
  while (clock.sleepers() === 0) await new Promise((resolve) => setImmediate(resolve));
  ending.abort();
  await keeping.catch(() => {});
  expect(audit.oldest()?.seq).toBeGreaterThan(1);
}

it('an archive holds a file once that two names lead to', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'password'), 'secret\n');
  symlinkSync('password', join(folder, 'also'));
  const upstream = { url: 'mqtts://127.0.0.1:1', username: 'u', passwordFile: 'password', caFile: 'also' };
  const gateway = await openTestGateway({ upstream }, folder);
  const archive = join(folder, 'copy.age');
  expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
  expect(await verify(archive), shell.written.stderr).toBe(0);
});

it.skipIf(!canMount())('a backup for which there is no room says where room is needed', async () => {
  const gateway = await openTestGateway();
  const { folder, fill } = smallDisk(1_048_576);
  fill();
  const archive = join(folder, 'copy.age');
  expect(await backUp(gateway, archive)).toBe(1);
  expect(shell.written.stderr).toMatch(
    /^There is no backup: the disk is full \(ENOSPC\)\. It takes room for the archive in .*gatehouse-disk-\w+, and for a copy of the database in .*\/data\/backups: make room there, or name another folder/,
  );
  expect(() => readFileSync(archive)).toThrow('ENOENT');
  rmSync(join(folder, 'filler'));
  expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
});
