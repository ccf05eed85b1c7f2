/** Reading the audit; over the admin socket also verifying and exporting it. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import type { OpenAudit, RecordedEntry } from './audit.ts';
import {
  auditPage,
  auditQuery,
  exportPage,
  exportQuery,
  takenCheckpoint,
  verifiedPage,
  verifyBody,
  verifyQuery,
} from './schema.ts';

const tag = 'Audit';

export function auditOperations(audit: OpenAudit): Operation[] {
  return [listing(audit), verification(audit), ...forCommandLine(audit)];
}

/** Whether what is stored is what was written, without a checkpoint that is kept elsewhere. */
function verification(audit: OpenAudit): Operation {
  return operation({
    id: 'checkAudit',
    method: 'get',
    path: '/audit/verify',
    tag,
    summary: 'Check that the next entries of the audit are as they were written',
    description:
      'Some thousand entries at a time: go on with `after` = `through` until `complete`. `fault` says where an entry is missing, changed or put in. Whether the newest ones were cut off shows only against a checkpoint that is kept elsewhere (`gatehouse audit verify`).',
    access: ['front-desk-admin', 'service-tool'],
    query: verifyQuery,
    result: verifiedPage,
    handler: async ({ query }) => ({ body: await verified(audit, query.after) }),
  });
}

async function verified(audit: OpenAudit, after: number, checkpoint?: string) {
  const page = await audit.verifyPage(after, checkpoint);
  const oldest = audit.oldest();
  const at = new Date(oldest?.at ?? Number.NaN);
  // A damaged time keeps no one from seeing what else is wrong.
  return { ...page, oldest: Number.isNaN(at.getTime()) ? null : at.toISOString() };
}

function listing(audit: OpenAudit): Operation {
  return operation({
    id: 'listAudit',
    method: 'get',
    path: '/audit',
    tag,
    summary: 'Read who did what, newest first',
    description:
      'Every change and actuation, as it was committed with the deed. Filters are combined; a page looks at a bounded number of entries, so go on while `next` is not null.',
    access: ['front-desk-admin', 'service-tool'],
    query: auditQuery,
    result: auditPage,
    async handler({ query: { cursor, limit, ...given } }) {
      const { actor = null, action = null, object = null, outcome = null, from = null, to = null } = given;
      const filter = { actor, action, object, outcome, from, to };
      const page = await audit.list({ limit, ...filter, ...(cursor !== undefined && { before: cursor }) });
      return { body: { items: page.items.map(shown), next: cursorOf(page.next) } };
    },
  });
}

function forCommandLine(audit: OpenAudit): Operation[] {
  const access = 'local';
  return [
    operation({
      id: 'takeAuditCheckpoint',
      method: 'post',
      path: '/local/audit/checkpoint',
      tag,
      summary: 'Sign the newest entry of the audit',
      access,
      result: takenCheckpoint,
      async handler() {
        const taken = await audit.checkpoints.take();
        if (!taken) return { body: { checkpoint: null } };
        const { seq, at, jws } = taken;
        return { body: { checkpoint: { seq, at: new Date(at).toISOString(), checkpoint: jws } } };
      },
    }),
    operation({
      id: 'exportAudit',
      method: 'get',
      path: '/local/audit/export',
      tag,
      summary: 'Read the audit with its macs, oldest first',
      access,
      query: exportQuery,
      result: exportPage,
      handler({ query: { after, from = null, to = null } }) {
        const { items, next } = audit.export({ after, from, to });
        return { body: { items: items.map(shown), next: cursorOf(next) } };
      },
    }),
    operation({
      id: 'verifyAudit',
      method: 'post',
      path: '/local/audit/verify',
      tag,
      summary: 'Verify the next entries of the audit',
      access,
      body: verifyBody,
      result: verifiedPage,
      errors: ['VALIDATION_FAILED'],
      handler: async ({ body: { after, checkpoint } }) => ({
        body: await verified(audit, after, checkpoint),
      }),
    }),
  ];
}

function shown<Entry extends RecordedEntry>(entry: Entry) {
  return { ...entry, at: new Date(entry.at).toISOString() };
}

function cursorOf(next: number | null): string | null {
  return next === null ? null : String(next);
}
