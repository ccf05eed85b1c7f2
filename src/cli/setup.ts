/**
 * `gatehouse setup`: from an installed package to a service that runs. Asks for what a site needs, or takes it from options;
 * shows what it would write, judges that as `config check` does, and writes nothing without a yes. Run again, it changes
 * what is asked for and leaves the rest of the file as it is.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ConfigInput } from '../platform/config/config.ts';
import { parseConfig, readConfigText } from '../platform/config/config-file.ts';
import { writeDurably } from '../platform/host/durable-file.ts';
import { readNamedFile } from '../platform/host/regular-file.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { scanBus } from './bus-scan.ts';
import { openClient, Refused, SITE_CONFIG } from './client.ts';
import { checkConfig, everyCheck } from './config.ts';
import { coordinatorAt, serialAdapters } from './coordinators.ts';
import { serviceGroup } from './service-user.ts';
import { BEGINNING, settingsIn, type Wanted, withWanted } from './setup-file.ts';
import { PROTOCOLS, type WantedLink } from './setup-link.ts';
import { answerTo, askFirst, CommandFailed, EXIT, type Shell, unwritable } from './shell.ts';

export interface SetupOptions {
  config?: string;
  name?: string;
  listen?: string;
  encoders?: string;
  vendorRoot?: string[];
  link?: WantedLink[];
  upstream?: string;
  start: boolean;
  yes?: boolean;
}

/** The machine as this command sees it; a test gives another. */
export interface Machine {
  hostname(): string;
  /** Names of serial adapters that survive replugging. */
  adapters(): string[];
  /** systemd runs here. */
  hasSystemd: boolean;
  /** Rejects when it fails. */
  systemctl(...args: string[]): Promise<unknown>;
  openClient: typeof openClient;
}

const MACHINE: Machine = {
  hostname,
  adapters: serialAdapters,
  hasSystemd: existsSync('/run/systemd/system'),
  systemctl: (...args) => promisify(execFile)('systemctl', args),
  openClient,
};

/** Sticks whose USB name says that they are Zigbee coordinators: no frame of another protocol should reach one. */
const isCoordinator = (port: string) => /zigbee|slzb/i.test(port) || coordinatorAt(port) !== undefined;
const FILE_MODE = 0o640;
/** After READY, for a link to come up. */
const LINK_UP_MS = 15_000;
const LOOK_MS = 500;

export async function setUp(options: SetupOptions, shell: Shell, machine: Machine = MACHINE): Promise<void> {
  const file = resolve(options.config ?? shell.env.GATEHOUSE_CONFIG ?? SITE_CONFIG);
  if (!shell.stdin.isTTY && !options.yes)
    throw new CommandFailed('No one is there to answer: add --yes to take what the options say.', EXIT.usage);
  const before = existsSync(file) ? readConfigText(file) : undefined;
  if (before !== undefined) parseConfig(before, file);
  const asked = await questions(options, settingsIn(before ?? BEGINNING), shell, machine);
  await using copies = new AsyncDisposableStack();
  const vendorRoots = asked.vendorRoots.map((root) => copied(root, dirname(file), copies));
  const { text, added } = withWanted(before ?? BEGINNING, { ...asked, vendorRoots });
  if (text === before) {
    shell.stdout.write(`${file} says all of this already: nothing is changed.\n`);
    return;
  }
  parseConfig(text, file, everyCheck(shell));
  shell.stdout.write(`${before === undefined ? text : differences(file, text)}\n`);
  await askFirst(shell, options.yes, `Write this to ${file}?`, 'Nothing was written.');
  await write(file, text);
  // What was copied belongs to the configuration now.
  copies.move();
  checkConfig(file, {}, shell);
  const isStarted = options.start && machine.hasSystemd && (await start(shell, machine));
  const buses = added.filter((id) => id.startsWith('bus'));
  const unheard = isStarted ? await probe(buses, file, shell, machine) : buses;
  shell.stdout.write(nextSteps(file, unheard, isStarted, hasVendorRoot(settingsIn(text))));
}

