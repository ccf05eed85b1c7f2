/**
 * The whole gateway without its ports: every slice over a real database, a site, and one encoder that is connected.
 * Nothing works in the background, so that whatever is stored was stored by a request.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openEncoderResources } from '../../src/app/encoder-resources.ts';
import { type FieldResources, figuresOf, openFieldResources } from '../../src/app/field-resources.ts';
import { interfaceOperations } from '../../src/app/interface.ts';
import { openReload } from '../../src/app/reload/reload.ts';
import { openServices } from '../../src/app/services.ts';
import { openSupport } from '../../src/app/support/support.ts';
import { configSchema } from '../../src/platform/config/config.ts';
import { createApp } from '../../src/platform/http/app.ts';
import { openLog, silentLog } from '../../src/platform/log.ts';
import { type Caller, LOCAL_ADMINISTRATOR, ROLES, type Role } from '../../src/platform/principal.ts';
import { travellingWantedOf } from '../../src/resources/doors/edit.ts';
import { type DoorTable, openDoorTable } from '../../src/resources/doors/table.ts';
import { openExposition } from '../../src/services/metrics/exposition.ts';
import { openStatus } from '../../src/services/status/status.ts';
import { manualClock } from '../manual-clock.ts';
import { type Factory, makeFactory } from '../simulators/encoder/factory.ts';
import { buildBody, drawOperationalKey, type RegistrationBody } from '../simulators/encoder/registration.ts';
import { temporaryFolder } from '../temporary.ts';

const uuid = (digit: string) =>
  `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`;
export const NETWORK = uuid('a');
export const ZGATE = uuid('b');
export const DEVICES = [uuid('c'), uuid('d')];
export const DOORS = [uuid('1'), uuid('2'), uuid('3')];
/** What one operation alone may remove: the others find the rest. */
export const TO_BE_RETIRED = {
  lockOf: uuid('4'),
  door: uuid('5'),
  device: uuid('e'),
  card: uuid('f'),
  entry: 'former',
};
/** Registered all. */
export const ENCODERS = { connected: 'desk-1', toBeRevoked: 'desk-2', toBeRegisteredAgain: 'desk-3' };

const SITE = {
  systemConfigVersion: 1,
  groups: [
    { id: 'floor-1', name: 'First floor' },
    { id: TO_BE_RETIRED.entry, name: 'Former' },
  ],
  schedules: [
    { id: 'office', intervals: [{ days: ['mon'], start: '08:00', end: '18:00' }] },
    { id: TO_BE_RETIRED.entry, intervals: [] },
  ],
  templates: [{ id: 'room', type: 'room', standOpenAllowed: true }, { id: TO_BE_RETIRED.entry }],
  doors: [
    ...DOORS.map((id, index) => ({ id, accessPointId: index + 1, gatewayId: ZGATE, networkId: NETWORK })),
    { id: TO_BE_RETIRED.lockOf, accessPointId: 1_001, gatewayId: ZGATE, mac: '00124b0000001001' },
    { id: TO_BE_RETIRED.door, accessPointId: 1_002 },
  ],
  rs485: [...DEVICES, TO_BE_RETIRED.device].map((deviceId, index) => ({
    deviceId,
    hwId: `io-${index}`,
    bus: 'bus-1',
  })),
};

function untilTestEnds(): AsyncDisposableStack {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  return stack;
}

/** Of what works in the background. */
const IDLE = {
  identityProvider: () => undefined,
  certificates: () => [],
  backup: () => undefined,
  audit: () => ({ oldestAt: undefined, retentionDays: 400 }),
  databaseCheck: () =>
    ({ verdict: 'pending', endedAt: null, ageSeconds: null, findings: [] as string[] }) as const,
};

const supportOf = (options: Omit<Parameters<typeof openSupport>[0], 'logControl'>) =>
  openSupport({ ...options, logControl: openLog({ level: 'info', journal: false, write() {} }).control });

