/** The whole of auth over a database of its own, for its tests. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Config, type ConfigInput, configSchema } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import type { Credentials } from '../../../src/platform/http/app.ts';
import { CONFIRM_MS, knownTimeTable, openKnownTime } from '../../../src/platform/known-time.ts';
import { silentLog } from '../../../src/platform/log.ts';
import type { AuditEntry } from '../../../src/services/audit/entry.ts';
import { type Auth, openAuth } from '../../../src/services/auth/auth.ts';
import type { LiveEvent } from '../../../src/services/events/cloud-event.ts';
import type { ManualClock } from '../../manual-clock.ts';
import { temporaryFolder } from '../../temporary.ts';

export const SYSTEM_ID = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';

export interface AuthBed {
  database: Database;
  clock: ManualClock;
  audited: AuditEntry[];
  config?: ConfigInput['auth'];
  /** Kept by a restart. */
  directory?: string;
  clockSynchronised?: () => boolean;
  /** Undefined: each opening is one after a boot. */
  bootId?: string;
  /** To live readers. */
  published?: LiveEvent[];
  /** Principals whose credentials were revoked. */
  ended?: string[];
}

export function openTestAuth(bed: AuthBed): Auth {
  const time = openKnownTime({
    clock: bed.clock,
    synchronised: bed.clockSynchronised ?? (() => true),
    bootId: bed.bootId,
    table: knownTimeTable(bed.database),
    log: silentLog,
  });
  const opened = openAuth({
    database: bed.database,
    clock: bed.clock,
    log: silentLog,
    systemId: SYSTEM_ID,
    audit: { record: (entry: AuditEntry) => bed.audited.push(entry) },
    config: authConfig(bed.config ?? {}),
    directory: bed.directory ?? join(temporaryFolder(), 'auth'),
    ended: async (principalId) => void bed.ended?.push(principalId),
    time,
    events: { publish: (event) => bed.published?.push(event), wake: () => {} },
    digest: (code) => createHash('sha256').update(`key ${code}`).digest('hex'),
  });
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return opened;
}

function authConfig(auth: NonNullable<ConfigInput['auth']>): Config['auth'] {
  return configSchema.parse({ auth }).auth;
}

/** So long after the wall clock jumped it is accepted, for it is looked at once a minute. */
const ACCEPTED_MS = CONFIRM_MS + 60_000;

/** At least seven hours, without all the minutes of them. */
export async function pass(clock: ManualClock, milliseconds: number): Promise<void> {
  clock.jumpWall(milliseconds - ACCEPTED_MS);
  await clock.advance(ACCEPTED_MS);
}

/** As a request offers them. */
export function bearer(text: string | undefined, address = '192.0.2.1'): Credentials {
  return { authorization: text === undefined ? undefined : `Bearer ${text}`, cookie: undefined, address };
}

export function cookie(secret: string, address = '192.0.2.1'): Credentials {
  return { authorization: undefined, cookie: `a=b; __Host-gatehouse=${secret}; c=d`, address };
}
