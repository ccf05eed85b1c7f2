/** What the checks of `gatehouse doctor` are given, and what they say. */
import type { Config } from '../../platform/config/config.ts';
import { isDiskFull } from '../../platform/database/faults.ts';
import type { Finding } from '../findings.ts';
import type { Shell } from '../shell.ts';

export interface Patient {
  config: Config;
  shell: Shell;
  /** The daemon holds its admin socket. */
  running: boolean;
}

/** What is bad has its remedy. */
export type Diagnosis = Finding;

/** What a start refuses with, "what is wrong: what mends it", or why it could not be looked at. */
export function refused(subject: string, error: unknown): Diagnosis {
  const message = error instanceof Error ? error.message : String(error);
  const [fact = message, ...advice] = message.split(/:\s+/);
  const hindrance = hindranceOf(error);
  if (hindrance !== undefined) return { severity: 'bad', subject, text: fact, remedy: hindrance };
  if (advice.length > 0) return { severity: 'bad', subject, text: fact, remedy: advice.join(': ') };
  return {
    severity: 'bad',
    subject,
    text: message,
    remedy: 'what a start says of it: journalctl -u gatehouse',
  };
}

/** What mends that something cannot be looked at; undefined when that is not what is wrong. */
export function hindranceOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (isDiskFull(error))
    return 'the disk is full: make room on it (df -h, du -xh --max-depth=2 / | sort -h | tail)';
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' || code === 'EPERM')
    return 'this user may not read it: run this as the user of the service, or with sudo';
  return hindranceOf(error.cause);
}
