/** `node src/start.js serve`, or another program for it, in a process of its own, which ends with this one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };

export interface DaemonProcess extends AsyncDisposable {
  /** Undefined while it does not run. */
  pid(): number | undefined;
  launch(): void;
  /** Resolves when it has ended, no matter who ended it. */
  exited(): Promise<void>;
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>;
}

const PROJECT = join(import.meta.dirname, '../..');
const END_WITH_PARENT = join(import.meta.dirname, 'end-with-parent.js');
/** As `npm start` runs it. */
const [before = '', after = ''] = manifest.scripts.start.split(' node ');
export const NODE_FLAGS = after.split(' ').filter((word) => /^--(disable|max|heap)-/.test(word));
const ENVIRONMENT = Object.fromEntries(before.split(' ').map((word) => word.split('=')));
const GRACE_MS = 12_000;

/** Its output is added to the log file. `environment` is added to that of this process. `program`: from the root of the project. */
export function openDaemonProcess(options: {
  configFile: string;
  logFile: string;
  environment: Record<string, string> | undefined;
  program?: string;
}): DaemonProcess {
  const { configFile, logFile, environment, program = 'src/start.js' } = options;
  let child: ChildProcess | undefined;
  let gone: Promise<void> = Promise.resolve();

  return {
    pid: () => child?.pid,
    launch() {
      const log = openSync(logFile, 'a', 0o600);
      // A process group of its own: Ctrl-C in a terminal ends the demo, which then ends its daemon in order.
      const started = spawn(
        process.execPath,
        [...NODE_FLAGS, '--import', END_WITH_PARENT, program, 'serve', '--config', configFile],
        {
          cwd: PROJECT,
          detached: true,
          stdio: ['pipe', log, log],
          env: { ...process.env, ...ENVIRONMENT, ...environment },
        },
      );
      closeSync(log);
      child = started;
      gone = new Promise((resolve) => {
        started.on('exit', () => {
          child = undefined;
          resolve();
        });
      });
    },
    exited: () => gone,
    async kill() {
      child?.kill('SIGKILL');
      await gone;
    },
    async [Symbol.asyncDispose]() {
      child?.kill('SIGTERM');
      const impatience = setTimeout(() => child?.kill('SIGKILL'), GRACE_MS);
      await gone;
      clearTimeout(impatience);
    },
  };
}
