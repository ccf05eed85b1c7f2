/**
 * Stands for a link with devices where a test needs no wire: it takes the place of the loopback driver (drivers/loopback) in
 * hosts that host.ts runs. The devices are those that its options name (devices.ts).
 *
 * Reports `{count}` as subject `counter`, and the devices, at an interval. Commands: `echo` answers its data · `fail` throws the given
 * code · `hang` waits for its signal · `break` breaks the link · `emit` emits events and answers when all are durable.
 */
import { z } from 'zod';
import {
  type Driver,
  type DriverCommand,
  type DriverContext,
  DriverError,
  type DriverErrorCode,
  type Plain,
} from '../../../drivers/contract/driver.ts';
import { valid } from '../../../drivers/contract/valid.ts';
import { type Devices, devicesOption, openDevices } from './devices.ts';
import { gatewayOptions } from './zgate.ts';

const optionsSchema = z.strictObject({
  reportEveryMs: z.int().min(10).max(3_600_000).default(1_000),
  devices: devicesOption,
  ...gatewayOptions.shape,
});

const failData = z.strictObject({
  code: z.enum([
    'NO_REPLY',
    'BAD_REPLY',
    'REFUSED',
    'BUSY',
    'OUTCOME_UNKNOWN',
  ]) satisfies z.ZodType<DriverErrorCode>,
});
const emitData = z.strictObject({ prefix: z.string().min(1).max(64), count: z.int().min(1).max(10_000) });

export async function openSimulatedLink(
  options: Plain,
  context: DriverContext,
  signal: AbortSignal,
): Promise<Driver> {
  const { reportEveryMs, devices: played, ...gateway } = valid(optionsSchema, options, 'INVALID_OPTIONS');
  signal.throwIfAborted();
  const broken = new AbortController();
  const devices = openDevices({
    devices: played,
    gateway,
    clock: context.clock,
    report: context.report,
    emit: context.emit,
    valid: (schema, data) => valid(schema, data, 'INVALID_COMMAND'),
  });

  return {
    async run(runSignal) {
      const ended = AbortSignal.any([runSignal, broken.signal]);
      for (let count = 1; ; count += 1) {
        context.report({ subject: 'counter', state: { count } });
        devices.report();
        await context.clock.sleep(reportEveryMs, ended);
      }
    },
    async execute(command, commandSignal) {
      if (command.kind !== 'break') return execute(command, context, devices, commandSignal);
      broken.abort(new DriverError('LINK_LOST', 'broken by command'));
      return null;
    },
    async [Symbol.asyncDispose]() {},
  };
}

async function execute(
  command: DriverCommand,
  context: DriverContext,
  devices: Devices,
  signal: AbortSignal,
): Promise<Plain> {
  const forDevices = devices.commands.get(command.kind);
  if (forDevices) return forDevices(command.data, signal);
  switch (command.kind) {
    case 'echo':
      return command.data;
    case 'fail':
      throw new DriverError(
        valid(failData, command.data, 'INVALID_COMMAND').code,
        'failed, as the command wants it',
      );
    case 'hang':
      signal.throwIfAborted();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      throw signal.reason;
    case 'emit': {
      const { prefix, count } = valid(emitData, command.data, 'INVALID_COMMAND');
      for (let index = 0; index < count; index += 1) {
        await context.emit({ id: `${prefix}-${index}`, kind: 'emitted', data: { index } }, signal);
      }
      return { count };
    }
    default:
      throw new DriverError('INVALID_COMMAND', `a loopback link has no command ${command.kind}`);
  }
}
