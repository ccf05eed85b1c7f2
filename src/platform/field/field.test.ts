import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import { systemClock } from '../clock.ts';
import type { Log } from '../log.ts';
import { type Field, type FieldOptions, type LinkSpec, openField } from './field.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/platform/field');
const FAULTY = join(FIXTURES, 'faulty-host.ts');
/** Its loopback links have further commands: fail, hang, break and emit. */
const SIMULATED = join(import.meta.dirname, '../../../test/simulators/loopback/host.ts');
const never = new AbortController().signal;

const loopback = (id: string, host: string): LinkSpec => ({
  id,
  protocol: 'loopback',
  host,
  options: { reportEveryMs: 20 },
});
const faulty = (id: string, host: string, options: Plain = {}): LinkSpec => ({
  id,
  protocol: 'faulty',
  host,
  options,
});

function recordingLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log = { lines, debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}

async function opened(links: LinkSpec[], options: Partial<FieldOptions> = {}) {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'gatehouse-field-'));
  const log = recordingLog();
  const field = openField({
    directory,
    execPath: process.execPath,
    kill: (pid) => process.kill(pid, 'SIGKILL'),
    clock: systemClock,
    log,
    onEvent: async () => undefined,
    ...options,
  });
  field.open(links);
  onTestFinished(async () => {
    await field[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });
  return { field, log, directory };
}

const linkOf = (field: Field, id: string) => {
  const link = field.state().links.find((candidate) => candidate.id === id);
  if (!link) throw new Error(`no link ${id}`);
  return link;
};
const pidOf = (field: Field, host: string): number | undefined =>
  field.state().hosts.find(({ name }) => name === host)?.pid;
const countOf = (field: Field, id: string): number =>
  (linkOf(field, id).reports[0]?.state as { count: number } | undefined)?.count ?? 0;

async function up(field: Field, ...ids: string[]): Promise<void> {
  await waitFor(() => ids.forEach((id) => void expect(linkOf(field, id).up).toBe(true)));
}
function waitFor(condition: () => void, timeout = 20_000): Promise<void> {
  return vi.waitFor(condition, { timeout, interval: 5 });
}
function runningPid(field: Field, host: string): number {
  const pid = pidOf(field, host);
  if (pid === undefined) throw new Error(`host ${host} does not run`);
  return pid;
}
const execute = (field: Field, id: string, kind: string, data: Plain = null, timeoutMs = 5_000) =>
  field.execute(id, { kind, data, timeoutMs }, never);
/** The event loop stands still, as in a slow fsync, and in the phase in which the group commit has it (setImmediate). */
async function holdUp(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: { code: string }) => error.code,
  );

