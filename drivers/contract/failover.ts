/** Of several addresses of one service, one after the other. */
import { ConnectionFailure } from './connection-failure.ts';

export type Failover<Target> = <Connection>(
  connect: (target: Target) => Promise<Connection>,
  signal: AbortSignal,
) => Promise<Connection>;

/**
 * The first is the one after that whose connection ended last, so that a service which accepts connections and then does nothing
 * costs one deadline and no more. Rejects with what each said; of a single target, with its own error.
 */
export function openFailover<Target>(targets: readonly Target[]): Failover<Target> {
  let turn = -1;
  return async (connect, signal) => {
    const failures: string[] = [];
    for (const _ of targets) {
      turn = (turn + 1) % targets.length;
      try {
        return await connect(targets[turn] as Target);
      } catch (error) {
        signal.throwIfAborted();
        if (targets.length === 1) throw error;
        failures.push(error instanceof Error ? error.message : String(error));
      }
    }
    throw new ConnectionFailure(failures.join('; '));
  };
}
