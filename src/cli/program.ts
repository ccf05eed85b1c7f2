/** The commands, and the only importer of commander. What a command does is loaded when it is called. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '../app/version.ts';
import { ROLES } from '../platform/principal.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { addBackups } from './backup-commands.ts';
import { addBuses } from './bus-commands.ts';
import { type ClientOptions, openClient } from './client.ts';
import { addConfig, addReload, addSetup } from './config-commands.ts';
import { addResources } from './resource-commands.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';
import { printable } from './terminal-text.ts';
import { addUpdate } from './update-commands.ts';

/** Runs one command line (without the program's name) and returns the exit code. Throws only what is a fault of ours. */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  const result = { exitCode: 0 };
  try {
    await program(shell, result).parseAsync(argv, { from: 'user' });
    return result.exitCode;
  } catch (error) {
    // Commander has printed it already; asking for help or the version is no mistake.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    if (error instanceof FileError) return failed(shell, error.message, EXIT.usage);
    if (error instanceof CommandFailed) return failed(shell, error.message, error.exitCode);
    throw error;
  }
}

/** The message may hold text of an archive, a file or a peer. */
function failed({ stderr, journal }: Shell, unsafe: string, exitCode: number): number {
  const message = printable(unsafe);
  // <3>: the priority of an error in the journal, line by line.
  const lines = journal ? message.replace(/^/gm, '<3>') : message;
  stderr.write(`${lines}\n`);
  return exitCode;
}

/** All commands: to run one, or to list them. */
export function program(shell: Shell, result: { exitCode: number }): Command {
  const gatehouse = new Command('gatehouse')
    .description("Runs a site's access-control hardware: card encoders, RS-485 buses and Zigbee door locks.")
    .version(VERSION)
    // `backup` and `backup verify` have options of the same name: each belongs to the command that it follows.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => shell.stdout.write(text),
      writeErr: (text) => shell.stderr.write(text),
    });
  example(gatehouse, 'gatehouse serve', 'gatehouse token create --role service-tool', 'gatehouse status');
  addServe(gatehouse, shell);
  const kit = { example, addressed, whole, wholeUpTo };
  addSetup(gatehouse, CONFIG_OPTION, shell, kit);
  addReload(gatehouse, shell, kit);
  addTokens(gatehouse.command('token').description('Tokens for the programs that use the interface'), shell);
  addLoginCode(gatehouse, shell);
  addStatus(gatehouse, shell);
  addDoctor(gatehouse, shell, result);
  addImport(gatehouse, shell);
  addExport(gatehouse, shell);
  addSupportBundle(gatehouse, shell);
  addBackups(gatehouse, shell, { example, configOption: CONFIG_OPTION });
  addUpdate(gatehouse, shell, kit);
  addEvents(gatehouse.command('events').description('What happens on the site'), shell);
  addAudit(gatehouse.command('audit').description('Who did what'), shell, result);
  const zgate = gatehouse.command('zgate').description('Zigbee gateways and the networks they carry');
  addZgate(zgate, shell);
  addResources(gatehouse, zgate, shell, kit);
  addBuses(gatehouse, shell, result, kit);
  const configuration = gatehouse.command('config').description('The configuration file');
  addConfig(configuration, CONFIG_OPTION, shell, result, kit);
  addVersion(gatehouse, shell);
  addCompletion(gatehouse, shell);
  return gatehouse;
}

/** Also what is said after a mistake: where the help of this very command is. */
function example(command: Command, ...lines: string[]): Command {
  const names: string[] = [];
  for (let one: Command | null = command; one; one = one.parent) names.unshift(one.name());
  command.showHelpAfterError(`(${names.join(' ')} --help shows what there is)`);
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
    addressed(parent.command('renew'))
      .description('Give a token a new secret and a new life; the old secret is good for a while')
      .argument('<id>', 'as token list shows it')
      .option('-d, --days <number>', 'how long it is valid from now on (default: 90)', days)
      .option('-o, --overlap-hours <number>', 'how long the old secret is good (default: 24)', wholeUpTo(336))
      .option(...JSON_OPTION)
      .action(async (id: string, options: import('./token.ts').RenewOptions & ClientOptions) => {
        const { renewToken } = await import('./token.ts');
        await renewToken(id, options, openClient(options, shell), shell);
      }),
    'gatehouse token renew 0f3c9a5b2d17 --overlap-hours 48',
  );
  example(
    addressed(parent.command('revoke'))
      .description('Shut out anyone who uses a token, at once')
      .argument('<id>', 'as token list shows it')
      .option('-y, --yes', 'do not ask')
      .action(async (id: string, options: { yes?: boolean } & ClientOptions) => {
        const { revokeToken } = await import('./token.ts');
        await revokeToken(id, options, openClient(options, shell), shell);
      }),
    'gatehouse token revoke 0f3c9a5b2d17',
  );
}

