/** Zigbee gateways whose links and locks the test plays, served as the interface serves them. */
import type { Plain } from '../../../drivers/contract/driver.ts';
import type { GatewayReport } from '../../../drivers/contract/settings.ts';
import { silentLog } from '../../../src/platform/log.ts';
import type { Vault } from '../../../src/platform/vault.ts';
import type { DeclaredGateway } from '../../../src/resources/zgates/context.ts';
import type { GatewayLock } from '../../../src/resources/zgates/gateway-locks.ts';
import { zgateOperations } from '../../../src/resources/zgates/operations.ts';
import { openZgates, type Zgates } from '../../../src/resources/zgates/zgates.ts';
import type { AuditEntry } from '../../../src/services/audit/entry.ts';
import type { LiveEvent } from '../../../src/services/events/cloud-event.ts';
import type { JobOrder, Progress } from '../../../src/services/jobs/job-order.ts';
import type { Jobs } from '../../../src/services/jobs/jobs.ts';
import { clientOf } from '../../client.ts';
import { manualClock } from '../../manual-clock.ts';
import { PLAYED_JOB } from '../../played-job.ts';
import { temporaryDatabase } from '../../temporary.ts';
import { authenticate, lanApp } from '../../things-app.ts';
import { runUntilTestEnds } from '../../until-test-ends.ts';

const SEAL = Buffer.from('sealed ');
/** Shows what is sealed, and where it may be opened. */
const VAULT: Pick<Vault, 'seal' | 'open'> = {
  seal: (plain, context) => Buffer.concat([SEAL, Buffer.from(`${context}\n`), plain]),
  open(sealed, context) {
    const head = Buffer.concat([SEAL, Buffer.from(`${context}\n`)]);
    if (!head.equals(sealed.subarray(0, head.length))) throw new Error('sealed elsewhere');
    return Buffer.from(sealed.subarray(head.length));
  },
};

interface StartedJob {
  order: JobOrder;
  progress: Progress | undefined;
  stop: AbortController;
  ended: ReturnType<JobOrder['run']>;
}

export const A = 'aaaaaaaa-0000-4000-8000-00000000000a';
export const B = 'bbbbbbbb-0000-4000-8000-00000000000b';
/** Any caller on the network. */
export const CALLER = '70000000-0000-4000-8000-000000000007';
export const NETWORK = 'eeeeeeee-0000-4000-8000-00000000000e';
export const GATEWAY: DeclaredGateway = {
  deviceId: A,
  link: 'zb-1',
  networkId: NETWORK,
  name: 'Second floor',
};

type Options = { database?: Awaited<ReturnType<typeof temporaryDatabase>>; declared?: DeclaredGateway[] };

export async function openTestbed({ database, declared = [GATEWAY] }: Options = {}) {
  const kept = database ?? (await temporaryDatabase());
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const published: LiveEvent[] = [];
  const commands: { link: string; kind: string; data: Plain }[] = [];
  const jobs: StartedJob[] = [];
  const restarts: string[] = [];
  /** Of the connection, or of a move. */
  const changes: [deviceId: string, connected: boolean][] = [];
  const played = {
    answer: (): Plain | Promise<Plain> => ({ zigbeeChannel: 15 }),
    energies: (): Plain => ({ channels: [] }),
    linkUp: true,
    linkError: 'the port is gone',
    upgrade: null as { id: string; door: string; file: string } | null,
    locks: [] as GatewayLock[],
  };
  const zgates = await openZgates({
    database: kept,
    audit: { record: (entry) => void audits.push(entry) },
    clock,
    log: silentLog,
    events: { publish: (event) => void published.push(event), wake: () => {} },
    declared,
    catalogue: { groupName: (id) => ({ g1: 'Floor 2' })[id] },
    networks: { exists: (id) => id === NETWORK, certOf: (id) => (id === NETWORK ? 'PEM' : null) },
    vault: VAULT,
    stateDirectory: '/state',
    locksOf: () => played.locks,
    upgradeOf: () => played.upgrade,
    jobs: playedJobs(jobs),
    field: {
      async execute(link, { kind, data }) {
        if (kind === 'energyScan') return played.energies();
        commands.push({ link, kind, data });
        return played.answer();
      },
      restart: (link) => void restarts.push(link),
      link: () => ({
        up: played.linkUp,
        since: 0,
        lastError: { code: 'LINK_LOST', message: played.linkError },
      }),
    },
    connectionChanged: (...one) => void changes.push(one),
    random: () => 0.999_999,
  });
  const app = served(zgates);
  return {
    database: kept,
    clock,
    audits,
    published,
    commands,
    played,
    jobs,
    restarts,
    changes,
    zgates,
    ...clientOf(app, '/network/zgate'),
    report(more: Partial<GatewayReport> = {}, link = 'zb-1') {
      const state = {
        connected: true,
        hwId: '00124b0001020304',
        type: 'EFR32',
        platform: { version: '7.4' },
        apps: [],
        zigbeeChannel: 11,
        permitJoin: false,
        ...more,
      };
      zgates.report(link, { subject: 'gateway', state });
    },
    run: () =>
      runUntilTestEnds(zgates.channels.reconciler.run, zgates.channels.reported.run, zgates.joining.run),
  };
}

function playedJobs(jobs: StartedJob[]): Pick<Jobs, 'start'> {
  return {
    async start(order) {
      const stop = new AbortController();
      const job: StartedJob = { order, progress: undefined, stop, ended: Promise.resolve({}) };
      jobs.push(job);
      job.ended = order.run(
        (progress) => {
          job.progress = progress;
        },
        stop.signal,
        () => {},
      );
      job.ended.catch(() => undefined);
      return PLAYED_JOB;
    },
  };
}

function served(zgates: Zgates) {
  const surface = {
    kind: 'lan',
    basePath: '',
    rate: () => ({ perSecond: 1_000, burst: 1_000 }),
    authenticate: (offered: Parameters<typeof authenticate>[0]) => ({ ...authenticate(offered), id: CALLER }),
  } as const;
  return lanApp({ operations: zgateOperations(zgates), surface });
}