/** Has the service, which alone opens ports, ask who is on each bus. Returns those that could not be asked. */
async function probe(
  buses: readonly string[],
  file: string,
  shell: Shell,
  machine: Machine,
): Promise<string[]> {
  const unheard: string[] = [];
  for (const bus of buses) {
    shell.stdout.write(`Who is on ${bus}?\n`);
    try {
      await scanned(bus, file, shell, machine);
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      shell.stdout.write(`${error.message}\n`);
      unheard.push(bus);
    }
    shell.stdout.write('\n');
  }
  return unheard;
}

async function scanned(bus: string, file: string, shell: Shell, machine: Machine): Promise<void> {
  const client = machine.openClient({ config: file }, shell);
  const deadline = shell.clock.monotonic() + LINK_UP_MS;
  for (;;) {
    try {
      return await scanBus(bus, {}, client, shell);
    } catch (error) {
      if (!(error instanceof Refused) || shell.stopping.aborted || shell.clock.monotonic() > deadline)
        throw error;
      await shell.clock.sleep(LOOK_MS, shell.stopping).catch(() => {});
    }
  }
}

/** What the options do not say is asked for on a terminal, and is otherwise as the file or the default has it. */
async function questions(
  options: SetupOptions,
  has: ReturnType<typeof settingsIn>,
  shell: Shell,
  machine: Machine,
): Promise<Wanted> {
  const asks = shell.stdin.isTTY && !options.yes;
  // A mistake is said at once, and the question is asked again: not after the last of them.
  const answer = async (
    given: string | undefined,
    question: string,
    otherwise: string,
    meant: (text: string) => ConfigInput,
  ) => {
    if (given !== undefined || !asks) return given ?? otherwise;
    for (;;) {
      const text = (await answerTo(shell, question, otherwise)) || otherwise;
      const mistake = text === '' ? undefined : mistakeIn(meant(text), shell);
      if (mistake === undefined) return text;
      shell.stderr.write(`${mistake}\n`);
    }
  };
  const name = await answer(
    options.name,
    'Name or address of this machine, as desks and encoders will write it',
    has.http?.names?.[0] ?? machine.hostname(),
    (text) => ({ http: { names: [text] } }),
  );
  const listen = await answer(
    options.listen,
    'Serve the interface at (host:port; 0.0.0.0 is every network of this machine)',
    has.http?.listen ?? '0.0.0.0:8443',
    (listen) => ({ http: { listen } }),
  );
  const encoders = await answer(
    options.encoders,
    'Encoders connect to (host:port)',
    has.encoders?.listen ?? '0.0.0.0:8883',
    (listenAt) => ({ http: { listen }, encoders: { listen: listenAt } }),
  );
  const hasRoot = hasVendorRoot(has);
  const root = options.vendorRoot
    ? ''
    : await answer(
        hasRoot ? '' : undefined,
        'PEM file with the root certificate of the vendor of the encoders (Enter: none yet)',
        '',
        (file) => ({ encoders: { vendorRoots: [resolve(file)] } }),
      );
  const upstream = await answer(
    options.upstream ?? (has.upstream ? '' : undefined),
    'URL of the notification service, such as mqtts://host:8883 (Enter: none)',
    '',
    (url) => ({ upstream: { url } }),
  );
  const links = options.link ?? (asks ? await linksFor(has, shell, machine) : []);
  return {
    name,
    listen,
    encoders,
    vendorRoots: options.vendorRoot ?? (root === '' ? [] : [root]),
    upstream: upstream === '' ? undefined : upstream,
    links,
  };
}

/** What the daemon would say of these settings; undefined: it takes them. */
function mistakeIn(settings: ConfigInput, shell: Shell): string | undefined {
  try {
    parseConfig(JSON.stringify(settings), 'the answer', everyCheck(shell));
    return undefined;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return error.mistakes.map(({ message }) => message).join('; ') || error.message;
  }
}

