/** `gatehouse backup verify`: opens an archive, checks all that a restore checks and the audit, and says what is in it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseConfig } from '../platform/config/config-file.ts';
import { type DecryptionOptions, decryptionKey } from './backup-key.ts';
import { openAuditWith, openCopy, warningsOf } from './restore-checks.ts';
import { openSource, unpack } from './restore-source.ts';
import { CommandFailed, printJson, type Shell, table } from './shell.ts';
import { printable } from './terminal-text.ts';

export async function verifyBackup(
  archive: string,
  options: DecryptionOptions & { json?: boolean },
  shell: Shell,
): Promise<void> {
  using source = openSource(archive);
  if (source.kind !== 'archive') throw new CommandFailed(`${archive} is no archive of gatehouse backup.`);
  const key = await decryptionKey(options, shell);
  // Beside no data: an archive can be looked at on any machine. TMPDIR names another place.
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-verify-'));
  try {
    const manifest = await unpack(source, key, folder);
    const data = join(folder, 'data');
    await using database = await openCopy({ name: archive, data, manifest, configuredId: undefined });
    assertConfiguration(archive, join(folder, manifest.configuration));
    const audit = openAuditWith(database, join(data, 'keys', 'vault.key'), shell.clock);
    const faults = await warningsOf(audit, 'the key in the archive');
    // A restore takes it, since the doors of a hotel matter more than its audit; a check must not.
    if (faults.length > 0) throw new CommandFailed(`${archive} is not whole: ${faults.join(' ')}`);
    if (options.json) return printJson(shell, manifest);
    shell.stdout.write(table(manifest.files.map(({ name, bytes }) => [String(bytes).padStart(12), name])));
    for (const path of manifest.leftOut)
      shell.stdout.write(`${'not in it'.padStart(12)}  ${printable(path)}\n`);
    shell.stdout.write(
      `✓ ${archive} is whole: of ${manifest.createdAt}, system ${manifest.systemId}, Gatehouse ${printable(manifest.version)}, schema ${manifest.schema}.\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A controller that has none yet is restored by it. */
function assertConfiguration(archive: string, file: string): void {
  try {
    parseConfig(readFileSync(file, 'utf8'), basename(file));
  } catch (error) {
    throw new CommandFailed(
      `${archive} is not whole: a blank controller cannot be restored by the configuration in it: ${(error as Error).message}`,
    );
  }
}
