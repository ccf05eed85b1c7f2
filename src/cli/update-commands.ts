/** `gatehouse update` and its parts: commands of program.ts. */
import type { Command } from 'commander';
import { JSON_OPTION, type Kit, YES_OPTION } from './kit.ts';

const LONGEST_WAIT_S = 3_600;

export function addUpdate(parent: Command, { example, here, shell, wholeUpTo }: Kit): void {
  const update = parent
    .command('update')
    .enablePositionalOptions()
    .description('Try another version beside this one; it is taken back unless all is well within a minute')
    .argument('<file>', 'a package of Gatehouse, with SHA256SUMS and SHA256SUMS.minisig beside it')
    .option(
      '--wait <seconds>',
      'for the service and its links to be back (default: 60); longer for a large database',
      wholeUpTo(LONGEST_WAIT_S),
    )
    .option(...YES_OPTION)
    .action(here(async () => (await import('./update/update.ts')).update));
  example(update, 'gatehouse update /media/stick/gatehouse_0.2.0_amd64.deb');
  example(
    update
      .command('status')
      .description('Show which version runs, and the one before it')
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./update/update.ts')).printUpdate)),
    'gatehouse update status',
  );
  example(
    update
      .command('rollback')
      .description('Go back to the version before the last update')
      .option(...YES_OPTION)
      .action(here(async () => (await import('./update/update.ts')).rollBack)),
    'gatehouse update rollback',
  );
  update
    .command('trial', { hidden: true })
    .action(async () => (await import('./update/update.ts')).trial(shell));
  update
    .command('settle', { hidden: true })
    .action(async () => (await import('./update/update.ts')).settle(shell));
}
