/** The commands, and the only importer of commander. What a command does is loaded when it is called. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '../app/version.ts';
import { ROLES } from '../platform/principal.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { addBackups } from './backup-commands.ts';
import { addBuses } from './bus-commands.ts';
import { type ClientOptions, openClient } from './client.ts';
import { addCluster } from './cluster-commands.ts';
import { addConfig, addReload, addSetup } from './config-commands.ts';
import { CONFIG_OPTION, JSON_OPTION, type Kit, type Run, YES_OPTION } from './kit.ts';
import { addResources } from './resource-commands.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';
import { addSimulate } from './simulate-commands.ts';
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
    // What is no terminal is kept: the journal, a log, the reason why a nightly backup failed.
    if (error instanceof FileError)
      return failed(shell, shell.stderr.isTTY ? error.withLines : error.message, EXIT.usage);
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
  const kit = openKit(shell, result);
  example(gatehouse, 'gatehouse serve', 'gatehouse token create --role service-tool', 'gatehouse status');
  addServe(gatehouse, kit);
  addSetup(gatehouse, kit);
  addReload(gatehouse, kit);
  addTokens(gatehouse.command('token').description('Tokens for the programs that use the interface'), kit);
  addLoginCode(gatehouse, kit);
  addStatus(gatehouse, kit);
  addDoctor(gatehouse, kit);
  addImport(gatehouse, kit);
  addExport(gatehouse, kit);
  addSupportBundle(gatehouse, kit);
  addBackups(gatehouse, kit);
  addUpdate(gatehouse, kit);
  addEvents(gatehouse.command('events').description('What happens on the site'), kit);
  addAudit(gatehouse.command('audit').description('Who did what'), kit);
  const zgate = gatehouse.command('zgate').description('Zigbee gateways and the networks they carry');
  addZgate(zgate, kit);
  addResources(gatehouse, zgate, kit);
  addBuses(gatehouse, kit);
  addCluster(gatehouse.command('cluster').description('Two gateways, of which one follows the other'), kit);
  addSimulate(gatehouse, kit);
  addConfig(gatehouse.command('config').description('The configuration file'), kit);
  addVersion(gatehouse, kit);
  addCompletion(gatehouse, kit);
  return gatehouse;
}

function openKit(shell: Shell, result: { exitCode: number }): Kit {
  const endWith = (exitCode: number) => {
    result.exitCode = exitCode;
  };
  /** Commander's last argument is the command itself; the options come before it. */
  async function call(load: () => Promise<Run>, given: unknown[], more: unknown[]): Promise<void> {
    const run = (await load()) as (...given: unknown[]) => unknown;
    if ((await run(...given.slice(0, -1), ...more)) === false) endWith(EXIT.failed);
  }
  return {
    shell,
    endWith,
    example,
    addressed: (command) =>
      command.option(...CONFIG_OPTION).option('-s, --socket <path>', "the daemon's unix socket"),
    whole,
    wholeUpTo,
    atDaemon:
      (load) =>
      async (...given) =>
        call(load, given, [openClient(given.at(-2) as ClientOptions, shell), shell]),
    here:
      (load) =>
      async (...given) =>
        call(load, given, [shell]),
  };
}

/** Also what is said after a mistake: where the help of this very command is. */
function example(command: Command, ...lines: string[]): Command {
  const names: string[] = [];
  for (let one: Command | null = command; one; one = one.parent) names.unshift(one.name());
  command.showHelpAfterError(`(${names.join(' ')} --help shows what there is)`);
  return command.addHelpText('after', `\nExample:\n${lines.map((line) => `  $ ${line}`).join('\n')}`);
}

function addServe(parent: Command, { example, here }: Kit): void {
  example(
    parent
      .command('serve')
      .description('Run the daemon in the foreground, until SIGTERM or SIGINT')
      .option(...CONFIG_OPTION)
      .action(here(async () => (await import('./serve.ts')).serve)),
    'gatehouse serve --config /etc/gatehouse/gatehouse.yaml',
  );
}

function addTokens(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(parent, 'gatehouse token list');
  example(
    addressed(parent.command('create'))
      .description('Make a token and print it; it is shown this once')
      .addOption(new Option('-r, --role <role...>', 'what it may do').choices(ROLES).makeOptionMandatory())
      .option('-l, --label <text>', 'who will use it, for the list and the audit')
      .option('-d, --days <number>', 'how long it is valid (default: 90)', days)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./token.ts')).createToken)),
    'gatehouse token create --role pms --label "hotel system" --days 90',
  );
  example(
    addressed(parent.command('list'))
      .description('List the tokens, without their secrets')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./token.ts')).listTokens)),
    'gatehouse token list',
  );
  example(
    addressed(parent.command('renew'))
      .description('Give a token a new secret and a new life; the old secret is good for a while')
      .argument('<id>', 'as token list shows it')
      .option('-d, --days <number>', 'how long it is valid from now on (default: 90)', days)
      .option('-o, --overlap-hours <number>', 'how long the old secret is good (default: 24)', wholeUpTo(336))
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./token.ts')).renewToken)),
    'gatehouse token renew 0f3c9a5b2d17 --overlap-hours 48',
  );
  example(
    addressed(parent.command('revoke'))
      .description('Shut out anyone who uses a token, at once')
      .argument('<id>', 'as token list shows it')
      .option(...YES_OPTION)
      .action(atDaemon(async () => (await import('./token.ts')).revokeToken)),
    'gatehouse token revoke 0f3c9a5b2d17',
  );
}

