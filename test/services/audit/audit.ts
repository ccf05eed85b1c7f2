/** An audit with its database and a signing authority, for tests of this slice. */
import { createHmac } from 'node:crypto';
import type { Database } from '../../../src/platform/database/database.ts';
import { silentLog } from '../../../src/platform/log.ts';
import { type AuditOptions, type OpenAudit, openAudit } from '../../../src/services/audit/audit.ts';
import type { AuditEntry } from '../../../src/services/audit/entry.ts';
import { openSiteCa } from '../../../src/services/pki/site-ca.ts';
import { manualClock } from '../../manual-clock.ts';
import { temporaryDatabase, temporaryFolder, temporarySystem } from '../../temporary.ts';

const SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';

export interface TestAudit {
  clock: ReturnType<typeof manualClock>;
  database: Database;
  audit: OpenAudit;
  /** Opens it again, as after a restart. */
  open(macKey?: Buffer): OpenAudit;
  record(object: string, more?: Partial<AuditEntry>): Promise<void>;
  /** Changes the tables behind the audit's back. */
  tamper(sql: string): Promise<unknown>;
  withoutTriggers(): Promise<void>;
}

type Signer = Pick<AuditOptions, 'sign' | 'verifySignature'>;

/** Signs without certificates, quickly; testAuthority() is the real one. */
const quickSigner: Signer = {
  async sign(document, typ) {
    const text = Buffer.from(JSON.stringify(document)).toString('base64url');
    return `${text}.${createHmac('sha256', typ).update(text).digest('base64url')}`;
  },
  async verifySignature(jws, typ) {
    const [text = '', signature] = jws.split('.');
    if (createHmac('sha256', typ).update(text).digest('base64url') !== signature) throw new Error('changed');
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  },
};

/** A site CA of its own. */
export function testAuthority(): Promise<Signer> {
  const clock = manualClock();
  return openSiteCa({
    directory: temporaryFolder(),
    systemId: SYSTEM_ID,
    knownRoot: null,
    clock,
    log: silentLog,
  });
}

export async function openTestAudit(signer: Signer = quickSigner): Promise<TestAudit> {
  const clock = manualClock(1_700_000_000_000);
  const database = await temporaryDatabase();
  await temporarySystem(database, clock);
  const open = (macKey = Buffer.alloc(32, 7)) =>
    openAudit({ database, clock, log: silentLog, macKey, ...signer });
  const audit = open();
  await database.commit(() => audit.begin());
  const tamper = (sql: string) => database.commit(() => database.prepare(sql).run());
  return {
    clock,
    database,
    audit,
    open,
    tamper,
    record: (object, more) => database.commit(() => audit.record({ ...entry(object), ...more })),
    async withoutTriggers() {
      await tamper('DROP TRIGGER IF EXISTS audit_is_append_only_update');
      await tamper('DROP TRIGGER IF EXISTS audit_is_append_only_delete');
    },
  };
}

export function entry(object: string): AuditEntry {
  return {
    principal: { id: 'p1', label: 'Ada' },
    action: 'encoder.update',
    object,
    outcome: 'done',
    correlationId: 'c1',
  };
}
