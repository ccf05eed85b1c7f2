/** POST /local/backup: a copy of the database beside it, as a job. The vault's key is in no copy. */
import { type Operation, operation } from '../http/operation.ts';
import { jobPath, type Progress } from '../job-order.ts';
import type { Jobs } from './jobs.ts';
import { job } from './schema.ts';

/** Copies the database; resolves when the copy is on the disk. */
export type BackUp = (
  progress: (progress: Progress) => void,
  signal: AbortSignal,
) => Promise<{ file: string; bytes: number }>;

export function backupOperations(jobs: Jobs, backUp: BackUp): Operation[] {
  return [
    operation({
      id: 'startBackup',
      method: 'post',
      path: '/local/backup',
      tag: 'Local',
      summary: 'Back the database up',
      description:
        'Copies the database while it works, into the folder `backups` beside it; the newest seven copies are kept. `result` of the finished job names the file. Keep `keys/vault.key` apart from it.',
      access: 'local',
      status: 202,
      result: job,
      location: jobPath,
      errors: ['QUEUE_FULL'],
      handler: async ({ principal, correlationId }) => ({
        body: await jobs.start({
          kind: 'backup',
          object: 'database',
          roles: [],
          principal,
          correlationId,
          run: backUp,
        }),
      }),
    }),
  ];
}
