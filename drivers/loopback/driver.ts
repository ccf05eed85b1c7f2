/**
 * A link that answers itself: it shows that an installation works, from the interface down to the host process, without any
 * hardware. It is also the model to copy for a new driver (drivers/README.md). Reports `{count}` as subject `counter` at an
 * interval; the command `echo` answers its data.
 */
import { z } from 'zod';
import { type Driver, type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import { valid } from '../contract/valid.ts';

const optionsSchema = z.strictObject({
  reportEveryMs: z.int().min(10).max(3_600_000).default(1_000),
});

export async function openLoopback(
  options: Plain,
  { clock, report }: DriverContext,
  signal: AbortSignal,
): Promise<Driver> {
  const { reportEveryMs } = valid(optionsSchema, options, 'INVALID_OPTIONS');
  signal.throwIfAborted();
  return {
    async run(runSignal) {
      for (let count = 1; ; count += 1) {
        report({ subject: 'counter', state: { count } });
        await clock.sleep(reportEveryMs, runSignal);
      }
    },
    async execute({ kind, data }) {
      if (kind === 'echo') return data;
      throw new DriverError('INVALID_COMMAND', `a loopback link has no command ${kind}`);
    },
    async [Symbol.asyncDispose]() {},
  };
}
