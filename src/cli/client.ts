/** Asks the daemon over its unix socket, and finds that socket. */
import { readFileSync, statSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openDeadline, within } from '../../drivers/contract/waiting.ts';
import { VERSION } from '../app/version.ts';
import { adminSocketOf } from '../platform/config/config.ts';
import { readConfig, socketIn } from '../platform/config/config-file.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import type { Job } from '../services/jobs/schema.ts';
import { CommandFailed, EXIT, type Shell } from './shell.ts';
import { parseAnswer } from './terminal-text.ts';

export const SITE_CONFIG = '/etc/gatehouse/gatehouse.yaml';
const PACKAGED_CONFIG = join(import.meta.dirname, '../../config/gatehouse.example.yaml');
/** The slowest answer waits for one disk commit. */
const DEADLINE_MS = 10_000;
/** How often the daemon is asked how far a job is: often enough to see it move. */
const JOB_LOOK_MS = 250;

/** --config, else GATEHOUSE_CONFIG, else the site's file, else the packaged example. */
export function configFile(option: string | undefined, { env }: Shell): string {
  return option ?? env.GATEHOUSE_CONFIG ?? (isThere(SITE_CONFIG) ? SITE_CONFIG : PACKAGED_CONFIG);
}

/** What `configFile` returns where there is none of the site. */
export const isPackaged = (file: string) => file === PACKAGED_CONFIG;

/** Also where this user may not look: then reading it says so, and the example is not taken for the site's. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

export interface ClientOptions {
  socket?: string;
  config?: string;
}

export interface Client {
  /** Throws CommandFailed, with EXIT.notRunning when no one listens. */
  call<Answer>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    deadlineMs?: number,
  ): Promise<Answer>;
  /** The text of an event stream, as it comes, until the daemon ends it. Throws also when `signal` fires. */
  stream(path: string, signal: AbortSignal): AsyncIterable<string>;
}

/** All items of a list, page by page. `filters` is a query without its question mark, or "". */
export async function allItems<Item>(path: string, filters: string, client: Client): Promise<Item[]> {
  const items: Item[] = [];
  let cursor = '';
  for (;;) {
    const page = await client.call<{ items: Item[]; next: string | null }>(
      'GET',
      `${path}?limit=100${filters && `&${filters}`}${cursor}`,
    );
    items.push(...page.items);
    if (page.next === null) return items;
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
}

export function openClient(options: ClientOptions, shell: Shell): Client {
  const socket = options.socket ?? configuredSocket(options, shell);
  const send = async (method: string, path: string, body?: unknown, deadlineMs = DEADLINE_MS) => {
    using deadline = openDeadline(deadlineMs, shell.clock, () => undefined);
    try {
      return await exchange({ socket, method, path, body, signal: deadline.signal });
    } catch (error) {
      // An answer that has begun ends with another error.
      throw deadline.signal.aborted ? unanswered(deadlineMs, error) : unreachable(error as Error, socket);
    }
  };
  return {
    async call(method, path, body, deadlineMs) {
      const answer = await send(method, path, body, deadlineMs);
      if (answer.status < 300) return answer.body as never;
      throw new Refused(`${refusal(answer)}${await versionHint(send)}`, detailsOf(answer));
    },
    async *stream(path, signal) {
      const opening = openStream(socket, path, signal).catch((error: Error) => {
        throw unreachable(error, socket);
      });
      const response = await within(opening, DEADLINE_MS, shell.clock, () => unanswered(DEADLINE_MS));
      if (response.statusCode === 200) return yield* response.setEncoding('utf8');
      const answer = { status: response.statusCode ?? 0, body: parsed(await text(response)) };
      throw new Refused(refusal(answer), detailsOf(answer));
    },
  };
}

/** The <product> segment of the paths of doors, by the configuration; a command that needs more of the configuration reports its mistakes. */
export function productSegment({ config }: ClientOptions, shell: Shell): string {
  try {
    return readConfig(configFile(config, shell)).http.productSegment;
  } catch (error) {
    if (error instanceof FileError) return 'access';
    throw error;
  }
}

/** A mistake that was just made keeps no one from asking the daemon, which runs by the file of before. */
function configuredSocket({ config }: ClientOptions, shell: Shell): string {
  const file = configFile(config, shell);
  try {
    return adminSocketOf(readConfig(file));
  } catch (error) {
    if (!(error instanceof FileError) || error.mistakes.length === 0) throw error;
    const socket = socketIn(file);
    if (socket === undefined || !statSync(socket, { throwIfNoEntry: false })?.isSocket()) throw error;
    shell.stderr.write(`! ${file} has mistakes (gatehouse config check)\n`);
    return socket;
  }
}

export interface JobOrder {
  path: string;
  body?: unknown;
  /** Called once the job runs. */
  started?(): void;
  /** What to say when a signal has cancelled it. */
  cancelled: string;
  /** What to say before the reason when it failed. */
  failed: string;
}

/** Runs a job to its end, with progress on a terminal, and resolves with its result; a signal cancels it. */
export async function runJob(order: JobOrder, client: Client, shell: Shell): Promise<unknown> {
  const { stderr, stopping, clock } = shell;
  let job = await client.call<Job>('POST', order.path, order.body);
  order.started?.();
  while (job.status === 'queued' || job.status === 'running') {
    const { percent } = job.progress;
    if (stderr.isTTY && percent !== null) stderr.write(`\r${String(percent).padStart(3)} %`);
    await clock.sleep(JOB_LOOK_MS, stopping).catch(() => {});
    if (stopping.aborted) {
      await client.call('DELETE', `/jobs/${job.id}`);
      throw new CommandFailed(order.cancelled);
    }
    job = await client.call<Job>('GET', `/jobs/${job.id}`);
  }
  if (stderr.isTTY) stderr.write('\r      \r');
  if (job.status === 'done' && job.result) return job.result;
  throw new CommandFailed(`${order.failed}: ${job.error?.message ?? `the job was ${job.status}`}`);
}

/** The daemon said no. `details` are those of its answer, each with a JSON pointer into what was sent. */
export class Refused extends CommandFailed {
  readonly details: readonly { path: string; message: string }[];
  constructor(message: string, details: readonly { path: string; message: string }[]) {
    super(message);
    this.details = details;
  }
}

interface Answer {
  status: number;
  /** undefined when it is not JSON. */
  body: unknown;
}

interface Question {
  socket: string;
  method: string;
  path: string;
  body: unknown;
  signal: AbortSignal;
}

async function exchange({ socket, method, path, body, signal }: Question): Promise<Answer> {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const asked = request({
    socketPath: socket,
    method,
    path,
    signal,
    headers: {
      host: 'localhost',
      connection: 'close',
      ...(content !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(content),
      }),
    },
  });
  const answered = Promise.withResolvers<Answer>();
  asked.on('error', answered.reject);
  asked.on('response', (response) => {
    text(response)
      .then((received) => ({ status: response.statusCode ?? 0, body: parsed(received) }))
      .then(answered.resolve, answered.reject);
  });
  asked.end(content);
  return answered.promise;
}

