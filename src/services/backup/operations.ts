/** An archive that a person orders, and what `gatehouse backup` reports to the daemon for the audit. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import type { startsJob } from '../jobs/schema.ts';
import { BACKUP_MAKERS, type Backups } from './schedule.ts';

const made = z
  .strictObject({ file: z.string().min(1).max(4_096), bytes: z.int().min(0) })
  .openapi('MadeBackup');

export function backupOperations(
  backups: Pick<Backups, 'made' | 'order'>,
  started: typeof startsJob,
): Operation[] {
  return [
    operation({
      id: 'makeBackup',
      method: 'post',
      path: '/backups',
      tag: 'Health',
      summary: 'Make a backup now',
      description:
        'An encrypted archive of everything, as a job: like those that are made by themselves, with the public keys and in the folder of `backup` in the configuration, and the oldest that are too many are removed. `result` of the finished job: {file, bytes, leftOut, removed}, `leftOut` what of this installation is not in the archive. The archive itself is not given out: it stays on the controller. NOT_SUPPORTED: no backup is configured.',
      access: BACKUP_MAKERS,
      ...started,
      errors: ['NOT_SUPPORTED', 'IN_PROGRESS', 'QUEUE_FULL'],
      handler: async ({ caller }) => ({ body: await backups.order(caller) }),
    }),
    operation({
      id: 'recordBackup',
      method: 'post',
      path: '/local/backups',
      tag: 'Local',
      summary: 'Record a backup that a command has made',
      access: 'local',
      body: made,
      result: made,
      async handler({ body, caller }) {
        await backups.made(body, caller);
        return { body };
      },
    }),
  ];
}
