/** What comes from the daemon is data until a schema has seen it. */
import { z } from 'zod';
import { DriverError, type DriverErrorCode, type Plain } from './driver.ts';

/** Throws a DriverError of that code, with every mistake and its place. */
export function valid<Schema extends z.ZodType>(
  schema: Schema,
  value: Plain,
  code: Extract<DriverErrorCode, 'INVALID_OPTIONS' | 'INVALID_COMMAND'>,
): z.output<Schema> {
  // Options are read once: zod would write a program for each part of the schema, and run it once.
  const result = schema.safeParse(value, { jitless: code === 'INVALID_OPTIONS' });
  if (result.success) return result.data;
  throw new DriverError(code, z.prettifyError(result.error));
}