function addLoginCode(parent: Command, shell: Shell): void {
  example(
    addressed(parent.command('login-code'))
      .description('Let a person sign in: print a code that is good once, for 10 minutes')
      .addOption(new Option('-r, --role <role...>', 'what they may do').choices(ROLES).makeOptionMandatory())
      .option('-l, --label <text>', 'who it is, for the list and the audit')
      .option(...JSON_OPTION)
      .action(async (options: import('./login-code.ts').LoginCodeOptions & ClientOptions) => {
        const { createLoginCode } = await import('./login-code.ts');
        await createLoginCode(options, openClient(options, shell), shell);
      }),
    'gatehouse login-code --role service-tool --label "installer"',
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
      .addOption(new Option('-w, --watch', 'draw it again every second, until Ctrl-C').conflicts('json'))
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean; watch?: boolean } & ClientOptions) => {
        const { printStatus, watchStatus } = await import('./status.ts');
        if (options.watch) await watchStatus(openClient(options, shell), shell);
        else await printStatus(options, openClient(options, shell), shell);
      }),
    'gatehouse status',
    'gatehouse status --watch',
    'gatehouse status --json | jq .upstream.waiting',
  );
}

function addImport(parent: Command, shell: Shell): void {
  example(
    addressed(parent.command('import'))
      .description(
        "Bring in a site's groups, schedules, templates, doors and RS-485 devices; nothing is deleted",
      )
      .argument('<file>', 'see config/site.example.yaml')
      .option('-n, --dry-run', 'only show what would change')
      .option('-y, --yes', 'do not ask')
      .option(...JSON_OPTION)
      .action(async (file: string, options: import('./import.ts').ImportOptions & ClientOptions) => {
        const { importSite } = await import('./import.ts');
        await importSite(file, options, openClient(options, shell), shell);
      }),
    'gatehouse import site.yaml --dry-run',
    'gatehouse import site.yaml',
  );
}

function addExport(parent: Command, shell: Shell): void {
  example(
    addressed(parent.command('export'))
      .description(
        'Print the site as a file that import takes back: groups, schedules, templates, doors, RS-485 devices',
      )
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean } & ClientOptions) => {
        const { exportSite } = await import('./export.ts');
        await exportSite(options, openClient(options, shell), shell);
      }),
    'gatehouse export > site.yaml',
  );
}

function addSupportBundle(parent: Command, shell: Shell): void {
  example(
    addressed(parent.command('support-bundle'))
      .description(
        'Print what a person who helps from elsewhere needs to see, as JSON: state, configuration, buses, metrics, the last log lines; no secret',
      )
      .action(async (options: ClientOptions) => {
        const { printSupportBundle } = await import('./support-bundle.ts');
        await printSupportBundle(openClient(options, shell), shell);
      }),
    'gatehouse support-bundle > support.json',
  );
}

function addEvents(parent: Command, shell: Shell): void {
  example(parent, 'gatehouse events tail');
  example(
    addressed(parent.command('tail'))
      .description('Follow events as they happen, until Ctrl-C')
      .option('-a, --after <id>', 'go on after this event; without it, with what comes next')
      .option(...JSON_OPTION)
      .action(async (options: import('./events.ts').TailOptions & ClientOptions) => {
        const { tailEvents } = await import('./events.ts');
        await tailEvents(options, openClient(options, shell), shell);
      }),
    'gatehouse events tail',
    'gatehouse events tail --json | jq .event.data',
  );
}

