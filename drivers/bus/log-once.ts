/** Defects in what a protocol hands to the bus: told once, for they show again with each frame, and never passed on. */
import type { DriverLog } from '../contract/driver.ts';

export type LogOnce = (error: unknown) => void;

export function openLogOnce(log: DriverLog, message: string): LogOnce {
  let isTold = false;
  return (error) => {
    if (!isTold) log.error({ err: error }, `${message}; told once`);
    isTold = true;
  };
}
