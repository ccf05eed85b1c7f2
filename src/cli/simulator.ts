/** A simulator as a process of its own: it lives as long as its input, which this ends at a signal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CommandFailed, type Shell } from './shell.ts';
import { parseAnswer } from './terminal-text.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Of a package, and of a checkout. */
const PLACES = ['dist/simulate/simulate.js', 'test/simulators/simulate.ts'].map((path) => join(ROOT, path));

export interface Simulator extends AsyncDisposable {
  /** What it says, until it ends. Throws CommandFailed when it ends unasked. */
  readonly events: AsyncIterable<Record<string, unknown>>;
  say(line: unknown): void;
  /** From now on what is typed goes to it. */
  takeInput(commandOf: (line: string) => unknown): void;
}

export function startSimulator(kind: string, args: readonly string[], shell: Shell): Simulator {
  const entry = PLACES.find(existsSync);
  if (entry === undefined) throw new CommandFailed('This installation has no simulators.');
  const { execPath } = shell.processes;
  const child = spawn(execPath, [entry, kind, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env: {} });
  const { stdin, stdout, stderr } = child;
  stdin.on('error', () => undefined);
  const complaints: string[] = [];
  stderr.setEncoding('utf8').on('data', (text: string) => void complaints.push(text));
  const exited = once(child, 'close');
  const end = () => stdin.end();
  shell.stopping.addEventListener('abort', end, { once: true });
  if (shell.stopping.aborted) end();
  const say = (line: unknown) => void stdin.write(`${JSON.stringify(line)}\n`);

  async function* events() {
    for await (const line of createInterface({ input: stdout }))
      yield parseAnswer(line) as Record<string, unknown>;
    const [code] = await exited;
    if (!shell.stopping.aborted)
      throw new CommandFailed(`The simulator has ended with ${code}.\n${complaints.join('').trimEnd()}`);
  }
  return {
    events: events(),
    say,
    takeInput(commandOf) {
      createInterface({ input: shell.stdin, signal: shell.stopping }).on('line', (line) => {
        try {
          say(commandOf(line));
        } catch {
          shell.stderr.write('Expected Enter, or a command as JSON such as {"do": "disconnect"}.\n');
        }
      });
    },
    async [Symbol.asyncDispose]() {
      shell.stopping.removeEventListener('abort', end);
      end();
      await exited;
    },
  };
}
