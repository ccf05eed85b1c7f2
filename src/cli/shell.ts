/** The process as commands see it: main.ts makes it from the real one, tests make their own. */
import { dirname } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import type { GatewayOptions } from '../app/gateway.ts';
import type { Clock } from '../platform/clock.ts';
import { printable, safeJson } from './terminal-text.ts';

export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: Writable & { isTTY?: boolean };
  readonly stderr: Writable & { isTTY?: boolean };
  /** Standard output is connected to the journal. */
  readonly journal: boolean;
  readonly nodeVersion: string;
  readonly clock: Clock;
  /** The program that runs this one, and how it ends a process for good. */
  readonly processes: GatewayOptions['processes'];
  /** The rights of another user, until disposed. Absent unless this is root. */
  become?(user: { uid: number; gid: number; groups?: number[] }): Disposable;
  /** Ends this process in so many milliseconds, whatever holds it up, with last words on standard error. */
  killAfter?(milliseconds: number, lastWords: string): void;
  /** Fires at SIGTERM or SIGINT. */
  readonly stopping: AbortSignal;
  /** Calls it at each SIGHUP, which ends the process otherwise. */
  onHangup(listener: () => void): void;
  /** Where an error that nothing caught is reported from now on; the process ends after it. */
  reportCrashes(report: (error: unknown) => void): void;
}

/** 0 is success; what a script may rely on. */
export const EXIT = { failed: 1, usage: 2, notRunning: 3 } as const;

/** A command did not do its work. The message is all the person sees. */
export class CommandFailed extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number = EXIT.failed, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandFailed';
    this.exitCode = exitCode;
  }
}

/** Why a file of the caller's could not be made, with what to do. */
export function unwritable(file: string, cause: unknown): CommandFailed {
  const { code, message } = cause as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    EEXIST: 'it exists already; name another file',
    ENOENT: `there is no folder ${dirname(file)}`,
    EACCES: 'this user may not write there',
  };
  const reason = reasons[code ?? ''] ?? message;
  return new CommandFailed(`${file} cannot be written: ${reason}.`, EXIT.failed, { cause });
}

export function printJson(shell: Shell, value: unknown): void {
  shell.stdout.write(`${safeJson(value, 2)}\n`);
}

type Format = Parameters<typeof styleText>[0];

/** Coloured where the stream is a terminal and NO_COLOR is not set. */
export function styled(stream: Writable, format: Format, text: string): string {
  return styleText(format, text, { stream });
}

/** Asks on the terminal, where Ctrl-C and Ctrl-D mean no; without one no one can answer, and yes is taken for granted. */
export async function confirmed(shell: Shell, question: string): Promise<boolean> {
  if (!shell.stdin.isTTY) return true;
  return /^y(es)?$/i.test((await readLine(shell, `${question} [y/N] `)) ?? '');
}

/** Asks on the terminal; `otherwise` is shown as what Enter means. Ctrl-C and Ctrl-D throw CommandFailed. */
export async function answerTo(shell: Shell, question: string, otherwise: string): Promise<string> {
  const line = await readLine(shell, `${question}${otherwise === '' ? '' : ` [${otherwise}]`}: `);
  if (line === undefined) throw new CommandFailed('Ended: nothing was changed.');
  return line;
}

/** What was typed; undefined: Ctrl-C or Ctrl-D. */
async function readLine(shell: Shell, prompt: string): Promise<string | undefined> {
  const readline = createInterface({ input: shell.stdin, output: shell.stderr });
  const closed = Promise.withResolvers<undefined>();
  readline.once('close', () => closed.resolve(undefined));
  try {
    const asked = readline.question(prompt, { signal: shell.stopping });
    return (await Promise.race([asked.catch(() => undefined), closed.promise]))?.trim();
  } finally {
    readline.close();
  }
}

/** Goes on with --yes, or a yes on the terminal: no one to ask is no yes. Throws CommandFailed, with what was left as it is. */
export async function askFirst(
  shell: Shell,
  yes: boolean | undefined,
  question: string,
  unchanged: string,
): Promise<void> {
  if (yes) return;
  if (!shell.stdin.isTTY)
    throw new CommandFailed(`${question} No one is there to answer: add --yes to go on.`, EXIT.usage);
  if (!(await confirmed(shell, question))) throw new CommandFailed(unchanged);
}

/** Rows of text under each other, two spaces apart. The text may be anybody's. */
export function table(unsafe: readonly (readonly string[])[]): string {
  const rows = unsafe.map((row) => row.map(printable));
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
