/** Two masters on one bus are worse than none: hosts and daemons that are killed, stopped and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { canMount, smallDisk } from '../../../test/small-disk.ts';
import { systemClock } from '../clock.ts';
import { silentLog } from '../log.ts';
import { forgetProcess, ORPHAN_EXIT_MS, predecessorGone, recordProcess } from './pid-file.ts';

const DAEMON = join(import.meta.dirname, '../../../test/platform/field/daemon.ts');

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-orphan-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

interface Daemon {
  process: ChildProcess;
  /** The pid of the next host whose link is up. */
  hostUp(): Promise<number>;
}

function startDaemon(directory: string): Daemon {
  const child = spawn(process.execPath, [DAEMON, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const hosts = new Set<number>();
  onTestFinished(() => {
    child.kill('SIGKILL');
    for (const pid of hosts) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return {
    process: child,
    async hostUp() {
      const { value } = await lines.next();
      hosts.add(Number(value));
      return Number(value);
    },
  };
}

async function killDaemon({ process: child }: Daemon): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** A zombie, which no one may reap here, is not alive. */
function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
const gone = (pid: number) =>
  vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 25_000, interval: 5 });

describe('when the daemon is killed with -9', () => {
  it('its host ends by itself, and the next daemon starts another', async () => {
    const directory = temporaryDirectory();
    const first = startDaemon(directory);
    const orphan = await first.hostUp();
    const since = performance.now();
    await killDaemon(first);
    await gone(orphan);
    // Before the next daemon would kill it.
    expect(performance.now() - since).toBeLessThan(ORPHAN_EXIT_MS);
    expect(await startDaemon(directory).hostUp()).not.toBe(orphan);
  });

  it('the next daemon waits for a host that cannot end, then kills it before it starts another', async () => {
    const directory = temporaryDirectory();
    const first = startDaemon(directory);
    const orphan = await first.hostUp();
    process.kill(orphan, 'SIGSTOP');
    await killDaemon(first);
    const since = performance.now();
    const second = startDaemon(directory);
    const up = second.hostUp();
    await vi.waitFor(() => expect(performance.now() - since).toBeGreaterThan(ORPHAN_EXIT_MS - 1_000));
    expect(isAlive(orphan)).toBe(true);
    expect(await up).not.toBe(orphan);
    expect(isAlive(orphan)).toBe(false);
    expect(performance.now() - since).toBeGreaterThan(ORPHAN_EXIT_MS);
  });
});

describe('when the daemon is stopped', () => {
  it('its host is patient, ends, and is replaced when the daemon goes on', async () => {
    const daemon = startDaemon(temporaryDirectory());
    const host = await daemon.hostUp();
    const since = performance.now();
    daemon.process.kill('SIGSTOP');
    await gone(host);
    expect(performance.now() - since).toBeGreaterThan(14_000);
    daemon.process.kill('SIGCONT');
    expect(await daemon.hostUp()).not.toBe(host);
  });
});

describe('the recorded process', () => {
  const never = new AbortController().signal;
  const killed: number[] = [];
  const wait = (file: string, signal = never) =>
    predecessorGone(file, systemClock, silentLog, (pid) => killed.push(pid), signal);

  it('holds no one up when there is none, or when its file was cut short', async () => {
    const file = join(temporaryDirectory(), 'field.pid');
    await wait(file);
    for (const content of ['', '{"pid":', '{}', 'null', '[]', '{"pid":"1"}']) {
      writeFileSync(file, content);
      await wait(file);
    }
  });

  it('is not mistaken for another that was given its pid', async () => {
    const file = join(temporaryDirectory(), 'field.pid');
    recordProcess(file, process.pid);
    const recorded = JSON.parse(readFileSync(file, 'utf8'));
    // Ours, no child of the recorded parent any more: it would be waited for, and killed in the end.
    writeFileSync(file, JSON.stringify({ ...recorded, parent: 1 }));
    await expect(wait(file, AbortSignal.timeout(300))).rejects.toThrow();
    // Another start time, or another program: somebody else.
    writeFileSync(file, JSON.stringify({ ...recorded, parent: 1, identity: `1${recorded.identity}` }));
    await wait(file);
    writeFileSync(file, JSON.stringify({ ...recorded, parent: 1, identity: `${recorded.identity} x` }));
    await wait(file);
    expect(killed).toEqual([]);
  });

  it.skipIf(!canMount())('is recorded and forgotten on a full disk, again and again', async () => {
    const disk = smallDisk(65_536);
    const file = join(disk.folder, 'field.pid');
    recordProcess(file, process.ppid);
    disk.fill();
    for (let n = 0; n < 3; n += 1) {
      forgetProcess(file);
      // Whatever that gave back, another program takes.
      disk.fill();
      expect(readFileSync(file, 'utf8').trim()).toBe('');
      await wait(file);
      recordProcess(file, process.pid);
      expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: process.pid });
    }
  });

  it('must exist', async () => {
    const file = join(temporaryDirectory(), 'field.pid');
    expect(() => recordProcess(file, 2 ** 22)).toThrow('ended at once');
  });
});