describe('a link in its host', () => {
  it('executes commands, reports its state and is listed with its host', async () => {
    const { field } = await opened([loopback('a', 'one'), loopback('b', 'one')], { hostEntry: SIMULATED });
    expect(linkOf(field, 'a')).toMatchObject({ up: false, lastError: undefined });
    await up(field, 'a', 'b');
    const data = { bytes: new Uint8Array([1, 2, 3]), list: [1.5, 'two', null, true] };
    expect(await execute(field, 'a', 'echo', data)).toEqual(data);
    expect(await failure(execute(field, 'a', 'fail', { code: 'NO_REPLY' }))).toBe('NO_REPLY');
    await waitFor(() => expect(countOf(field, 'b')).toBeGreaterThan(3));
    await waitFor(() => expect(linkOf(field, 'b').reports[0]?.ageMs).toBeLessThan(1_000));
    expect(field.state().hosts).toMatchObject([{ name: 'one', restarts: 0 }]);
    await waitFor(() => expect(field.state().hosts[0]?.heartbeatAgeMs).toBeLessThan(1_500));
  });

  it('minds no disk that holds the daemon up for seconds, and what it said meanwhile counts', async () => {
    const { field } = await opened([loopback('a', 'one')]);
    await up(field, 'a');
    const pid = pidOf(field, 'one');
    const answer = failure(execute(field, 'a', 'echo', null, 1_000));
    await holdUp(4_500);
    expect(await answer).toBe('no failure');
    expect(await failure(execute(field, 'a', 'echo'))).toBe('no failure');
    expect(field.state()).toMatchObject({ hosts: [{ pid, restarts: 0 }], links: [{ up: true }] });
    await waitFor(() => expect(field.state().hosts[0]?.heartbeatAgeMs).toBeLessThan(1_500));
  });

  it('refuses what no link could execute', async () => {
    const { field } = await opened([loopback('a', 'one')]);
    await up(field, 'a');
    expect(await failure(execute(field, 'x', 'echo'))).toBe('LINK_LOST');
    expect(await failure(execute(field, 'a', 'no such command'))).toBe('INVALID_COMMAND');
    expect(await failure(execute(field, 'a', 'echo', (() => 1) as unknown as Plain))).toBe('INVALID_COMMAND');
    expect(await failure(execute(field, 'a', 'echo', 'x'.repeat(1_000_000)))).toBe('INVALID_COMMAND');
    for (const timeoutMs of [0, -1, 1.5, Number.NaN, 1e9]) {
      expect(await failure(execute(field, 'a', 'echo', null, timeoutMs))).toBe('INVALID_COMMAND');
    }
    expect(pidOf(field, 'one')).toBeDefined();
  });

  it('comes back by itself when it breaks, in the same process', async () => {
    const { field } = await opened([loopback('a', 'one')], { hostEntry: SIMULATED });
    await up(field, 'a');
    const pid = pidOf(field, 'one');
    await execute(field, 'a', 'break');
    await waitFor(() => expect(linkOf(field, 'a').lastError?.code).toBe('LINK_LOST'));
    await up(field, 'a');
    expect(pidOf(field, 'one')).toBe(pid);
  });

  it('that cannot be opened does not hold up the others', async () => {
    const options = { reportEveryMs: 'often' };
    const { field } = await opened([
      { id: 'bad', protocol: 'loopback', host: 'one', options },
      { id: 'worse', protocol: 'no such protocol', host: 'one', options: {} },
      loopback('a', 'one'),
    ]);
    await up(field, 'a');
    expect(linkOf(field, 'bad')).toMatchObject({ up: false, lastError: { code: 'INVALID_OPTIONS' } });
    expect(linkOf(field, 'worse')).toMatchObject({ up: false, lastError: { code: 'INVALID_OPTIONS' } });
    expect(await failure(execute(field, 'bad', 'echo'))).toBe('LINK_LOST');
  });

  it('sees nothing of the environment but what it was given, and writes files for its user alone', async () => {
    const { field } = await opened([loopback('a', 'one')], { environment: { TZ: 'UTC' } });
    await up(field, 'a');
    const pid = runningPid(field, 'one');
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toBe('TZ=UTC\0');
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Umask:\t0077$/m);
  });
});

describe('a command', () => {
  it('that hangs ends with the word of its driver when its deadline passes', async () => {
    const { field } = await opened([loopback('a', 'one')], { hostEntry: SIMULATED });
    await up(field, 'a');
    expect(await failure(execute(field, 'a', 'hang', null, 100))).toBe('OUTCOME_UNKNOWN');
    expect(await execute(field, 'a', 'echo', 1)).toBe(1);
  });

  it('is cancelled by its caller', async () => {
    const { field } = await opened([loopback('a', 'one')], { hostEntry: SIMULATED });
    await up(field, 'a');
    const caller = new AbortController();
    const hanging = field.execute('a', { kind: 'hang', data: null, timeoutMs: 60_000 }, caller.signal);
    caller.abort();
    expect(await failure(hanging)).toBe('OUTCOME_UNKNOWN');
  });

  it('that its driver never settles is unknown in time, and then the host is replaced', async () => {
    const { field } = await opened([faulty('a', 'one'), loopback('b', 'two')], { hostEntry: FAULTY });
    await up(field, 'a', 'b');
    const [pid, other] = [pidOf(field, 'one'), pidOf(field, 'two')];
    const asked = performance.now();
    expect(await failure(execute(field, 'a', 'deaf', null, 500))).toBe('OUTCOME_UNKNOWN');
    expect(pidOf(field, 'one')).toBe(pid);
    await waitFor(() => expect(pidOf(field, 'one') ?? pid).not.toBe(pid));
    expect(performance.now() - asked).toBeGreaterThan(1_990);
    expect(pidOf(field, 'two')).toBe(other);
  });

  it('is not executed when it lay in the channel past its deadline', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-field-'));
    const file = join(directory, 'notes');
    const { field } = await opened([faulty('a', 'one', { file })], { directory, hostEntry: FAULTY });
    await up(field, 'a');
    const pid = runningPid(field, 'one');
    process.kill(pid, 'SIGSTOP');
    const late = failure(execute(field, 'a', 'unlock', null, 200));
    const sent = performance.now();
    await waitFor(() => expect(performance.now() - sent).toBeGreaterThan(400));
    process.kill(pid, 'SIGCONT');
    expect(await late).toBe('DEADLINE_PASSED');
    expect(await execute(field, 'a', 'lock', 1)).toBe(1);
    expect(readFileSync(file, 'utf8')).toBe('a open\na lock\n');
  });
});

