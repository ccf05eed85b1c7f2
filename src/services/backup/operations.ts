/** POST /local/backups: what `gatehouse backup` reports to the daemon, for the audit. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import type { Backups } from './schedule.ts';

const made = z
  .strictObject({ file: z.string().min(1).max(4_096), bytes: z.int().min(0) })
  .openapi('MadeBackup');

export function backupOperations(backups: Pick<Backups, 'made'>): Operation[] {
  return [
    operation({
      id: 'recordBackup',
      method: 'post',
      path: '/local/backups',
      tag: 'Local',
      summary: 'Record a backup that a command has made',
      access: 'local',
      body: made,
      result: made,
      async handler({ body, principal, correlationId }) {
        await backups.made(body, { principal, correlationId });
        return { body };
      },
    }),
  ];
}
