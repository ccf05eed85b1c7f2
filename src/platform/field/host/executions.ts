/** The host's side of commands: each is executed at most once in the life of the host, and not past its deadline. */
import {
  type Clock,
  type DriverCommand,
  DriverError,
  type Plain,
} from '../../../../drivers/contract/driver.ts';
import type { Log } from '../../log.ts';
import type { DaemonMessage, HostMessage } from '../ipc.ts';
import { failureOf } from './link.ts';

export interface ExecutionsOptions {
  send: (message: HostMessage) => Promise<void>;
  clock: Clock;
  log: Log;
  /** Hands the command to its link. */
  execute(linkId: string, command: DriverCommand, signal: AbortSignal): Promise<Plain>;
}

export interface Executions {
  command(message: Extract<DaemonMessage, { type: 'command' }>): void;
  release(id: number): void;
  cancel(id: number): void;
}

interface Execution {
  release(): void;
  /** Asks the driver to stop. */
  stop(reason: string): void;
}

export function openExecutions({ send, clock, log, execute }: ExecutionsOptions): Executions {
  const open = new Map<number, Execution>();
  let lastId = 0;

  async function run(message: Extract<DaemonMessage, { type: 'command' }>): Promise<void> {
    const { id, linkId, kind, data, deadline } = message;
    const stop = new AbortController();
    const settled = new AbortController();
    const hold = message.held ? openHold() : undefined;
    const stopFor = (reason: string) => {
      hold?.withdraw();
      stop.abort(hold?.isHeld() ? unsent() : new DriverError('OUTCOME_UNKNOWN', reason));
    };
    clock.sleep(deadline - clock.monotonic(), settled.signal).then(
      () => stopFor('the deadline passed while the command was executed'),
      () => undefined,
    );
    open.set(id, { release: () => hold?.release(), stop: stopFor });
    try {
      const command = { kind, data, deadline, ...(hold && { released: hold.released }) };
      const answer = await execute(linkId, command, stop.signal);
      void send({ type: 'done', id, data: answer });
    } catch (error) {
      const failure = failureOf(error, 'OUTCOME_UNKNOWN');
      // Whatever the driver thinks of it: what was not released was not sent, and is not any more.
      const known =
        hold?.isHeld() && failure.code === 'OUTCOME_UNKNOWN' ? failureOf(unsent(), 'LINK_LOST') : failure;
      void send({ type: 'failed', id, error: known });
    } finally {
      hold?.withdraw();
      settled.abort('settled');
      open.delete(id);
    }
  }

  return {
    command(message) {
      // Ids only rise, so one number remembers every command there was.
      if (message.id <= lastId) {
        log.error({ command: message.id }, 'a command came twice and was not executed again');
        return;
      }
      lastId = message.id;
      void run(message);
    },
    release: (id) => open.get(id)?.release(),
    cancel: (id) => open.get(id)?.stop('cancelled by the caller'),
  };
}

/** What keeps a command from being sent; withdrawn, it keeps it for ever. */
function openHold() {
  const { promise: released, resolve, reject } = Promise.withResolvers<void>();
  // A driver that has given up does not wait for it.
  released.catch(() => undefined);
  let state: 'held' | 'released' | 'withdrawn' = 'held';
  return {
    released,
    isHeld: () => state !== 'released',
    release() {
      if (state === 'held') state = 'released';
      resolve();
    },
    withdraw() {
      if (state !== 'held') return;
      state = 'withdrawn';
      reject(unsent());
    },
  };
}

function unsent(): DriverError {
  return new DriverError('DEADLINE_PASSED', 'it was withdrawn, or its time was over, before it was sent');
}
