/** The daemon's side of commands: what was handed to one host and is not settled yet. */
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import type { Clock } from '../clock.ts';
import type { LinkCommand } from '../execute.ts';
import type { Log } from '../log.ts';
import { COMMANDS_MAX, type DaemonMessage, type Failure } from './ipc.ts';

/** After a command's deadline, for the driver's word on it to arrive. */
const ANSWER_MARGIN_MS = 1_000;

export interface CommandsOptions {
  send: (message: DaemonMessage) => Promise<void>;
  clock: Clock;
  log: Log;
  /** The host sits on a command. */
  overdue: (reason: string) => void;
}

export interface Commands {
  /** Rejects with a DriverError. Firing the signal asks the driver to stop; its word still decides. */
  execute(linkId: string, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** What the host answers. Throw when no such command is open. */
  done(id: number, answer: Plain): void;
  failed(id: number, error: Failure): void;
  /** Whether a command of this link is not settled. */
  isBusy(linkId: string): boolean;
  /** Everything was handed over and no one will answer. */
  hostEnded(): void;
}

interface OpenCommand {
  linkId: string;
  kind: string;
  /** Its host may have it, and must not have sent anything of it. */
  held: boolean;
  resolve(answer: Plain): void;
  reject(error: DriverError): void;
  /** The caller has received OUTCOME_UNKNOWN. */
  late: boolean;
  settled: AbortController;
}

export function openCommands({ send, clock, log, overdue }: CommandsOptions): Commands {
  const open = new Map<number, OpenCommand>();
  let lastId = 0;

  function close(id: number, outcome: string): OpenCommand {
    const command = open.get(id);
    if (!command) throw new Error('answered a command that is not open');
    open.delete(id);
    command.settled.abort('settled');
    if (command.late) log.warn({ kind: command.kind, outcome }, 'the outcome of a command came too late');
    return command;
  }

  function release(id: number): void {
    const command = open.get(id);
    if (!command) return;
    command.held = false;
    void send({ type: 'release', id });
  }

  /** Rejects when the command is settled. */
  async function unsettledFor(milliseconds: number, settled: AbortSignal): Promise<void> {
    await clock.sleep(milliseconds, settled);
    // A daemon held up by its disk runs timers before it reads: what came meanwhile still counts.
    await new Promise((resolve) => setImmediate(resolve));
    settled.throwIfAborted();
  }

  /** A caller does not wait on a driver that sits on a command, and a host that does so for long is given up. */
  async function watch(command: OpenCommand, timeoutMs: number): Promise<void> {
    await unsettledFor(timeoutMs + ANSWER_MARGIN_MS, command.settled.signal);
    command.late = true;
    const message = 'no answer came in time; the command may have taken effect';
    command.reject(new DriverError('OUTCOME_UNKNOWN', message));
    // With the wait above 2 × timeout + 1 s.
    await unsettledFor(timeoutMs, command.settled.signal);
    overdue(`a command (${command.kind}) was not settled in twice its time`);
  }

  return {
    async execute(linkId, { kind, data, timeoutMs, released }, signal) {
      signal.throwIfAborted();
      if (open.size >= COMMANDS_MAX) {
        throw new DriverError('BUSY', 'too many commands are open; try again in a second');
      }
      lastId += 1;
      const id = lastId;
      const { promise, resolve, reject } = Promise.withResolvers<Plain>();
      const held = released !== undefined;
      const command = { linkId, kind, held, resolve, reject, late: false, settled: new AbortController() };
      open.set(id, command);
      const deadline = clock.monotonic() + timeoutMs;
      void send({ type: 'command', id, linkId, kind, data, deadline, ...(held && { held }) });
      // Rejects when the command is settled.
      watch(command, timeoutMs).catch(() => undefined);
      const cancel = () => {
        if (open.has(id)) void send({ type: 'cancel', id });
      };
      released?.then(() => release(id), cancel);
      signal.addEventListener('abort', cancel, { once: true, signal: command.settled.signal });
      return promise;
    },
    isBusy: (linkId) => open.values().some((command) => command.linkId === linkId),
    done(id, answer) {
      close(id, 'done').resolve(answer);
    },
    failed(id, { code, message }) {
      close(id, code).reject(new DriverError(code, message));
    },
    hostEnded() {
      const message = 'the host process ended while it executed the command';
      for (const [id, { held }] of [...open]) {
        const error = held
          ? new DriverError('LINK_LOST', 'the host process ended before the command was sent')
          : new DriverError('OUTCOME_UNKNOWN', message);
        close(id, error.code).reject(error);
      }
    },
  };
}
