/** The status of an installation that is well, for tests. */
import { VERSION } from '../../src/app/version.ts';
import type { Status } from '../../src/services/status/schema.ts';

const NEWEST = '2026-01-04T03:20:00.000Z';
const BACKUP = { schedule: '03:20', folder: '/b', newest: NEWEST, ageSeconds: 3_600, error: null };
const NOTHING_WAITS = {
  waiting: 0,
  waitingBytes: 0,
  oldestSeconds: null,
  autonomyHours: 720,
  fillBytesPerSecond: 3,
};
const LINK = { connected: true, since: '2026-01-01T00:00:01.000Z', lastError: null };
const LOST = { deadLetters: 0, gaps: 0, dropped: 0 };
export const SINK = {
  name: 'upstream',
  kind: 'mqtt' as const,
  urls: ['mqtts://n:8883'],
  ...LINK,
  ...NOTHING_WAITS,
  ...LOST,
};

export const WELL: Status = {
  version: VERSION,
  systemId: '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
  startedAt: '2026-01-01T00:00:00.000Z',
  uptimeSeconds: 3 * 86_400 + 4 * 3_600 + 5,
  clock: { now: '2026-01-04T04:00:05.000Z', synchronised: true, jump: null },
  tokens: [],
  cluster: null,
  configuration: {
    file: '/etc/gatehouse/gatehouse.yaml',
    readAt: '2026-01-01T00:00:00.000Z',
    error: null,
    needsRestart: [],
  },
  http: { ownCertificate: null, url: 'https://127.0.0.1:8443' },
  encoders: {
    url: 'mqtts://127.0.0.1:8883',
    registered: 2,
    connected: 2,
    revoked: 1,
    broker: {
      kind: 'embedded',
      urls: [],
      url: 'mqtts://127.0.0.1:8883',
      since: '2026-01-01T00:00:00.000Z',
      lastError: null,
      administration: null,
      administrationError: null,
    },
  },
  writes: { open: 1 },
  sinks: [SINK],
  database: {
    bytes: 4_096_000,
    batches: 7,
    jobs: 9,
    failures: 0,
    failing: false,
    outcomeUnknown: 0,
    damaged: [],
    damagedRows: [],
    check: { verdict: 'sound', endedAt: '2026-11-22T08:00:00.000Z', ageSeconds: 7_200, findings: [] },
    queued: 0,
    lastCommitMilliseconds: 0.26,
    freeBytes: 2_000_000_000,
    plentyBytes: 50_331_648,
    space: 'plenty',
  },
  backup: BACKUP,
  audit: { oldest: '2025-03-01T00:00:00.000Z', retentionDays: 400 },
  field: {
    hosts: [{ id: 'field', pid: 7, restarts: 0, heartbeatAgeMs: 12 }],
    links: [{ id: 'check', host: 'field', up: true, since: '2026-01-01T00:00:02.000Z', lastError: null }],
  },
  doors: {
    registered: 5,
    connected: 3,
    disconnected: 0,
    unknown: 0,
    batteryLow: 0,
    notLocked: 0,
    notSeenLocked: [],
    standingOpen: 0,
    offline: [],
  },
  zgates: { registered: 1, connected: 1, stayedBehind: [], warnings: [] },
  apply: {
    doors: { waiting: 0, refused: 0 },
    rs485: { waiting: 0, refused: 0 },
    zgates: { waiting: 0, refused: 0 },
  },
  buses: [
    {
      id: 'bus-1',
      utilisation: 0.344,
      pollsPerSecond: 12.34,
      devices: 6,
      silent: 0,
      exchanges: { replies: 1_000, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 },
      strayBytes: 0,
      warnings: [],
    },
  ],
  missingDevices: [],
  jobs: [],
  identityProvider: {
    issuer: 'https://login.example',
    keys: 2,
    fetchedAt: '2026-01-04T04:00:00.000Z',
    ageSeconds: 5,
    usableUntil: '2026-07-01T00:00:00.000Z',
    isUsable: true,
    lastError: null,
  },
  certificates: [{ name: 'https', notBefore: '2025-01-01T00:00:00.000Z', daysLeft: 60 }],
};
