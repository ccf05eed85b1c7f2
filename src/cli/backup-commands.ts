/** `gatehouse backup` and `gatehouse restore`, and what the daemon runs beside itself: commands of program.ts. */
import type { Command } from 'commander';
import type { Kit as CommonKit } from './bus-commands.ts';
import type { Shell } from './shell.ts';

/** What all commands are made with. */
interface Kit extends Pick<CommonKit, 'example'> {
  configOption: readonly [string, string];
}

const JSON_OPTION = ['--json', 'print JSON for a program'] as const;
const KEY_OPTIONS = [
  ['-i, --identity <file...>', 'file with the secret key (AGE-SECRET-KEY-1…)'],
  ['--passphrase-file <file>', 'file whose first line is the passphrase; - reads standard input'],
] as const;

export function addBackups(parent: Command, shell: Shell, kit: Kit): void {
  addBackup(parent, shell, kit);
  addRestore(parent, shell, kit);
  addCheckDatabase(parent, shell);
  addMakeBackup(parent, shell);
}

function addBackup(parent: Command, shell: Shell, { example, configOption }: Kit): void {
  const backup = parent
    .command('backup')
    .enablePositionalOptions()
    .description(
      'Make one encrypted archive of everything, with or without a running daemon, and print its path',
    )
    .option('-t, --to <path>', 'a file, or a folder (default: backup.folder, else backups in dataDirectory)')
    .option('-r, --recipient <key...>', 'public keys age1… (default: backup.recipients)')
    .option(
      '--passphrase-file <file>',
      'in place of public keys: file whose first line is a passphrase; - reads standard input',
    )
    .option(...configOption)
    .option(...JSON_OPTION)
    .action(async (options: import('./backup.ts').BackupOptions) => {
      const { backUp } = await import('./backup.ts');
      await backUp(options, shell);
    });
  example(backup, 'gatehouse backup --to /media/stick');
  example(
    backup
      .command('key')
      .description('Draw a key: the secret one goes to a file, the public one to standard output')
      .requiredOption('-o, --out <file>', 'must not exist; keep it elsewhere than on this machine')
      .option(...JSON_OPTION)
      .action(async (options: { out: string; json?: boolean }) => {
        const { makeKey } = await import('./backup-key.ts');
        await makeKey(options, shell);
      }),
    'gatehouse backup key --out /media/stick/backup-key.txt',
  );
  example(
    backup
      .command('verify')
      .description('Open an archive, check all of it, and list what is in it; nothing is restored')
      .argument('<archive>')
      .option(...KEY_OPTIONS[0])
      .option(...KEY_OPTIONS[1])
      .option(...JSON_OPTION)
      .action(
        async (archive: string, options: Parameters<typeof import('./backup-verify.ts').verifyBackup>[1]) => {
          const { verifyBackup } = await import('./backup-verify.ts');
          await verifyBackup(archive, options, shell);
        },
      ),
    'gatehouse backup verify /media/stick/gatehouse-20270101T032000Z.age --identity backup-key.txt',
  );
}

function addRestore(parent: Command, shell: Shell, { example, configOption }: Kit): void {
  example(
    parent
      .command('restore')
      .description('Put an archive in place, while the daemon is stopped; also a copy of the database alone')
      .argument('<archive>', 'as backup has made it')
      .option(...KEY_OPTIONS[0])
      .option(...KEY_OPTIONS[1])
      .option('--configuration', 'the configuration of the archive replaces one that is there')
      .option('-y, --yes', 'do not ask')
      .option(...configOption)
      .option(...JSON_OPTION)
      .action(async (archive: string, options: import('./restore.ts').RestoreOptions) => {
        const { restore } = await import('./restore.ts');
        await restore(archive, options, shell);
      }),
    'gatehouse restore /media/stick/gatehouse-20270101T032000Z.age --identity backup-key.txt',
  );
}

/** For the daemon, which runs it beside itself. */
function addMakeBackup(parent: Command, shell: Shell): void {
  parent
    .command('make-backup', { hidden: true })
    .argument('<configuration>')
    .argument('<at>')
    .action(async (config: string, at: string) => {
      const { makeScheduledBackup } = await import('./backup.ts');
      await makeScheduledBackup({ config, at }, shell);
    });
}

/** For the daemon, which runs it beside itself. */
function addCheckDatabase(parent: Command, shell: Shell): void {
  parent
    .command('check-database', { hidden: true })
    .argument('<file>')
    .action(async (file: string) => {
      const { checkDatabase } = await import('./check-database.ts');
      checkDatabase(file, shell);
    });
}
