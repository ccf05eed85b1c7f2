import { expect, test } from 'vitest';
import type { DownChannel, EncoderConnection } from '../../../drivers/encoder/link.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import { BIRTH_DEADLINE_MS, type ConnectionsOptions, openConnections } from './connections.ts';
import { toEncoder } from './encoders.ts';
import { openEncoderTable } from './table.ts';

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const BOOT = uuid(1);
const JOURNAL = uuid(2);

async function desk(options: { failCommits?: () => boolean } = {}) {
  const clock = manualClock();
  const folder = temporaryFolder();
  const database = await temporaryDatabase(folder);
  const table = openEncoderTable(database);
  await database.commit(() =>
    table.insertEncoder.run(
      'desk-1',
      null,
      null,
      1,
      clock.now(),
      clock.now(),
      clock.now(),
      'x',
      clock.now(),
      'x',
    ),
  );
  const sent: { channel: DownChannel; message: Record<string, unknown> }[] = [];
  const calls: unknown[][] = [];
  const published: LiveEvent[] = [];
  const kicked: string[] = [];
  const wired: ConnectionsOptions = {
    database: {
      ...database,
      commit: (job) =>
        database.commit(() => {
          const result = job();
          if (options.failCommits?.()) throw new Error('the disk is full');
          return result;
        }),
    },
    table,
    events: { publish: (event) => published.push(event), wake: () => {} },
    clock,
    log: silentLog,
    epoch: 7,
    reports: () => ({
      born: (...call) => calls.push(['born', ...call]),
      job: (...call) => calls.push(['job', ...call]),
      progress: (...call) => calls.push(['progress', ...call]),
      wake: (...call) => calls.push(['wake', ...call]),
    }),
    link: () => ({
      async send(_encoderId, channel, payload) {
        sent.push({ channel, message: JSON.parse(payload.toString()) });
      },
      async kick(encoderId) {
        kicked.push(encoderId);
      },
    }),
  };
  const connections = await openConnections(wired);
  const row = () => {
    const found = table.encoder.get('desk-1');
    if (!found) throw new Error('no row');
    return toEncoder(found, connections.presence('desk-1'));
  };
  return { clock, connections, sent, calls, kicked, row, table, database, published };
}

/** `session` is what the last will names; the birth of these tests has uuid(3). */
function connection(connectionId = 'c1', session: string | undefined = uuid(3)): EncoderConnection {
  return { encoderId: 'desk-1', connectionId, generation: 1, remoteAddress: '10.0.0.7', session };
}

function birth(seq: number, more: Record<string, unknown> = {}): Buffer {
  return Buffer.from(
    JSON.stringify({ boot: BOOT, seq, session: uuid(3), online: true, journal: JOURNAL, ...more }),
  );
}

test('an encoder is connected once down/# is granted and its birth is stored', async () => {
  const { connections, sent, calls, row, clock } = await desk();
  await clock.advance(5_000);
  connections.subscribed(connection());
  expect(connections.connected('desk-1')).toBe(false);
  await connections.received(connection(), 'status', birth(1, { platform: { name: 'E', version: '2' } }));
  expect(connections.connected('desk-1')).toBe(true);
  expect(row()).toMatchObject({
    ipAddress: '10.0.0.7',
    platform: { name: 'E', version: '2' },
    connectionState: { connected: true, changedOn: new Date(clock.now()).toISOString() },
  });
  expect(sent).toEqual([
    { channel: 'hello', message: { epoch: 7 } },
    { channel: 'ack', message: { epoch: 7, boot: BOOT, seq: 1 } },
  ]);
  expect(calls).toContainEqual(['born', 'desk-1', JOURNAL]);
  expect(calls).toContainEqual(['wake', 'desk-1', 'fresh-connection']);
});

test('live readers receive each change of presence and alarm, and of nothing else', async () => {
  const { connections, published, database } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1));
  await connections.received(connection(), 'status', birth(2, { alarm: { raised: true } }));
  await connections.received(connection(), 'status', birth(3, { alarm: { raised: true } }));
  connections.lost(connection(), 'closed');
  await database.commit(() => {});
  expect(published.map(({ type, subject, data }) => [type, subject, data])).toEqual([
    ['gatehouse.encoder.connection.v1', 'desk-1', expect.objectContaining({ connected: true })],
    ['gatehouse.encoder.alarm.v1', 'desk-1', expect.objectContaining({ raised: true })],
    ['gatehouse.encoder.connection.v1', 'desk-1', expect.objectContaining({ connected: false })],
  ]);
});

test('a birth before the subscription counts when the subscription is granted', async () => {
  const { connections, sent } = await desk();
  await connections.received(connection(), 'status', birth(1));
  expect(connections.connected('desk-1')).toBe(false);
  connections.subscribed(connection());
  expect(connections.connected('desk-1')).toBe(true);
  expect(sent.map(({ channel }) => channel)).toEqual(['hello', 'ack']);
});