/** Asks for each serial adapter that the configuration does not name yet. */
async function linksFor(
  { links = [] }: ReturnType<typeof settingsIn>,
  shell: Shell,
  machine: Machine,
): Promise<WantedLink[]> {
  const isNamed = (port: string) =>
    links.some(({ options }) => (options as { port?: unknown } | undefined)?.port === port);
  const found: WantedLink[] = [];
  for (const port of machine.adapters().filter((each) => !isNamed(each))) {
    const guess = isCoordinator(port) ? 'zigbee' : 'nothing';
    const question = `${basename(port)}\nWhat is connected to it? (${PROTOCOLS.join(', ')} or nothing)`;
    for (;;) {
      const answer = (await answerTo(shell, question, guess)).toLowerCase() || guess;
      if (answer === 'nothing') break;
      const protocol = PROTOCOLS.find((each) => each === answer);
      if (!protocol) continue;
      found.push({ protocol, port });
      break;
    }
  }
  return found;
}

/** The file beside the configuration, where the service may read it; removed again unless the configuration is written. */
function copied(given: string, folder: string, copies: AsyncDisposableStack): string {
  const source = resolve(given);
  if (dirname(source) === folder) return source;
  const target = join(folder, basename(source));
  if (!existsSync(source)) throw new CommandFailed(`There is no file ${source}.`, EXIT.usage);
  try {
    const pem = readNamedFile(source);
    if (existsSync(target)) {
      if (readNamedFile(target) === pem) return target;
      throw new CommandFailed(`${target} is there already, and is another file: rename ${source}.`);
    }
    writeFileSync(target, pem, { flag: 'wx' });
    copies.defer(() => rmSync(target, { force: true }));
    giveToService(target);
    return target;
  } catch (error) {
    throw error instanceof CommandFailed ? error : unwritable(target, error);
  }
}

/** As diff(1), an essential package of Debian, prints them. */
function differences(file: string, text: string): string {
  const labels = ['--label', file, '--label', `${file}, as it would be`];
  return spawnSync('diff', ['-u', ...labels, file, '-'], { input: text, encoding: 'utf8' }).stdout;
}

/** A file that is there keeps its owner and mode. */
async function write(file: string, text: string): Promise<void> {
  const before = statSync(file, { throwIfNoEntry: false });
  try {
    await writeDurably(file, text);
    if (!before) return giveToService(file);
    chmodSync(file, before.mode & 0o777);
    chownSync(file, before.uid, before.gid);
  } catch (error) {
    throw unwritable(file, error);
  }
}

/** The service may read it, and no one else but root. */
function giveToService(file: string): void {
  chmodSync(file, FILE_MODE);
  const group = serviceGroup();
  // Without root's rights the file keeps the group of who runs this.
  if (group !== undefined && statSync(file).uid === 0) chownSync(file, 0, group);
}

/** Starts the service now and with the machine; one that runs is restarted, as the names in its certificate are new. */
async function start(shell: Shell, { systemctl }: Machine): Promise<boolean> {
  if (!shell.become) return false;
  try {
    await systemctl('enable', 'gatehouse');
    await systemctl('restart', 'gatehouse');
    return true;
  } catch (error) {
    const message =
      'The configuration is written, and the service did not start: journalctl -u gatehouse -n 20';
    throw new CommandFailed(message, EXIT.failed, { cause: error });
  }
}

const hasVendorRoot = ({ encoders }: ReturnType<typeof settingsIn>) =>
  (encoders?.vendorRoots ?? []).length > 0;

function nextSteps(file: string, unheard: readonly string[], isStarted: boolean, hasRoot: boolean): string {
  const steps = [
    ...(isStarted ? [] : [`sudo systemctl enable --now gatehouse (or: gatehouse serve --config ${file})`]),
    'sudo gatehouse doctor',
    ...unheard.map((id) => `sudo gatehouse bus scan ${id}`),
    ...(hasRoot ? [] : ['sudo gatehouse setup --vendor-root FILE (without it no encoder can register)']),
    'sudo gatehouse login-code --role service-tool --label "technician"',
  ];
  return `${isStarted ? 'The service runs. ' : ''}Next:\n${steps.map((step) => `  ${step}\n`).join('')}`;
}
