/** `gatehouse check-database`: what the daemon runs beside itself once a day (src/platform/database/checker.ts). */
import { constants, setPriority } from 'node:os';
import { fullCheck } from '../platform/database/check.ts';
import type { checkResult } from '../platform/database/checker.ts';
import { openReader } from '../platform/database/connection.ts';
import { CommandFailed, printJson, type Shell } from './shell.ts';

export function checkDatabase(file: string, shell: Shell): void {
  giveWay();
  printJson(shell, { findings: findingsOf(file) } satisfies import('zod').infer<typeof checkResult>);
}

function findingsOf(file: string): string[] {
  try {
    using connection = openReader(file);
    return fullCheck(connection);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Damage can be such that the check itself cannot read on.
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(String(code))) return [message];
    throw new CommandFailed(`${file} cannot be read: ${message}`);
  }
}

/** The schedulers of many block devices go by this priority, too (ioprio_set(2)). */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {
    // A sandbox that forbids it: the check goes on as everything else does.
  }
}
