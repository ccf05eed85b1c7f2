import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type LocalDaemon, openLocalDaemon } from '../../test/local-daemon.ts';
import { openTestLog, type TestLog, until } from '../../test/services/events/log.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { temporarySystem } from '../../test/temporary.ts';
import { silentLog } from '../platform/log.ts';
import { openLiveStreams } from '../services/events/live.ts';
import { eventOperations } from '../services/events/operations.ts';
import { statusOperations } from '../services/status/operations.ts';
import type { Status } from '../services/status/schema.ts';
import { run } from './program.ts';

let log: TestLog;
let shell: TestShell;
let daemon: LocalDaemon;
let databaseId: string;

beforeEach(async () => {
  log = await openTestLog();
  ({ databaseId } = await temporarySystem(log.database, log.clock));
  const streams = openLiveStreams({
    events: log.events,
    database: log.database,
    clock: log.clock,
    log: silentLog,
  });
  const names = { encoders: (id: string) => (id === 'desk-1' ? 'Front\u001bdesk' : undefined) };
  const status = statusOperations(() => ({}) as Status, names);
  daemon = await openLocalDaemon([...eventOperations(streams), ...status]);
  shell = testShell();
  onTestFinished(() => shell.stop());
});

function tail(...argv: string[]) {
  return run(['events', 'tail', ...argv, '--socket', daemon.socket], shell);
}
const lines = () => shell.written.stdout.trimEnd().split('\n');

describe('events tail', () => {
  it('goes on after an event and follows, until a signal', async () => {
    await log.record(1, 3);
    const ended = tail('--after', `${databaseId}-1`);
    await until(() => lines().length === 2);
    await log.record(4, 4);
    await until(() => lines().length === 3);
    expect(lines()[2]).toMatch(
      /^2026-01-01T00:00:00.000Z {2}encoder.write.written {2}encoders\/desk-1 \(Front\uFFFDdesk\) {2}requestId=r-4 keyId=k-4 /,
    );
    shell.stop();
    expect(await ended).toBe(0);
  });

  it('prints one JSON object a line', async () => {
    await log.record(1, 2);
    const ended = tail('--json', '--after', `${databaseId}-1`);
    await until(() => shell.written.stdout.endsWith('\n'));
    expect(JSON.parse(lines()[0] ?? '')).toMatchObject({
      id: `${databaseId}-2`,
      event: { type: 'gatehouse.encoder.write.written.v1', data: { keyId: 'k-2' } },
    });
    shell.stop();
    expect(await ended).toBe(0);
  });

  it('lets no device write to the terminal', async () => {
    const ended = tail('--after', `${databaseId}-0`);
    const event = {
      type: 'gatehouse.door.x.v1',
      source: 'doors/1',
      subject: '1',
      data: { note: '\u001b[2Jboo', other: '\u009b2J\u202e' },
    };
    await log.database.commit(() => log.events.publish(event));
    log.events.wake();
    await until(() => shell.written.stdout.endsWith('\n'));
    expect(lines()[0]).toContain('note="\\u001b[2Jboo" other="\\u009b2J\\u202e"');
    shell.stop();
    expect(await ended).toBe(0);
  });

  it('says that events are lost', async () => {
    await log.record(1, 2);
    const ended = tail('--after', `${databaseId}-9`);
    await until(() => shell.written.stderr.includes('are not kept any more (UNKNOWN_ID)'));
    shell.stop();
    expect(await ended).toBe(0);
  });

  it('ends with 1 when the daemon stops, and says how to go on', async () => {
    await log.record(1, 2);
    const ended = tail('--after', `${databaseId}-0`);
    await until(() => lines().length === 2);
    await daemon.close();
    expect(await ended).toBe(1);
    expect(shell.written.stderr).toContain(
      `SHUTTING_DOWN. Go on with: gatehouse events tail --after ${databaseId}-2`,
    );
  });

  it('refuses what is no id, and says when no one listens', async () => {
    expect(await tail('--after', 'x')).toBe(1);
    expect(shell.written.stderr).toContain('expected the id of an event');
    await daemon.close();
    expect(await tail()).toBe(3);
  });
});
