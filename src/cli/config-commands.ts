/** `gatehouse config` and `gatehouse reload`: the commands of program.ts that concern the configuration file. */
import type { Command } from 'commander';
import type { Kit } from './bus-commands.ts';
import { type ClientOptions, openClient } from './client.ts';
import { linkOf, PROTOCOLS, type WantedLink } from './setup-link.ts';
import { CommandFailed, EXIT, type Shell } from './shell.ts';

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

export function addSetup(
  parent: Command,
  configOption: readonly [string, string],
  shell: Shell,
  { example }: Kit,
): void {
  const gathered = <Item>(read: (text: string) => Item) => {
    return (text: string, before: Item[] | undefined) => [...(before ?? []), read(text)];
  };
  example(
    parent
      .command('setup')
      .description('Ask for what a site needs, write the configuration, and start the service')
      .option(...configOption)
      .option('-n, --name <name>', 'of this machine, as clients and encoders will write it')
      .option('-l, --listen <host:port>', 'where the interface is served (default: 0.0.0.0:8443)')
      .option('-e, --encoders <host:port>', 'where encoders connect (default: 0.0.0.0:8883)')
      .option(
        '--vendor-root <file>',
        'PEM of the vendor of the encoders; copied beside the configuration',
        gathered(String),
      )
      .option(
        '--link <protocol=port>',
        `a bus or a coordinator; protocols: ${PROTOCOLS.join(', ')}`,
        gathered(wantedLink),
      )
      .option('--upstream <url>', 'notification service, such as mqtts://host:8883')
      .option('--no-start', 'write the configuration only')
      .option('-y, --yes', 'ask nothing: what no option says is as the file or the default has it')
      .action(async (options: import('./setup.ts').SetupOptions) => {
        const { setUp } = await import('./setup.ts');
        await setUp(options, shell);
      }),
    'sudo gatehouse setup',
    'sudo gatehouse setup --yes --name gatehouse.hotel.example --link modbus=/dev/serial/by-id/NAME',
  );
}

function wantedLink(text: string): WantedLink {
  const link = linkOf(text);
  if (link) return link;
  const message = `--link ${text}: expected PROTOCOL=PORT, such as modbus=/dev/serial/by-id/NAME; protocols: ${PROTOCOLS.join(', ')}.`;
  throw new CommandFailed(message, EXIT.usage);
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
