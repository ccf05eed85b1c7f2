/** RS-485 devices on a bus the test plays, served as the interface serves them. */
import { DriverError, type DriverErrorCode, type Plain } from '../../../drivers/contract/driver.ts';
import { type IoPins, PINS, type Rs485Apply, type Rs485Report } from '../../../drivers/contract/settings.ts';
import { silentLog } from '../../../src/platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../../src/platform/principal.ts';
import type { Bus } from '../../../src/resources/rs485/buses.ts';
import type { CredentialRead, InputActivated, WiredRelay } from '../../../src/resources/rs485/context.ts';
import { rs485Operations } from '../../../src/resources/rs485/operations.ts';
import { openRs485, type Rs485 } from '../../../src/resources/rs485/rs485.ts';
import type { Rs485Entry } from '../../../src/resources/rs485/site-entry.ts';
import { openActuations } from '../../../src/services/actuations/actuations.ts';
import type { AuditEntry } from '../../../src/services/audit/entry.ts';
import type { LiveEvent } from '../../../src/services/events/cloud-event.ts';
import type { JobOrder } from '../../../src/services/jobs/job-order.ts';
import type { Jobs } from '../../../src/services/jobs/jobs.ts';
import { openMeters } from '../../../src/services/metrics/meters.ts';
import { clientOf } from '../../client.ts';
import { manualClock } from '../../manual-clock.ts';
import { PLAYED_JOB } from '../../played-job.ts';
import { temporaryDatabase } from '../../temporary.ts';
import { lanApp } from '../../things-app.ts';
import { runUntilTestEnds } from '../../until-test-ends.ts';

export const A = 'aaaaaaaa-0000-4000-8000-00000000000a';
export const B = 'bbbbbbbb-0000-4000-8000-00000000000b';
export const DOOR = 'dddddddd-0000-4000-8000-00000000000d';
export const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };
export const NO_PINS = Object.fromEntries(PINS.map((pin) => [pin, false])) as IoPins;

export async function openTestbed(
  database?: Awaited<ReturnType<typeof temporaryDatabase>>,
  { protocol = 'loopback', port = null }: { protocol?: string | undefined; port?: string | null } = {},
) {
  const kept = database ?? (await temporaryDatabase());
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const commands: { link: string; kind: string; data: Rs485Apply; timeoutMs: number }[] = [];
  const relays: string[] = [];
  const relayLevels: { doorId: string; relay: WiredRelay; isClosed: boolean }[] = [];
  const heard: (CredentialRead | InputActivated)[] = [];
  const published: LiveEvent[] = [];
  const jobs: JobOrder[] = [];
  let answer: (data: Rs485Apply, kind: string, signal: AbortSignal) => Plain | Promise<Plain> = ({
    settingsVersion,
  }) => ({
    reportedSettingsVersion: settingsVersion,
  });
  const meters = openMeters();
  const audit = { record: (entry: AuditEntry) => void audits.push(entry) };
  const startedAt = clock.now();
  const rs485 = openRs485(
    ['bus-1', 'bus-2'].map((id) => busOf(id, protocol, port)),
    {
      database: kept,
      audit,
      actuations: await openActuations({ database: kept, audit, clock, log: silentLog, meter: meters }),
      clock,
      log: silentLog,
      catalogue: { groupName: (id) => ({ g1: 'Ground floor' })[id] },
      doorExists: (id) => id === DOOR,
      events: { publish: (event) => void published.push(event), wake: () => {} },
      jobs: playedJobs(jobs),
      vault: { seal: (plain) => Buffer.from(plain), open: (sealed) => Buffer.from(sealed) },
      relayChanged: (doorId) => void relays.push(doorId),
      credentialRead: (read) => void heard.push(read),
      inputActivated: (activation) => void heard.push(activation),
      relayReported: (doorId, relay, isClosed) => void relayLevels.push({ doorId, relay, isClosed }),
      field: {
        async execute(link, { kind, data, timeoutMs }, signal) {
          commands.push({ link, kind, data: data as unknown as Rs485Apply, timeoutMs });
          return answer(data as unknown as Rs485Apply, kind, signal);
        },
        link: (id) => ({ up: id === 'bus-1', since: startedAt, lastError: undefined }),
      },
      firmwareDirectory: undefined,
      random: () => 0.999_999,
    },
  );
  const app = lanApp({ operations: rs485Operations(rs485) });

  async function add(...entries: Rs485Entry[]) {
    const plan = rs485.importPlan(entries, CALLER);
    await kept.commit(() => rs485.importPlan(entries, CALLER).write());
    await plan.written?.();
    audits.length = 0;
  }
  return {
    caller: CALLER,
    database: kept,
    clock,
    meters,
    audits,
    commands,
    relays,
    relayLevels,
    heard,
    published,
    jobs,
    rs485,
    ...clientOf(app, '/network/rs485'),
    add,
    answer(next: typeof answer | DriverErrorCode) {
      answer =
        typeof next === 'function'
          ? next
          : () => {
              throw new DriverError(next, `it said ${next}`);
            };
    },
    /** The device says this on its bus. */
    report: (hwId: string, more: Partial<Rs485Report> = {}, bus = 'bus-1') =>
      rs485.report(bus, { subject: `device:${hwId}`, state: { ...reportOf(hwId), ...more } as Plain }),
    /** Applies and keeps until the test ends, or until what it returns is called. */
    run: () => runAll(rs485),
  };
}

function runAll(rs485: Rs485) {
  const { reconciler, reported } = rs485.settings;
  return runUntilTestEnds(reconciler.run, reported.run, rs485.discovery.run, rs485.polled.run);
}

function busOf(id: string, protocol: string, port: string | null): Bus {
  return { id, protocol, port, turnaroundMaxMs: 100, line: null };
}

function playedJobs(jobs: JobOrder[]): Pick<Jobs, 'start'> {
  return {
    async start(order) {
      jobs.push(order);
      return PLAYED_JOB;
    },
  };
}

/** Of a device that is there, and that no one wanted anything of. */
function reportOf(hwId: string): Rs485Report {
  return {
    connected: true,
    hwId,
    type: 'io',
    platform: { version: '2.1' },
    apps: [],
    reportedSettingsVersion: 0,
    settings: null,
    levels: {},
  };
}
