/** Defects in what a protocol hands to the bus: logged once, for they show again with each frame, and never passed on. */
import type { DriverLog } from '../contract/driver.ts';

export type LogOnce = (error: unknown) => void;

export function openLogOnce(log: DriverLog, message: string): LogOnce {
  let isLogged = false;
  return (error) => {
    if (!isLogged) log.error({ err: error }, `${message}; logged once`);
    isLogged = true;
  };
}