describe('a host', () => {
  it('killed with -9 is replaced; its commands end unknown; the other host notices nothing', async () => {
    const { field, log } = await opened([loopback('a', 'one'), loopback('b', 'two')], {
      hostEntry: SIMULATED,
    });
    await up(field, 'a', 'b');
    const [pid, other] = [runningPid(field, 'one'), runningPid(field, 'two')];
    const hanging = failure(execute(field, 'a', 'hang'));
    await execute(field, 'a', 'echo');
    process.kill(pid, 'SIGKILL');
    expect(await hanging).toBe('OUTCOME_UNKNOWN');
    expect(linkOf(field, 'a')).toMatchObject({ up: false, lastError: { code: 'LINK_LOST' } });
    expect(linkOf(field, 'a').reports).toHaveLength(1);
    expect(await failure(execute(field, 'a', 'echo'))).toBe('LINK_LOST');
    const before = countOf(field, 'b');
    await up(field, 'a');
    expect(pidOf(field, 'one')).not.toBe(pid);
    expect(field.state().hosts).toMatchObject([{ restarts: 1 }, { restarts: 0, pid: other }]);
    await waitFor(() => expect(countOf(field, 'b')).toBeGreaterThan(before));
    expect(log.lines.join('\n')).toContain('it ended with SIGKILL');
  });

  it.each(['stopped', 'stuck in a loop'])('%s is noticed and replaced', async (how) => {
    const { field } = await opened([faulty('a', 'one'), loopback('b', 'two')], { hostEntry: FAULTY });
    await up(field, 'a', 'b');
    const [pid, other] = [runningPid(field, 'one'), runningPid(field, 'two')];
    await waitFor(() => expect(field.state().hosts[0]?.heartbeatAgeMs).toBeDefined());
    if (how === 'stopped') process.kill(pid, 'SIGSTOP');
    else void failure(execute(field, 'a', 'block', null, 60_000));
    await waitFor(() => expect(linkOf(field, 'a').up).toBe(false));
    await up(field, 'a');
    expect(() => process.kill(pid, 0)).toThrow();
    expect(pidOf(field, 'two')).toBe(other);
  });

  it.each(['throw', 'reject', 'function'])('outlives a driver that fails by %s', async (kind) => {
    const { field } = await opened([faulty('a', 'one')], { hostEntry: FAULTY });
    await up(field, 'a');
    const pid = pidOf(field, 'one');
    expect(await failure(execute(field, 'a', kind))).toBe('OUTCOME_UNKNOWN');
    expect(await execute(field, 'a', 'echo', 1)).toBe(1);
    expect(pidOf(field, 'one')).toBe(pid);
  });

  it('is replaced when a driver throws in a listener, and its last words are in the log', async () => {
    const { field, log } = await opened([faulty('a', 'one'), loopback('b', 'two')], { hostEntry: FAULTY });
    await up(field, 'a', 'b');
    const [pid, other] = [pidOf(field, 'one'), pidOf(field, 'two')];
    expect(await failure(execute(field, 'a', 'listener'))).toBe('OUTCOME_UNKNOWN');
    await up(field, 'a');
    expect(pidOf(field, 'one')).not.toBe(pid);
    expect(pidOf(field, 'two')).toBe(other);
    expect(log.lines.join('\n')).toContain('thrown in a listener');
  });

  it('that speaks nonsense is ended, again and again, and harms no one', async () => {
    const { field, log } = await opened([loopback('a', 'one')], {
      hostEntry: join(FIXTURES, 'babbling-host.ts'),
    });
    await waitFor(() => expect(field.state().hosts[0]?.restarts).toBeGreaterThan(0));
    expect(log.lines.join('\n')).toContain('it ended with SIGKILL');
  });

  it('that cannot be started is tried again', async () => {
    const { field, log } = await opened([loopback('a', 'one')], { execPath: '/nonexistent/node' });
    await waitFor(() => expect(log.lines.join('\n')).toContain('ENOENT'));
    expect(await failure(execute(field, 'a', 'echo'))).toBe('LINK_LOST');
  });

  it('closes its links, the last one first, before it ends', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-field-'));
    const file = join(directory, 'notes');
    const { field } = await opened([faulty('a', 'one', { file }), faulty('b', 'one', { file })], {
      directory,
      hostEntry: FAULTY,
    });
    await up(field, 'a', 'b');
    const pid = runningPid(field, 'one');
    await field[Symbol.asyncDispose]();
    expect(readFileSync(file, 'utf8')).toBe('a open\nb open\nb closed\na closed\n');
    expect(() => process.kill(pid, 0)).toThrow();
    expect(readdirSync(directory).toSorted()).toEqual(['notes', 'one.pid']);
    expect(readFileSync(join(directory, 'one.pid'), 'utf8').trim()).toBe('');
  });

  it('is not started beside the one of another daemon on the same directory', async () => {
    const { field, directory } = await opened([loopback('a', 'one')]);
    await up(field, 'a');
    const pid = pidOf(field, 'one');
    const second = await opened([loopback('a', 'one')], { directory });
    await waitFor(() => expect(second.log.lines.join('\n')).toContain('another Gatehouse'));
    expect(pidOf(second.field, 'one')).toBeUndefined();
    expect(pidOf(field, 'one')).toBe(pid);
  });
});

