/** `gatehouse config` and `gatehouse reload`: the commands of program.ts that concern the configuration file. */
import type { Command } from 'commander';
import { CONFIG_OPTION, JSON_OPTION, type Kit } from './kit.ts';
import { linkOf, PROTOCOLS, type WantedLink } from './setup-link.ts';
import { CommandFailed, EXIT } from './shell.ts';

export function addReload(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('reload'))
      .description('Have the daemon read its configuration again; unchanged links go on')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./reload.ts')).reload)),
    'gatehouse config check && gatehouse reload',
  );
}

export function addSetup(parent: Command, { example, here }: Kit): void {
  const gathered = <Item>(read: (text: string) => Item) => {
    return (text: string, before: Item[] | undefined) => [...(before ?? []), read(text)];
  };
  example(
    parent
      .command('setup')
      .description('Ask for what a site needs, write the configuration, and start the service')
      .option(...CONFIG_OPTION)
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
      .action(here(async () => (await import('./setup.ts')).setUp)),
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

export function addConfig(parent: Command, { example, shell, endWith }: Kit): void {
  example(parent, 'gatehouse config check');
  example(
    parent
      .command('check')
      .description('Say every mistake in a configuration, with its place')
      .argument('[file]', 'default: the file that serve would take')
      .option(...CONFIG_OPTION)
      .option(...JSON_OPTION)
      .action(async (file: string | undefined, options: { config?: string; json?: boolean }) => {
        const { checkConfig } = await import('./config.ts');
        if (!checkConfig(file ?? options.config, options, shell)) endWith(EXIT.usage);
      }),
    'gatehouse config check /etc/gatehouse/gatehouse.yaml',
  );
  example(
    parent
      .command('schema')
      .description('Print the JSON schema of the configuration, for an editor')
      .action(async () => (await import('./config.ts')).printSchema(shell)),
    'gatehouse config schema > gatehouse.schema.json',
  );
}