test('messages of an earlier boot repeated before the birth are acknowledged once the encoder is connected', async () => {
  const { connections, sent, calls } = await desk();
  const left = { boot: uuid(11), seq: 1, jobId: uuid(20), keyId: uuid(21), status: 'written' };
  connections.subscribed(connection());
  await connections.received(connection(), 'progress', Buffer.from(JSON.stringify(left)));
  expect(sent).toEqual([]);
  // Its event can leave at once all the same.
  expect(calls.at(-1)).toEqual(['wake', 'desk-1', 'report']);
  await connections.received(connection(), 'status', birth(1));
  expect(sent.slice(1).map(({ message }) => [message.boot, message.seq])).toEqual([
    [uuid(11), 1],
    [BOOT, 1],
  ]);
});

test('a birth that could not be stored is neither acknowledged nor believed, until it comes again', async () => {
  let full = false;
  const { connections, sent, calls, table } = await desk({ failCommits: () => full });
  connections.subscribed(connection());
  full = true;
  await expect(connections.received(connection(), 'status', birth(1))).rejects.toThrow('disk is full');
  expect(connections.connected('desk-1')).toBe(false);
  expect(sent).toEqual([]);
  expect(calls.filter(([what]) => what === 'wake')).toEqual([]);
  expect(table.encoder.get('desk-1')?.journal).toBe(null);
  full = false;
  calls.length = 0;
  await connections.received(connection(), 'status', birth(1));
  expect(connections.connected('desk-1')).toBe(true);
  expect(calls).toContainEqual(['born', 'desk-1', JOURNAL]);
  expect(table.encoder.get('desk-1')?.journal).toBe(JOURNAL);
});

test('losing the connection disconnects at once, losing an older one does not', async () => {
  const { connections } = await desk();
  connections.subscribed(connection('c1'));
  await connections.received(connection('c1'), 'status', birth(1));
  connections.subscribed(connection('c2', uuid(4)));
  expect(connections.connected('desk-1')).toBe(false);
  await connections.received(connection('c2', uuid(4)), 'status', birth(2, { session: uuid(4) }));
  connections.lost(connection('c1'), 'closed');
  expect(connections.connected('desk-1')).toBe(true);
  connections.lost(connection('c2'), 'closed');
  expect(connections.connected('desk-1')).toBe(false);
});

test('a revoked encoder is not counted among those that should be connected', async () => {
  const { connections, database, table } = await desk();
  await database.commit(() => table.insertCredential.run('desk-1', 1, 'f', 's', 9, 0));
  expect(connections.counts()).toEqual({ registered: 1, connected: 0, revoked: 0 });
  await database.commit(() => table.endActive.run('revoked', 'desk-1'));
  expect(connections.counts()).toEqual({ registered: 0, connected: 0, revoked: 1 });
});

test('a retired encoder is not counted at all', async () => {
  const { connections, database, table } = await desk();
  await database.commit(() => table.insertCredential.run('desk-1', 1, 'f', 's', 9, 0));
  expect(connections.counts()).toEqual({ registered: 1, connected: 0, revoked: 0 });
  await database.commit(() => table.endActive.run('revoked', 'desk-1'));
  await database.commit(() => table.retire.run(0, 0, '', 'desk-1'));
  await connections.forget('desk-1', 'it was removed');
  expect(connections.counts()).toEqual({ registered: 0, connected: 0, revoked: 0 });
  expect(connections.presence('desk-1')).toBeUndefined();
});

test('a replaced or dropped connection is not believed and hears nothing any more', async () => {
  const { connections, sent, kicked } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1));
  await connections.drop('desk-1', 'revoked');
  expect(kicked).toEqual(['desk-1']);
  sent.length = 0;
  await expect(connections.received(connection(), 'status', birth(2))).rejects.toThrow('cut off');
  await expect(connections.send('desk-1', 'cancel', { epoch: 7, jobId: uuid(9) })).rejects.toThrow(
    'not connected',
  );
  expect(sent).toEqual([]);
});

test('a last will says nothing', async () => {
  const { connections } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1));
  await connections.received(
    connection(),
    'status',
    Buffer.from(JSON.stringify({ online: false, session: uuid(3) })),
  );
  expect(connections.connected('desk-1')).toBe(true);
});