describe('what drivers say', () => {
  it('arrives as the latest state when a driver reports 100 000 times, in bounded memory', async () => {
    let reports = 0;
    const { field } = await opened([faulty('a', 'one')], {
      hostEntry: FAULTY,
      onReport: () => {
        reports += 1;
      },
    });
    await up(field, 'a');
    const pid = runningPid(field, 'one');
    await execute(field, 'a', 'flood', 1);
    const before = residentKilobytes(pid);
    for (let round = 0; round < 10; round += 1) await execute(field, 'a', 'flood', 10_000);
    await waitFor(() => expect(linkOf(field, 'a').reports[0]?.state).toEqual({ n: 10_000 }));
    expect(reports).toBeLessThan(100);
    expect(residentKilobytes(pid) - before).toBeLessThan(60_000);
  });

  it('to the log is bounded, and the lines dropped are counted', async () => {
    const { field, log } = await opened([faulty('a', 'one')], { hostEntry: FAULTY });
    await up(field, 'a');
    await execute(field, 'a', 'log', 100_000);
    await execute(field, 'a', 'log', 1);
    await waitFor(() => expect(log.lines.join('\n')).toContain('droppedLines'));
    expect(log.lines.filter((line) => line.startsWith('a line')).length).toBeLessThan(1_000);
  });

  it('as events is lost never: 10 000 of them, a slow reader, and a kill -9 in the middle', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-field-'));
    const file = join(directory, 'acknowledged');
    const durable = new Map<string, number>();
    let killed = 0;
    let waiting = 0;
    const { field } = await opened(
      [{ id: 'a', protocol: 'device', host: 'one', options: { file, count: 10_000 } }],
      {
        directory,
        hostEntry: FAULTY,
        async onEvent(_link, event: DriverEvent) {
          waiting += 1;
          expect(waiting).toBeLessThanOrEqual(10);
          // As slow as a group commit: all that have come in by then are stored together.
          await new Promise((resolve) => setTimeout(resolve, 1));
          waiting -= 1;
          durable.set(event.id, (durable.get(event.id) ?? 0) + 1);
          if ([2_000, 5_000, 8_000].includes(durable.size) && killed < durable.size) {
            killed = durable.size;
            process.kill(runningPid(field, 'one'), 'SIGKILL');
          }
        },
      },
    );
    await waitFor(() => expect(durable.size).toBe(10_000), 90_000);
    await waitFor(() => expect(linkOf(field, 'a').reports[0]?.state).toBe('all reported'));
    expect(killed).toBe(8_000);
    const acknowledged = readFileSync(file, 'utf8').trim().split('\n');
    expect(new Set(acknowledged).size).toBe(10_000);
    expect(acknowledged.filter((id) => !durable.has(id))).toEqual([]);
    const repeats = [...durable.values()].filter((times) => times > 1).length;
    expect(repeats).toBeLessThanOrEqual(3 * 10);
  }, 120_000);

  it('as an event comes again with the same id when it could not be stored', async () => {
    const seen: string[] = [];
    const { field } = await opened([loopback('a', 'one')], {
      hostEntry: SIMULATED,
      async onEvent(link, { id, kind, data }) {
        seen.push(`${link} ${id} ${kind} ${JSON.stringify(data)}`);
        if (seen.length < 3) throw new Error('the disk is full');
      },
    });
    await up(field, 'a');
    expect(await execute(field, 'a', 'emit', { prefix: 'p', count: 1 })).toEqual({ count: 1 });
    expect(seen).toEqual(Array(3).fill('a p-0 emitted {"index":0}'));
  });

  it('harms no one when the reader of reports throws', async () => {
    const { field, log } = await opened([loopback('a', 'one')], {
      onReport() {
        throw new Error('reader');
      },
    });
    await up(field, 'a');
    await waitFor(() => expect(log.lines.join('\n')).toContain('could not be taken in'));
    expect(await execute(field, 'a', 'echo', 1)).toBe(1);
  });
});

function residentKilobytes(pid: number): number {
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
