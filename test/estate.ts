/** Doors, catalogue and import on a real database, behind the real pipeline; the rest of the gateway is played. */
import { DriverError } from '../drivers/driver.ts';
import type { LockApplied, LockApply } from '../drivers/settings.ts';
import type { AuditEntry } from '../src/audit/audit.ts';
import { openCatalogue } from '../src/catalogue/catalogue.ts';
import { catalogueOperations } from '../src/catalogue/operations.ts';
import type { Database } from '../src/database/database.ts';
import { doorConfiguration, type LockAddress, type Relay } from '../src/doors/configuration.ts';
import { openDoors } from '../src/doors/doors.ts';
import { doorOperations } from '../src/doors/operations.ts';
import { openDoorTable } from '../src/doors/table.ts';
import { createApp } from '../src/http/app.ts';
import type { MakeImportPlan } from '../src/import-plan.ts';
import { silentLog } from '../src/log.ts';
import type { Rs485Entry } from '../src/site-document.ts';
import { openSiteImport } from '../src/site-import/import.ts';
import { siteImportOperations } from '../src/site-import/operations.ts';
import { manualClock } from './manual-clock.ts';
import { temporaryDatabase } from './temporary.ts';
import { authenticate, lanApp, send } from './things-app.ts';

export type Body = Record<string, unknown> & { details?: { path: string; code: string; message: string }[] };
interface Failure {
  version: number;
  code: string;
  message: string;
  at: number;
  permanent: boolean;
}

/** Whoever calls, on the network. */
export const CALLER = '70000000-0000-4000-8000-000000000007';

export type Estate = Awaited<ReturnType<typeof openEstate>>;

export async function openEstate(database?: Database) {
  const opened = database ?? (await temporaryDatabase());
  const clock = manualClock();
  const played = {
    audits: [] as AuditEntry[],
    /** Doors the reconciler was told to look at. */
    woken: [] as string[],
    relays: new Map<string, Relay>(),
    failures: new Map<string, Failure>(),
    attempts: new Map<string, number>(),
    sent: [] as { lock: LockAddress; apply: LockApply }[],
    /** What the lock answers; by default it puts all in force. */
    lock: async ({ hwId: _, configuration: __, ...versions }: LockApply): Promise<LockApplied> => ({
      ...versions,
      payloads: ['AQID'],
    }),
    rs485: (() => ({ changes: [], write() {} })) as MakeImportPlan<Rs485Entry>,
  };
  const audit = { record: (entry: AuditEntry) => void played.audits.push(entry) };
  const catalogue = openCatalogue({ database: opened, audit });
  const table = openDoorTable(opened);
  const relay = (id: string) => played.relays.get(id);
  const configuration = doorConfiguration({
    ...{ database: opened, table, audit, clock, catalogue, relay },
    applyConfiguration: async (lock, apply) => {
      played.sent.push({ lock, apply });
      return played.lock(apply);
    },
  });
  const reconciler = {
    wake: (id: string) => void played.woken.push(id),
    failure: (id: string) => played.failures.get(id),
    nextAttempt: (id: string) => played.attempts.get(id),
  };
  const doors = openDoors({ database: opened, table, audit, clock, catalogue, relay, reconciler });
  const siteImport = openSiteImport({
    ...{ database: opened, audit },
    known: {
      group: (id) => catalogue.groupName(id) !== undefined,
      schedule: (id) => catalogue.schedule(id) !== undefined,
      template: (id) => catalogue.template(id) !== undefined,
      door: doors.exists,
    },
    catalogue: catalogue.importPlan,
    doors: doors.importPlan,
    rs485: (entries, caller) => played.rs485(entries, caller),
  });
  const operations = [
    ...doorOperations(doors, 'access'),
    ...catalogueOperations(catalogue, 'access'),
    ...siteImportOperations(siteImport),
  ];
  const surface = {
    kind: 'lan',
    basePath: '',
    rate: () => ({ perSecond: 1_000, burst: 1_000 }),
    authenticate: (offered: Parameters<typeof authenticate>[0]) => ({ ...authenticate(offered), id: CALLER }),
  } as const;
  const lan = lanApp({ operations, clock, surface });
  const common = { operations, version: '1.2.3', clock, log: silentLog, checkResponses: true };
  const local = createApp({ ...common, surface: { kind: 'local' } });
  const as =
    (role: string) =>
    (method: string, path: string, body?: unknown, headers: object = {}) =>
      send(method, `/access${path}`, {
        as: role,
        app: lan,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
  return {
    ...{ database: opened, clock, played, configuration, table, operations, lan, local, as },
    desk: as('front-desk-admin'),
    siteImport: (document: unknown, dryRun = false) =>
      send('POST', '/local/import', { app: local, body: JSON.stringify({ document, dryRun }) }),
    /** What the reconciler does once, for every door that is due. */
    async applyAll(signal = new AbortController().signal) {
      for (const due of configuration.due()) await configuration.apply(due, signal);
    },
  };
}

export const refused = () => Promise.reject(new DriverError('REFUSED', 'the lock said no'));
