/** `gatehouse backup verify`: opens an archive, checks all that a restore checks, and says what is in it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DecryptionOptions, decryptionKey } from './backup-key.ts';
import { assertOnePiece, openAuditWith, openDraft, warningsOf } from './restore-checks.ts';
import { openSource, unpack } from './restore-source.ts';
import { CommandFailed, EXIT, printJson, type Shell, table } from './shell.ts';

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
    await using database = await openDraft(archive, join(data, 'gatehouse.db'));
    onePiece(() => assertOnePiece(database, data, undefined), archive, folder);
    const vaultFile = join(data, 'keys', 'vault.key');
    const warnings = await warningsOf(
      openAuditWith(database, vaultFile, shell.clock),
      'the key in the archive',
    );
    if (options.json) return printJson(shell, { ...manifest, warnings });
    shell.stdout.write(table(manifest.files.map(({ name, bytes }) => [String(bytes).padStart(12), name])));
    for (const path of manifest.leftOut) shell.stdout.write(`${'not in it'.padStart(12)}  ${path}\n`);
    for (const warning of warnings) shell.stderr.write(`! ${warning}\n`);
    shell.stdout.write(
      `✓ ${archive} is whole: of ${manifest.createdAt}, system ${manifest.systemId}, Gatehouse ${manifest.version}, schema ${manifest.schema}.\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function onePiece(check: () => void, archive: string, folder: string): void {
  try {
    check();
  } catch (error) {
    const message = (error as Error).message.replaceAll(`${folder}/`, '');
    throw new CommandFailed(`${archive} is not of one piece: ${message}`, EXIT.failed, { cause: error });
  }
}