/** As openGateway puts them together, with what would work in the background left out. */
async function openParts(folder: string, factory: Factory) {
  const root = join(folder, 'root.pem');
  writeFileSync(root, factory.root);
  const config = configSchema.parse({
    dataDirectory: folder,
    encoders: { listen: '127.0.0.1:0', vendorRoots: [root], registrationsPerHour: 10_000 },
    links: [{ id: 'bus-1', protocol: 'loopback' }],
    networks: [{ id: NETWORK }],
    zgates: [{ deviceId: ZGATE, link: 'zb-1', networkId: NETWORK }],
  });
  const clock = manualClock();
  // No host runs, and so no link is up.
  const processes = { execPath: '/none', kill: () => {} };
  const options = { config, clock, log: silentLog, processes };
  const opening = untilTestEnds();
  const base = { ...(await openServices(options, opening)), tasks: { start() {} } };
  const { database, auth, audit, ca, streams, systemId, databaseFile } = base;
  const identity = await ca.serverIdentity(['127.0.0.1']);
  const desk = await openEncoderResources(options, base as never, identity, opening);
  const site = await openFieldResources(options, base, opening);
  const configuration = openReload({
    source: { file: 'gatehouse.yaml', text: () => '', read: () => config },
    started: config,
    rewire: site.rewire,
    reread() {},
    database,
    audit,
    clock,
    log: silentLog,
  });
  const status = openStatus({
    configuration: configuration.state,
    version: '1.2.3',
    systemId,
    clock,
    time: base.time,
    tokens: auth.endings,
    sinks: [],
    fillRate: () => 0,
    cluster: () => undefined,
    httpUrl: () => 'https://127.0.0.1',
    ownCertificate: () => undefined,
    databaseFile,
    damagedRows: database.damagedRows,
    ...IDLE,
    encoders: () => ({ url: desk.link.url, broker: desk.link.broker(), ...desk.connections.counts() }),
    openWrites: () => desk.writes.openCount(),
    commits: database.figures,
    space: database.space.state,
    ...figuresOf(site),
    field: () => ({ hosts: [], links: [] }),
  });
  const { overview: buses } = site.rs485.buses;
  const writeRequests = () => desk.writes.counts(0);
  const metrics = openExposition({ ...base, ...figuresOf(site), status, writeRequests });
  const operations = interfaceOperations({
    ...desk,
    ...site,
    configuration,
    audit,
    streams,
    auth,
    status,
    names: {},
    ready: [() => database.commit(() => {})],
    autonomyMs: () => null,
    metrics,
    support: opening.use(supportOf({ ...options, ...base, status, metrics, buses })),
    backups: backupsOf(site),
  });
  const common = { operations, version: '1.2.3', clock, log: silentLog, checkResponses: true };
  const local = createApp({ ...common, surface: { kind: 'local' } });
  const rate = () => ({ perSecond: 1e9, burst: 1e9 });
  const surface = { kind: 'lan', basePath: '', authenticate: auth.authenticate, rate } as const;
  const lan = createApp({ ...common, surface });
  return { clock, database, auth, desk, jobs: site.jobs, local, lan };
}

function backupsOf({ jobs }: Pick<FieldResources, 'jobs'>) {
  const order = (caller: Caller) =>
    jobs.start({
      kind: 'backup',
      object: 'backup',
      roles: ['service-tool'],
      ...caller,
      run: async () => null,
    });
  return { made: async () => {}, order };
}

export type FuzzSite = Awaited<ReturnType<typeof openFuzzSite>>;