test('absent means unchanged, null clears the upgrade job, and changedOn moves on real change only', async () => {
  const { connections, row, clock } = await desk();
  const job = { id: 'u1', apps: [], platform: { name: 'E', version: '3' }, versions: [] };
  connections.subscribed(connection());
  await connections.received(
    connection(),
    'status',
    birth(1, { alarm: { raised: true }, upgradeJobInfo: job }),
  );
  const raisedOn = row().alarmState.changedOn;
  await clock.advance(1_000);
  await connections.received(connection(), 'status', birth(2, { alarm: { raised: true } }));
  expect(row()).toMatchObject({ alarmState: { raised: true, changedOn: raisedOn }, upgradeJobInfo: job });
  await connections.received(
    connection(),
    'status',
    birth(3, { alarm: { raised: false }, upgradeJobInfo: null }),
  );
  expect(row()).toMatchObject({ alarmState: { raised: false }, upgradeJobInfo: null });
  expect(row().alarmState.changedOn).not.toBe(raisedOn);
});

test('a status left over from before, repeated after the birth, changes nothing and is acknowledged', async () => {
  const { connections, row, sent } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(2, { ipAddress: '10.0.0.9' }));
  await connections.received(connection(), 'status', birth(1, { ipAddress: '10.0.0.1' }));
  expect(row().ipAddress).toBe('10.0.0.9');
  expect(sent.at(-1)).toEqual({ channel: 'ack', message: { epoch: 7, boot: BOOT, seq: 2 } });
});

test('a status of an earlier session neither connects the encoder nor changes anything, before or after the birth', async () => {
  const { connections, row, calls } = await desk();
  const left = (seq: number) => birth(seq, { session: uuid(8), journal: uuid(9), ipAddress: '10.0.0.2' });
  connections.subscribed(connection());
  await connections.received(connection(), 'status', left(1));
  expect(connections.connected('desk-1')).toBe(false);
  await connections.received(connection(), 'status', birth(1, { boot: uuid(11), ipAddress: '10.0.0.9' }));
  expect(connections.connected('desk-1')).toBe(true);
  await connections.received(connection(), 'status', left(2));
  expect(row().ipAddress).toBe('10.0.0.9');
  expect(calls.filter(([what]) => what === 'born')).toEqual([['born', 'desk-1', JOURNAL]]);
});

test('a birth that names another session than the will ends the connection', async () => {
  const { connections, kicked, clock } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1, { session: uuid(8) }));
  await clock.advance(BIRTH_DEADLINE_MS - 1);
  expect(kicked).toEqual([]);
  await clock.advance(1);
  expect(kicked).toEqual(['desk-1']);
  await expect(connections.received(connection(), 'status', birth(2))).rejects.toThrow('cut off');
});

test('a status left over from another session does not end a connection whose birth follows', async () => {
  const { connections, kicked, clock } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1, { session: uuid(8) }));
  await connections.received(connection(), 'status', birth(2));
  await connections.received(connection(), 'status', birth(3, { session: uuid(8) }));
  await clock.advance(2 * BIRTH_DEADLINE_MS);
  expect(kicked).toEqual([]);
  expect(connections.connected('desk-1')).toBe(true);
});

test('where the link does not know the session, the first status is the birth', async () => {
  const { connections, row } = await desk();
  const unnamed: EncoderConnection = { ...connection(), session: undefined };
  connections.subscribed(unnamed);
  await connections.received(unnamed, 'status', birth(1, { boot: uuid(11), ipAddress: '10.0.0.9' }));
  await connections.received(unnamed, 'status', birth(2, { session: uuid(8), ipAddress: '10.0.0.2' }));
  expect(connections.connected('desk-1')).toBe(true);
  expect(row().ipAddress).toBe('10.0.0.9');
});

test('reports are handed on once, inside the commit that stores them', async () => {
  const { connections, calls } = await desk();
  connections.subscribed(connection());
  await connections.received(connection(), 'status', birth(1));
  const report = Buffer.from(
    JSON.stringify({ boot: BOOT, seq: 2, jobId: uuid(20), keyId: uuid(21), status: 'writing' }),
  );
  await connections.received(connection(), 'progress', report);
  await connections.received(connection(), 'progress', report);
  expect(calls.filter(([what]) => what === 'progress')).toHaveLength(1);
});

test('after a restart no one is connected, and changedOn is when that was so', async () => {
  const { table, database, clock } = await desk();
  await database.commit(() => table.setConnected.run(1, clock.now(), 'desk-1'));
  await clock.advance(60_000);
  const published: LiveEvent[] = [];
  const again = await openConnections({
    database,
    table,
    events: { publish: (event) => published.push(event), wake() {} },
    clock,
    log: silentLog,
    epoch: 8,
    reports: () => ({ born() {}, job() {}, progress() {}, wake() {} }),
    link: () => ({ async send() {}, async kick() {} }),
  });
  expect(again.presence('desk-1')).toMatchObject({ connected: false, changedAt: clock.now() });
  expect(published).toMatchObject([{ type: 'gatehouse.encoder.connection.v1', data: { connected: false } }]);
});
