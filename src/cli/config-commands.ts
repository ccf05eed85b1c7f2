/** `gatehouse config` and `gatehouse reload`: the commands of program.ts that concern the configuration file. */
import type { Command } from 'commander';
import type { Kit } from './bus-commands.ts';
import { type ClientOptions, openClient } from './client.ts';
import { EXIT, type Shell } from './shell.ts';

const JSON_OPTION = ['--json', 'print JSON for a program'] as const;

export function addReload(parent: Command, shell: Shell, { example, addressed }: Kit): void {
  example(
    addressed(parent.command('reload'))
      .description('Have the daemon read its configuration again; unchanged links go on')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean } & ClientOptions) => {
        const { reload } = await import('./reload.ts');
        await reload(options, openClient(options, shell), shell);
      }),
    'gatehouse config check && gatehouse reload',
  );
}

export function addConfig(
  parent: Command,
  configOption: readonly [string, string],
  shell: Shell,
  result: { exitCode: number },
  { example }: Kit,
): void {
  example(parent, 'gatehouse config check');
  example(
    parent
      .command('check')
      .description('Say every mistake in a configuration, with its place')
      .argument('[file]', 'default: the file that serve would take')
      .option(...configOption)
      .option(...JSON_OPTION)
      .action(async (file: string | undefined, options: { config?: string; json?: boolean }) => {
        const { checkConfig } = await import('./config.ts');
        if (!checkConfig(file ?? options.config, options, shell)) result.exitCode = EXIT.usage;
      }),
    'gatehouse config check /etc/gatehouse/gatehouse.yaml',
  );
  example(
    parent
      .command('schema')
      .description('Print the JSON schema of the configuration, for an editor')
      .action(async () => {
        const { printSchema } = await import('./config.ts');
        printSchema(shell);
      }),
    'gatehouse config schema > gatehouse.schema.json',
  );
}
