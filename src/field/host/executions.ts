/** The host's side of commands: each is executed at most once in the life of the host, and not past its deadline. */
import { type Clock, DriverError, type Plain } from '../../../drivers/driver.ts';
import type { Log } from '../../log.ts';
import type { DaemonMessage, HostMessage } from '../ipc.ts';
import { failureOf } from './link.ts';

export interface ExecutionsOptions {
  send: (message: HostMessage) => Promise<void>;
  clock: Clock;
  log: Log;
  /** Hands the command to its link; `deadline` is monotonic milliseconds. */
  execute(
    linkId: string,
    command: { kind: string; data: Plain; deadline: number },
    signal: AbortSignal,
  ): Promise<Plain>;
}

export interface Executions {
  command(message: Extract<DaemonMessage, { type: 'command' }>): void;
  cancel(id: number): void;
}

export function openExecutions({ send, clock, log, execute }: ExecutionsOptions): Executions {
  const open = new Map<number, AbortController>();
  let lastId = 0;

  async function run(message: Extract<DaemonMessage, { type: 'command' }>): Promise<void> {
    const { id, linkId, kind, data, deadline } = message;
    const stop = new AbortController();
    const settled = new AbortController();
    const passed = new DriverError('OUTCOME_UNKNOWN', 'the deadline passed while the command was executed');
    clock.sleep(deadline - clock.monotonic(), settled.signal).then(
      () => stop.abort(passed),
      () => undefined,
    );
    open.set(id, stop);
    try {
      const answer = await execute(linkId, { kind, data, deadline }, stop.signal);
      void send({ type: 'done', id, data: answer });
    } catch (error) {
      void send({ type: 'failed', id, error: failureOf(error, 'OUTCOME_UNKNOWN') });
    } finally {
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
    cancel(id) {
      open.get(id)?.abort(new DriverError('OUTCOME_UNKNOWN', 'cancelled by the caller'));
    },
  };
}