function addLoginCode(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('login-code'))
      .description('Let a person sign in: print a code that is good once, for 10 minutes')
      .addOption(new Option('-r, --role <role...>', 'what they may do').choices(ROLES).makeOptionMandatory())
      .option('-l, --label <text>', 'who it is, for the list and the audit')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./login-code.ts')).createLoginCode)),
    'gatehouse login-code --role service-tool --label "installer"',
  );
}

function days(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1) return number;
  throw new InvalidArgumentError('expected a whole number of days, 1 or more.');
}

function addStatus(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('status'))
      .description('Show how the installation is, what needs attention first')
      .addOption(new Option('-w, --watch', 'draw it again every second, until Ctrl-C').conflicts('json'))
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./status.ts')).printStatus)),
    'gatehouse status',
    'gatehouse status --watch',
    'gatehouse status --json | jq .sinks',
  );
}

function addImport(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('import'))
      .description(
        "Bring in a site's groups, schedules, templates, doors and RS-485 devices; nothing is deleted",
      )
      .argument('<file>', 'see config/site.example.yaml')
      .option('-n, --dry-run', 'only show what would change')
      .option(...YES_OPTION)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./import.ts')).importSite)),
    'gatehouse import site.yaml --dry-run',
    'gatehouse import site.yaml',
  );
}

function addExport(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('export'))
      .description(
        'Print the site as a file that import takes back: groups, schedules, templates, doors, RS-485 devices',
      )
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./export.ts')).exportSite)),
    'gatehouse export > site.yaml',
  );
}

function addSupportBundle(parent: Command, { example, addressed, shell }: Kit): void {
  example(
    addressed(parent.command('support-bundle'))
      .description(
        'Print what a person who helps from elsewhere needs to see, as JSON: state, configuration, buses, metrics, the last log lines; no secret',
      )
      .action(async (options: ClientOptions) => {
        const { printSupportBundle } = await import('./export.ts');
        await printSupportBundle(openClient(options, shell), shell);
      }),
    'gatehouse support-bundle > support.json',
  );
}

function addEvents(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(parent, 'gatehouse events tail');
  example(
    addressed(parent.command('tail'))
      .description('Follow events as they happen, until Ctrl-C')
      .option('-a, --after <id>', 'go on after this event; without it, with what comes next')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./events.ts')).tailEvents)),
    'gatehouse events tail',
    'gatehouse events tail --json | jq .event.data',
  );
}

function addAudit(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(parent, 'gatehouse audit verify');
  example(
    addressed(parent.command('verify'))
      .description('Check that no entry was changed, put in or taken away; ends with 1 if one was')
      .option(
        '--checkpoint <file>',
        'a checkpoint or an export kept elsewhere: finds newest entries taken away',
      )
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./audit.ts')).verifyAudit)),
    'gatehouse audit verify --checkpoint /mnt/usb/audit-2026-11.jsonl',
  );
  example(
    addressed(parent.command('export'))
      .description('Write the entries as JSON lines, with a signed checkpoint at the end')
      .requiredOption('-o, --out <file>', 'replaced once the export is whole')
      .option('--from <time>', 'entries of this time or later, such as 2026-11-01 (UTC)', dateTime)
      .option('--to <time>', 'entries before this time', dateTime)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./audit.ts')).exportAudit)),
    'gatehouse audit export --out /mnt/usb/audit-2026-11.jsonl',
  );
}

function dateTime(text: string): string {
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return new Date(time).toISOString();
  throw new InvalidArgumentError('expected a time such as 2026-11-01 or 2026-11-01T08:00:00Z.');
}

function addDoctor(parent: Command, { example, here }: Kit): void {
  example(
    parent
      .command('doctor')
      .description('Look at everything an installation needs, and say what mends what is wrong')
      .option(...CONFIG_OPTION)
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./doctor.ts')).examine)),
    'gatehouse doctor',
  );
}

function addZgate(parent: Command, { example, addressed, atDaemon, here }: Kit): void {
  example(parent, 'gatehouse zgate list');
  example(
    addressed(parent.command('list'))
      .description('List the gateways, with the snapshots of their networks')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./zgate.ts')).printZgates)),
    'gatehouse zgate list',
  );
  example(
    addressed(parent.command('restore'))
      .description('Put the network of a snapshot on the coordinator of a gateway, such as a new stick')
      .argument('<deviceId>', 'UUID of the gateway')
      .option('--snapshot <number>', 'which one (default: the newest)', whole)
      .option('--without-keys', 'leave out link keys that a coordinator of the other make cannot take')
      .addOption(
        new Option(
          '--new-network',
          'form a new network in place of that of another gateway, of which the coordinator carries one',
        ).conflicts(['snapshot', 'withoutKeys']),
      )
      .addOption(
        new Option(
          '--withdraw',
          'end an order that was given before, and has not been carried out',
        ).conflicts(['snapshot', 'withoutKeys', 'newNetwork']),
      )
      .option(...YES_OPTION)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./zgate.ts')).restoreZgate)),
    'gatehouse zgate restore 0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40',
  );
  example(
    parent
      .command('probe')
      .description('Name the Zigbee coordinators at serial ports of this machine, and what each speaks')
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./coordinators.ts')).probeCoordinators)),
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

function addCompletion(parent: Command, { example, shell }: Kit): void {
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

function addVersion(parent: Command, { example, shell }: Kit): void {
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
