/** `gatehouse update`: another release beside the one that runs, on trial, with the way back (docs/decisions/0011-updates.md). */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { VERSION } from '../../app/version.ts';
import { readConfig } from '../../platform/config/config-file.ts';
import { openReader } from '../../platform/database/connection.ts';
import { oldestRunning, readMigrations } from '../../platform/database/migrate.ts';
import type { Status } from '../../services/status/schema.ts';
import { openClient, SITE_CONFIG } from '../client.ts';
import { asOwnerOf } from '../folder-owner.ts';
import { askFirst, CommandFailed, EXIT, printJson, type Shell } from '../shell.ts';
import { UPDATE_KEY, unpack } from './incoming.ts';
import { openReleases, type Releases } from './releases.ts';
import { type Data, type Service, takeBack, tryOut } from './trial.ts';

const ROOT = '/usr/lib/gatehouse';
const TRIAL = 'gatehouse-update.service';
/** For a new version to say what it is: one that never ends holds up no one. */
const PROGRAM_MS = 60_000;

const systemctl = (...argv: string[]) => promisify(execFile)('systemctl', argv);

export async function update(
  file: string,
  { wait = 60, yes }: { wait?: number; yes?: boolean },
  shell: Shell,
): Promise<void> {
  const releases = installed();
  if (!shell.become) throw new CommandFailed('Only root may update.', EXIT.usage);
  if (!existsSync('/run/systemd/system'))
    throw new CommandFailed('Updates need systemd, which is not what runs this machine.');
  if (releases.pending()) throw new CommandFailed('Another update is under way: gatehouse update status');
  const workshop = releases.workshop();
  const machine = { publicKey: UPDATE_KEY, root: '/', version: VERSION };
  const { version, program } = unpack(file, workshop, machine);
  checkProgram(program, version);
  const status = await statusOf(shell);
  const links = status?.field.links.filter(({ up }) => up).map(({ id }) => id) ?? [];
  const question = `Gatehouse ${VERSION} becomes ${version}; the service is started again, and taken back after ${wait} s unless all is well. Go on?`;
  await askFirst(shell, yes, question, 'Nothing was changed.');
  const plan = {
    from: releases.current(),
    to: releases.add(program, version),
    version,
    schema: readMigrations().length,
    links,
    waitSeconds: wait,
  };
  if (!releases.begin(plan)) throw new CommandFailed('Another update is under way: gatehouse update status');
  try {
    await systemctl('start', TRIAL);
  } catch (cause) {
    const why = `journalctl -u ${TRIAL} -n 5`;
    throw new CommandFailed(`${version} was taken back, and ${VERSION} runs: ${why}`, EXIT.failed, { cause });
  }
  shell.stdout.write(`Gatehouse ${version} runs. The way back: gatehouse update rollback\n`);
}

/** It runs here, is what it says, and takes the configuration. */
function checkProgram(program: string, version: string): void {
  const [node, start] = [join(program, 'bin/node'), join(program, 'src/start.js')];
  const ask = (...argv: string[]) =>
    execFileSync(node, [start, ...argv], { encoding: 'utf8', stdio: 'pipe', timeout: PROGRAM_MS });
  try {
    const said = JSON.parse(ask('version', '--json')) as { version: string };
    if (said.version !== version) throw new Error(`it says that it is ${said.version}`);
    ask('config', 'check', '--config', SITE_CONFIG);
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new CommandFailed(`${version} does not do here, and nothing was changed: ${stderr || message}`);
  }
}

async function statusOf(shell: Shell): Promise<Status | undefined> {
  try {
    return await openClient({}, shell).call<Status>('GET', '/local/status');
  } catch {
    return undefined;
  }
}

/** What gatehouse-update.service runs. */
export async function trial(shell: Shell): Promise<void> {
  const service: Service = {
    stop: async () => void (await systemctl('stop', 'gatehouse.service')),
    start: async () => void (await systemctl('start', '--no-block', 'gatehouse.service')),
    status: () => statusOf(shell),
  };
  const { version } = await tryOut(installed(), service, shell.clock);
  shell.stdout.write(`${version} is accepted\n`);
}

/** What gatehouse.service runs before each start while an update is pending and no trial is. */
export async function settle(shell: Shell): Promise<void> {
  const releases = installed();
  const { dataDirectory: directory } = readConfig(SITE_CONFIG);
  const plan = await takeBack(releases, dataOf(directory, releases, shell));
  if (plan) shell.stdout.write(`${plan.version} is taken back: ${plan.from} runs again\n`);
}

function dataOf(directory: string, { root }: Releases, shell: Shell): Data {
  const file = join(directory, 'gatehouse.db');
  return {
    directory,
    oldest() {
      using _user = asOwnerOf(directory, shell);
      if (!existsSync(file)) return undefined;
      using connection = openReader(file);
      return oldestRunning(connection);
    },
    async restore(release, copy) {
      const program = join(root, release);
      const argv = [join(program, 'src/start.js'), 'restore', copy, '--yes', '--config', SITE_CONFIG];
      const { stdout } = await promisify(execFile)(join(program, 'bin/node'), argv);
      shell.stdout.write(stdout);
    },
  };
}

export async function printUpdate({ json }: { json?: boolean }, shell: Shell): Promise<void> {
  const releases = installed();
  const state = {
    version: VERSION,
    release: releases.current(),
    pending: releases.pending() ?? null,
    accepted: releases.accepted() ?? null,
  };
  if (json) return printJson(shell, state);
  const lines = [
    `Gatehouse ${VERSION}, ${state.release === 'base' ? 'as apt installed it' : `beside the package, in ${join(ROOT, state.release)}`}`,
    ...(state.pending ? [`${state.pending.version} is on trial; before it: ${state.pending.from}`] : []),
    ...(state.accepted ? [`before it: ${state.accepted.from} (gatehouse update rollback)`] : []),
  ];
  shell.stdout.write(`${lines.join('\n')}\n`);
}

/** The accepted update becomes a pending one: the start takes it back, as it does after a failed trial. */
export async function rollBack({ yes }: { yes?: boolean }, shell: Shell): Promise<void> {
  const releases = installed();
  const accepted = releases.accepted();
  if (!accepted) throw new CommandFailed('There is no update to take back.');
  if (!shell.become) throw new CommandFailed('Only root may roll back.', EXIT.usage);
  const { dataDirectory } = readConfig(SITE_CONFIG);
  const oldest = dataOf(dataDirectory, releases, shell).oldest() ?? 0;
  const loss =
    oldest > accepted.schema
      ? ' The database goes back to its copy from before the update: what was stored since is forgotten.'
      : '';
  const question = `Gatehouse ${accepted.version} becomes ${accepted.from} again.${loss} Go on?`;
  await askFirst(shell, yes, question, 'Nothing was changed.');
  releases.reopen();
  await systemctl('restart', 'gatehouse.service');
  shell.stdout.write(`Gatehouse ${accepted.version} is taken back.\n`);
}

function installed(): Releases {
  if (!existsSync(join(ROOT, 'current')))
    throw new CommandFailed(
      'This Gatehouse was not installed from its package: it cannot be updated by itself.',
    );
  return openReleases(ROOT);
}