export async function openFuzzSite() {
  const factory = await makeFactory();
  const { clock, database, auth, desk, jobs, local, lan } = await openParts(temporaryFolder(), factory);
  // Nothing here is about a power loss, and no one else opens the file.
  database.prepare('PRAGMA synchronous = OFF').run();
  const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'seed' };
  const tokens = {} as Record<Role, string>;
  for (const role of ROLES) tokens[role] = (await auth.create({ label: role, roles: [role] }, caller)).token;
  const { id: toBeRevoked } = await auth.create({ label: 'to be revoked', roles: ['pms'] }, caller);
  // A token that is revoked cannot be renewed.
  const { id: toBeRenewed } = await auth.create({ label: 'to be renewed', roles: ['pms'] }, caller);
  const registrations = new Map<string, RegistrationBody>();
  for (const id of Object.values(ENCODERS)) {
    const body = buildBody(id, await factory.makeDevice(id), drawOperationalKey());
    await desk.registration.register(id, body, { ...caller, ifMatch: undefined });
    registrations.set(id, body);
  }
  const connection = {
    encoderId: ENCODERS.connected,
    connectionId: 'one',
    generation: 1,
    remoteAddress: '127.0.0.1',
    session: uuid('9'),
  };
  const birth = { online: true, boot: uuid('7'), journal: uuid('8'), session: uuid('9'), seq: 1 };
  desk.connections.subscribed(connection);
  await desk.connections.received(connection, 'status', Buffer.from(JSON.stringify(birth)));
  const imported = (await app(local, 'POST', '/site/import', { document: SITE })) as { id: string };
  await settle();
  // A number and its count that fit are drawn seldom.
  for (const [id, bits] of Object.entries({ [ZGATE]: 'ffc12340', [TO_BE_RETIRED.card]: '0f0f0f40' }))
    await app(local, 'PUT', `/access/cards/${id}`, { card: { bits, count: 26 }, doors: [DOORS[0]] });
  await database.commit(() => acknowledge(openDoorTable(database)));
  await settle();

  /** Lets what follows an answer, such as the end of a job, be stored. */
  async function settle(): Promise<void> {
    // An import rests between its commits.
    while (jobs.running().some(({ kind }) => kind === 'import')) await clock.advance(0);
    for (let turn = 0; turn < 4; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await database.commit(() => {});
    }
  }
  const changes = database.prepare<[], { count: number }>('SELECT total_changes() AS count');
  const audited = database.prepare<[number], { seq: number | null; refused: number }>(
    "SELECT max(seq) AS seq, count(*) FILTER (WHERE outcome = 'refused') AS refused FROM audit WHERE seq > ?",
  );
  let refused = 0;
  let seen = 0;
  return {
    lan,
    local,
    tokens,
    registrations,
    settle,
    tokenIds: { toBeRevoked, toBeRenewed },
    jobId: imported.id,
    certificate: factory.root,
    /** Rows ever written, less the audit's own about what was refused. */
    written(): number {
      const more = audited.get(seen);
      refused += more?.refused ?? 0;
      seen = more?.seq ?? seen;
      return (changes.get()?.count ?? 0) - refused;
    },
  };
}

/** As if the lock of each door had acknowledged what is wanted, so that later wishes can be cancelled. */
function acknowledge(table: DoorTable): void {
  for (const id of DOORS) {
    const row = table.door.get(id);
    if (!row) throw new Error(`door ${id} was not imported`);
    const { config_version } = row;
    const applied = {
      appliedBy: LOCAL_ADMINISTRATOR.id,
      appliedOn: '2026-01-01T00:00:00.000Z',
      payloads: [],
      versions: { doorVersion: row.version, schedule: null, systemConfigVersion: 1, template: null },
    };
    const wanted = JSON.stringify(travellingWantedOf(row));
    table.setApplied.run(config_version, JSON.stringify(applied), wanted, config_version, id);
  }
}

async function app(local: ReturnType<typeof createApp>, method: string, path: string, body?: object) {
  const headers = { 'content-type': 'application/json' };
  const init = { method, ...(body && { headers, body: JSON.stringify(body) }) };
  const response = await local.fetch(new Request(`http://gate.test${path}`, init));
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}
