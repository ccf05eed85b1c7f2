/** The commands, and the only importer of commander. What a command does is loaded when it is called. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../config-file.ts';
import { ROLES } from '../principal.ts';
import { VERSION } from '../version.ts';
import { type ClientOptions, openClient } from './client.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

/** Runs one command line (without the program's name) and returns the exit code. Throws only what is a fault of ours. */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  const result = { exitCode: 0 };
  try {
    await program(shell, result).parseAsync(argv, { from: 'user' });
    return result.exitCode;
  } catch (error) {
    // Commander has told it already; asking for help or the version is no mistake.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    if (error instanceof ConfigError) return told(shell, error.message, EXIT.usage);
    if (error instanceof CommandFailed) return told(shell, error.message, error.exitCode);
    throw error;
  }
}

function told({ stderr, journal }: Shell, message: string, exitCode: number): number {
  // <3>: the priority of an error in the journal, line by line.
  const lines = journal ? message.replace(/^/gm, '<3>') : message;
  stderr.write(`${lines}\n`);
  return exitCode;
}

function program(shell: Shell, result: { exitCode: number }): Command {
  const gatehouse = new Command('gatehouse')
    .description("Runs a site's access-control hardware: card encoders, RS-485 buses and Zigbee door locks.")
    .version(VERSION)
    .showHelpAfterError('(gatehouse --help shows what there is)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.stdout.write(text),
      writeErr: (text) => shell.stderr.write(text),
    });
  example(gatehouse, 'gatehouse serve', 'gatehouse token create --role service-tool', 'gatehouse status');
  addServe(gatehouse, shell);
  addTokens(gatehouse.command('token').description('Tokens for the programs that use the interface'), shell);
  addStatus(gatehouse, shell);
  addConfig(gatehouse.command('config').description('The configuration file'), shell, result);
  addVersion(gatehouse, shell);
  return gatehouse;
}

function example(command: Command, ...lines: string[]): Command {
  return command.addHelpText('after', `\nExample:\n${lines.map((line) => `  $ ${line}`).join('\n')}`);
}

const CONFIG_OPTION = [
  '-c, --config <file>',
  'configuration file (default: $GATEHOUSE_CONFIG, /etc/gatehouse/gatehouse.yaml, or the packaged example)',
] as const;
const JSON_OPTION = ['--json', 'print JSON for a program'] as const;

function addServe(parent: Command, shell: Shell): void {
  example(
    parent
      .command('serve')
      .description('Run the daemon in the foreground, until SIGTERM or SIGINT')
      .option(...CONFIG_OPTION)
      .action(async (options: { config?: string }) => {
        const { serve } = await import('./serve.ts');
        await serve(options, shell);
      }),
    'gatehouse serve --config /etc/gatehouse/gatehouse.yaml',
  );
}

/** The options with which a command finds the daemon. */
function addressed(command: Command): Command {
  return command.option(...CONFIG_OPTION).option('-s, --socket <path>', "the daemon's unix socket");
}

function addTokens(parent: Command, shell: Shell): void {
  example(parent, 'gatehouse token list');
  example(
    addressed(parent.command('create'))
      .description('Make a token and print it; it is shown this once')
      .addOption(new Option('-r, --role <role...>', 'what it may do').choices(ROLES).makeOptionMandatory())
      .option('-l, --label <text>', 'who will use it, for the list and the audit')
      .option('-d, --days <number>', 'how long it is valid (default: 90)', days)
      .option(...JSON_OPTION)
      .action(async (options: import('./token.ts').CreateOptions & ClientOptions) => {
        const { createToken } = await import('./token.ts');
        await createToken(options, openClient(options, shell), shell);
      }),
    'gatehouse token create --role pms --label "hotel system" --days 90',
  );
  example(
    addressed(parent.command('list'))
      .description('List the tokens, without their secrets')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean } & ClientOptions) => {
        const { listTokens } = await import('./token.ts');
        await listTokens(options, openClient(options, shell), shell);
      }),
    'gatehouse token list',
  );
  example(
    addressed(parent.command('revoke'))
      .description('Shut out whoever uses a token, at once')
      .argument('<id>', 'as token list shows it')
      .option('-y, --yes', 'do not ask')
      .action(async (id: string, options: { yes?: boolean } & ClientOptions) => {
        const { revokeToken } = await import('./token.ts');
        await revokeToken(id, options, openClient(options, shell), shell);
      }),
    'gatehouse token revoke 0f3c9a5b2d17',
  );
}

function days(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1) return number;
  throw new InvalidArgumentError('expected a whole number of days, 1 or more.');
}

function addStatus(parent: Command, shell: Shell): void {
  example(
    addressed(parent.command('status'))
      .description('Show how the installation is, what needs attention first')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean } & ClientOptions) => {
        const { printStatus } = await import('./status.ts');
        await printStatus(options, openClient(options, shell), shell);
      }),
    'gatehouse status',
    'gatehouse status --json | jq .upstream.waiting',
  );
}

function addConfig(parent: Command, shell: Shell, result: { exitCode: number }): void {
  example(parent, 'gatehouse config check');
  example(
    parent
      .command('check')
      .description('Say every mistake in a configuration, with its place')
      .argument('[file]', 'default: the file that serve would take')
      .option(...JSON_OPTION)
      .action(async (file: string | undefined, options: { json?: boolean }) => {
        const { checkConfig } = await import('./config.ts');
        if (!checkConfig(file, options, shell)) result.exitCode = EXIT.usage;
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

function addVersion(parent: Command, shell: Shell): void {
  example(
    parent
      .command('version')
      .description('Print the version of this program')
      .option(...JSON_OPTION)
      .action(({ json }: { json?: boolean }) => {
        if (json) printJson(shell, { version: VERSION, node: shell.nodeVersion });
        else shell.stdout.write(`gatehouse ${VERSION} (Node ${shell.nodeVersion})\n`);
      }),
    'gatehouse version --json',
  );
}
