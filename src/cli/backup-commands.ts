/** `gatehouse backup` and `gatehouse restore`, and what the daemon runs beside itself: commands of program.ts. */
import type { Command } from 'commander';
import { CONFIG_OPTION, JSON_OPTION, type Kit, YES_OPTION } from './kit.ts';

const KEY_OPTIONS = [
  ['-i, --identity <file...>', 'file with the secret key (AGE-SECRET-KEY-1…)'],
  ['--passphrase-file <file>', 'file whose first line is the passphrase; - reads standard input'],
] as const;

export function addBackups(parent: Command, kit: Kit): void {
  addBackup(parent, kit);
  addRestore(parent, kit);
  addCheckDatabase(parent, kit);
  addMakeBackup(parent, kit);
}

function addBackup(parent: Command, { example, here }: Kit): void {
  const backup = parent
    .command('backup')
    .enablePositionalOptions()
    .description(
      'Make one encrypted archive of everything, with or without a running daemon, and print its path',
    )
    .option(
      '-t, --to <path>',
      'a folder, or a file such as copy.age (default: backup.folder, else backups in dataDirectory)',
    )
    .option('-r, --recipient <key...>', 'public keys age1… (default: backup.recipients)')
    .option(
      '--passphrase-file <file>',
      'in place of public keys: file whose first line is a passphrase; - reads standard input',
    )
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(here(async () => (await import('./backup.ts')).backUp));
  example(backup, 'gatehouse backup --to /media/stick');
  example(
    backup
      .command('key')
      .description('Draw a key: the secret one goes to a file, the public one to standard output')
      .requiredOption('-o, --out <file>', 'must not exist; keep it elsewhere than on this machine')
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./backup-key.ts')).makeKey)),
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
      .action(here(async () => (await import('./backup-verify.ts')).verifyBackup)),
    'gatehouse backup verify /media/stick/gatehouse-20270101T032000Z.age --identity backup-key.txt',
  );
}

function addRestore(parent: Command, { example, here }: Kit): void {
  example(
    parent
      .command('restore')
      .description('Put an archive in place, while the daemon is stopped; also a copy of the database alone')
      .argument('<archive>', 'as backup has made it')
      .option(...KEY_OPTIONS[0])
      .option(...KEY_OPTIONS[1])
      .option('--configuration', 'the configuration of the archive replaces one that is there')
      .option(...YES_OPTION)
      .option(...CONFIG_OPTION)
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./restore.ts')).restore)),
    'gatehouse restore /media/stick/gatehouse-20270101T032000Z.age --identity backup-key.txt',
  );
}

/** For the daemon, which runs it beside itself. */
function addMakeBackup(parent: Command, { shell }: Kit): void {
  parent
    .command('make-backup', { hidden: true })
    .argument('<configuration>')
    .argument('<at>')
    .action(async (config: string, at: string) =>
      (await import('./backup.ts')).makeScheduledBackup({ config, at }, shell),
    );
}

/** For the daemon, which runs it beside itself. */
function addCheckDatabase(parent: Command, { shell }: Kit): void {
  parent
    .command('check-database', { hidden: true })
    .argument('<file>')
    .action(async (file: string) => (await import('./check-database.ts')).checkDatabase(file, shell));
}