function openStream(socketPath: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const asked = request({ socketPath, path, signal, headers: { host: 'localhost', connection: 'close' } });
  return new Promise((resolve, reject) => {
    asked.once('response', resolve).on('error', reject).end();
  });
}

function parsed(received: string): unknown {
  try {
    return parseAnswer(received);
  } catch {
    return undefined;
  }
}

function refusal({ status, body }: Answer): string {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  if (typeof message !== 'string') return `The daemon answered with status ${status}.`;
  const details = detailsOf({ body });
  // Its message names the fields of a request, which no one at a command line has written.
  if (error === 'VALIDATION_FAILED' && details.length > 0)
    return `Not valid:${details.map((one) => `\n  ${spoken(one.path)}${one.message}`).join('')}`;
  return message + details.map((one) => `\n  ${one.message}`).join('');
}

/** Options that have another name than the field they fill. */
const OPTION_OF: Readonly<Record<string, string>> = {
  expiresInDays: 'days',
  roles: 'role',
  tokenId: 'id',
  baudRate: 'baud',
};

/** `/baudRates/0`, `?baudRates` and `{baudRates}` as the options are spelt: `baud-rates: `. */
function spoken(path: string): string {
  const [field] = /[A-Za-z]+/.exec(path) ?? [];
  if (field === undefined) return '';
  const option = OPTION_OF[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `${option}: `;
}

function detailsOf({ body }: Pick<Answer, 'body'>): { path: string; message: string }[] {
  const { details } = (body ?? {}) as { details?: unknown };
  return Array.isArray(details)
    ? details.map(({ path, message }) => ({ path: String(path), message: String(message) }))
    : [];
}

/** A daemon left running through an upgrade may not understand what is asked. */
async function versionHint(send: (method: string, path: string) => Promise<Answer>): Promise<string> {
  const status = await send('GET', '/local/status').catch(() => undefined);
  return differentVersion((status?.body as { version?: string } | undefined)?.version) ?? '';
}

/** What to say when the daemon's version is not this command's. */
export function differentVersion(version: string | undefined): string | undefined {
  if (version === undefined || version === VERSION) return undefined;
  return `\nThe daemon runs version ${version} and this command is ${VERSION}: restart the daemon (systemctl restart gatehouse).`;
}

function unanswered(deadlineMs: number, cause?: unknown): CommandFailed {
  const message = `The daemon did not answer within ${deadlineMs / 1_000} s: see journalctl -u gatehouse.`;
  return new CommandFailed(message, EXIT.failed, { cause });
}

function unreachable(error: NodeJS.ErrnoException, socket: string): CommandFailed {
  const options = { cause: error };
  switch (error.code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return new CommandFailed(
        `Gatehouse is not running: no one listens on ${socket}.\nStart it with: systemctl start gatehouse (or: gatehouse serve). If it runs with another configuration, name that with --config. The standby of a cluster answers gatehouse cluster alone.`,
        EXIT.notRunning,
        options,
      );
    case 'EACCES':
    case 'EPERM':
      return new CommandFailed(
        `You may not open ${socket}: use sudo${orGroup(socket)}.`,
        EXIT.failed,
        options,
      );
    default:
      return new CommandFailed(`No answer from ${socket}: ${error.message}`, EXIT.failed, options);
  }
}

/** The group the socket belongs to, where that can be seen: then being a member is enough. */
function orGroup(socket: string): string {
  try {
    const { gid } = statSync(socket);
    const line = readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find((entry) => entry.split(':')[2] === String(gid));
    return line && gid !== 0 ? `, or become a member of the group ${line.split(':')[0]}` : '';
  } catch {
    return '';
  }
}