function addAudit(parent: Command, shell: Shell, result: { exitCode: number }): void {
  example(parent, 'gatehouse audit verify');
  example(
    addressed(parent.command('verify'))
      .description('Check that no entry was changed, put in or taken away; ends with 1 if one was')
      .option(
        '--checkpoint <file>',
        'a checkpoint or an export kept elsewhere: finds newest entries taken away',
      )
      .option(...JSON_OPTION)
      .action(async (options: { checkpoint?: string; json?: boolean } & ClientOptions) => {
        const { verifyAudit } = await import('./audit.ts');
        const intact = await verifyAudit(options, openClient(options, shell), shell);
        if (!intact) result.exitCode = EXIT.failed;
      }),
    'gatehouse audit verify --checkpoint /mnt/usb/audit-2026-11.jsonl',
  );
  example(
    addressed(parent.command('export'))
      .description('Write the entries as JSON lines, with a signed checkpoint at the end')
      .requiredOption('-o, --out <file>', 'replaced once the export is whole')
      .option('--from <time>', 'entries of this time or later, such as 2026-11-01 (UTC)', dateTime)
      .option('--to <time>', 'entries before this time', dateTime)
      .option(...JSON_OPTION)
      .action(async (options: import('./audit.ts').ExportOptions & ClientOptions) => {
        const { exportAudit } = await import('./audit.ts');
        await exportAudit(options, openClient(options, shell), shell);
      }),
    'gatehouse audit export --out /mnt/usb/audit-2026-11.jsonl',
  );
}

function dateTime(text: string): string {
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return new Date(time).toISOString();
  throw new InvalidArgumentError('expected a time such as 2026-11-01 or 2026-11-01T08:00:00Z.');
}

function addDoctor(parent: Command, shell: Shell, result: { exitCode: number }): void {
  example(
    parent
      .command('doctor')
      .description('Look at everything an installation needs, and say what mends what is wrong')
      .option(...CONFIG_OPTION)
      .option(...JSON_OPTION)
      .action(async (options: { config?: string; json?: boolean }) => {
        const { examine } = await import('./doctor.ts');
        if (!(await examine(options, shell))) result.exitCode = EXIT.failed;
      }),
    'gatehouse doctor',
  );
}

function addZgate(parent: Command, shell: Shell): void {
  example(parent, 'gatehouse zgate list');
  example(
    addressed(parent.command('list'))
      .description('List the gateways, with the snapshots of their networks')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean } & ClientOptions) => {
        const { printZgates } = await import('./zgate.ts');
        await printZgates(options, openClient(options, shell), shell);
      }),
    'gatehouse zgate list',
  );
  example(
    addressed(parent.command('restore'))
      .description('Put the network of a snapshot on the coordinator of a gateway, such as a new stick')
      .argument('<deviceId>', 'UUID of the gateway')
      .option('--snapshot <number>', 'which one (default: the newest)', whole)
      .option('-y, --yes', 'do not ask')
      .option(...JSON_OPTION)
      .action(async (id: string, options: import('./zgate.ts').RestoreOptions & ClientOptions) => {
        const { restoreZgate } = await import('./zgate.ts');
        await restoreZgate(id, options, openClient(options, shell), shell);
      }),
    'gatehouse zgate restore 0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40',
  );
  example(
    parent
      .command('probe')
      .description('Name the Zigbee coordinators at serial ports of this machine, and what each speaks')
      .option(...JSON_OPTION)
      .action(async (options: { json?: boolean }) => {
        const { probeCoordinators } = await import('./coordinators.ts');
        probeCoordinators(options, shell);
      }),
    'gatehouse zgate probe',
  );
}

function whole(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a whole number.');
}

const wholeUpTo = (max: number) => (text: string) => {
  if (/^\d{1,9}$/.test(text) && Number(text) <= max) return Number(text);
  throw new InvalidArgumentError(`expected a whole number up to ${max}.`);
};

function addCompletion(parent: Command, shell: Shell): void {
  example(
    parent
      .command('completion')
      .description('Print a script with which bash or zsh completes commands and options')
      .action(async () => {
        const { completionScript } = await import('./completion.ts');
        shell.stdout.write(completionScript(parent));
      }),
    'eval "$(gatehouse completion)"',
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
