/** Child processes that report what happens in lines of JSON on standard output and end with their standard input. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Child<Message> extends AsyncDisposable {
  readonly pid: number;
  /** All messages so far. */
  readonly messages: readonly Message[];
  /** The last lines of standard error. */
  readonly complaints: readonly string[];
  /** The first message, past or to come, that fits. Throws when the child ends first, and after `timeoutMs`. */
  waitFor(fits: (message: Message) => boolean, timeoutMs?: number): Promise<Message>;
  say(line: unknown): void;
  kill(signal: NodeJS.Signals): void;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface ChildOptions<Message> {
  /** This same Node when absent. */
  program?: string;
  args: string[];
  environment?: Record<string, string>;
  /** Called with each message. */
  onMessage?(message: Message): void;
}

const COMPLAINTS_KEPT = 40;
const DEFAULT_TIMEOUT_MS = 30_000;
const GRACE_MS = 10_000;

export function openChild<Message>(options: ChildOptions<Message>): Child<Message> {
  // A process group of its own: Ctrl-C in a terminal ends the parent, which then ends its children in order.
  const child: ChildProcess = spawn(options.program ?? process.execPath, options.args, {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...options.environment },
  });
  const messages: Message[] = [];
  const complaints: string[] = [];
  const waiting = new Set<(over: boolean) => void>();
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr || child.pid === undefined)
    throw new Error('a child could not be started');

  createInterface({ input: stdout }).on('line', (line) => {
    try {
      messages.push(JSON.parse(line) as Message);
    } catch {
      complain(line);
      return;
    }
    options.onMessage?.(messages.at(-1) as Message);
    for (const check of waiting) check(false);
  });
  createInterface({ input: stderr }).on('line', complain);
  function complain(line: string): void {
    complaints.push(line);
    if (complaints.length > COMPLAINTS_KEPT) complaints.shift();
  }
  stdin.on('error', () => undefined);
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal });
      for (const check of waiting) check(true);
    });
  });

  return {
    pid: child.pid,
    messages,
    complaints,
    waitFor(fits, timeoutMs = DEFAULT_TIMEOUT_MS) {
      const { promise, resolve, reject } = Promise.withResolvers<Message>();
      const give = (reason: string) => {
        waiting.delete(check);
        const last = messages.slice(-5).map((one) => JSON.stringify(one));
        const who = `${options.args[0] ?? options.program} (process ${child.pid})`;
        reject(new Error([`${who} ${reason}`, ...last, ...complaints].join('\n')));
      };
      const timeout = setTimeout(
        () => give(`did not say within ${timeoutMs / 1_000} s what is waited for`),
        timeoutMs,
      );
      function check(over: boolean): void {
        const found = messages.find(fits);
        if (!found && !over) return;
        clearTimeout(timeout);
        waiting.delete(check);
        if (found) resolve(found);
        else give('ended first');
      }
      waiting.add(check);
      check(child.exitCode !== null || child.signalCode !== null);
      return promise;
    },
    say: (line) => void stdin.write(`${JSON.stringify(line)}\n`),
    kill: (signal) => void child.kill(signal),
    exited,
    async [Symbol.asyncDispose]() {
      stdin.end();
      const impatience = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
      await exited;
      clearTimeout(impatience);
    },
  };
}
