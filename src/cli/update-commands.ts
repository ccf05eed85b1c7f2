/** `gatehouse update` and its parts: commands of program.ts. */
import type { Command } from 'commander';
import type { Kit as CommonKit } from './bus-commands.ts';
import type { Shell } from './shell.ts';

type Kit = Pick<CommonKit, 'example' | 'wholeUpTo'>;

const JSON_OPTION = ['--json', 'print JSON for a program'] as const;
const YES_OPTION = ['-y, --yes', 'do not ask'] as const;
const LONGEST_WAIT_S = 3_600;

export function addUpdate(parent: Command, shell: Shell, { example, wholeUpTo }: Kit): void {
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
    .action(async (file: string, options: { wait?: number; yes?: boolean }) => {
      const commands = await import('./update/update.ts');
      await commands.update(file, options, shell);
    });
  example(update, 'gatehouse update /media/stick/gatehouse_0.2.0_amd64.deb');
  example(
    update
      .command('status')
      .description('Show which version runs, and the one before it')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean }) => {
        const { printUpdate } = await import('./update/update.ts');
        await printUpdate(options, shell);
      }),
    'gatehouse update status',
  );
  example(
    update
      .command('rollback')
      .description('Go back to the version before the last update')
      .option(...YES_OPTION)
      .action(async (options: { yes?: boolean }) => {
        const { rollBack } = await import('./update/update.ts');
        await rollBack(options, shell);
      }),
    'gatehouse update rollback',
  );
  update.command('trial', { hidden: true }).action(async () => {
    const { trial } = await import('./update/update.ts');
    await trial(shell);
  });
  update.command('settle', { hidden: true }).action(async () => {
    const { settle } = await import('./update/update.ts');
    await settle(shell);
  });
}
