/**
 * The same machine as a container of this kernel (systemd-nspawn), at the speed of this host: for a quick look, and where a
 * virtual machine would take hours. Its power cut ends all processes at once and loses nothing that was written.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Machine, MachineOptions } from './machine.ts';

const LOOK_MS = 100;
const RUN_TIMEOUT_MS = 300_000;
const ADAPTER = '/dev/serial/by-id/usb-container';
/** Instead of an adapter's class of devices: what stands for it here is a pty. */
const PTY = '[Service]\nDeviceAllow=char-pts rw\n';

export function openContainer({ disk, folder, name, stick, serial }: MachineOptions): Machine {
  const root = join(folder, name);
  mkdirSync(root);
  execFileSync('tar', ['--extract', `--file=${disk.archive}`, `--directory=${root}`]);
  const dropIn = join(root, 'etc/systemd/system/gatehouse.service.d');
  mkdirSync(dropIn, { recursive: true });
  writeFileSync(join(dropIn, 'pty.conf'), PTY);
  let nspawn: ChildProcess | undefined;
  let leader = 0;

  async function boot(): Promise<void> {
    const argv = [
      ...['--quiet', `--directory=${root}`, `--machine=test-${process.pid}-${Date.now() % 100_000}`],
      ...['--boot', '--register=no', '--keep-unit', '--link-journal=no', '--console=pipe'],
      `--bind-ro=${stick}:/media`,
      ...(serial === undefined ? [] : [`--bind=${serial}:${ADAPTER}`]),
    ];
    nspawn = spawn('systemd-nspawn', argv, { stdio: 'ignore' });
    leader = 0;
    while (leader === 0) {
      if (nspawn.exitCode !== null) throw new Error(`systemd-nspawn ended with ${nspawn.exitCode}`);
      await sleep(LOOK_MS);
      leader = systemdOf(nspawn.pid ?? 0);
    }
    // The first process of the system is there before it can be asked anything.
    await patiently(() =>
      run('systemctl is-system-running --wait >/dev/null || true; test -d /run/systemd/system'),
    );
    if (serial !== undefined) await run(`chgrp dialout ${ADAPTER}; chmod 660 ${ADAPTER}`);
  }

  async function run(script: string, timeout = RUN_TIMEOUT_MS): Promise<string> {
    const spaces = [`--target=${leader}`, '--mount', '--uts', '--ipc', '--pid', '--cgroup'];
    const child = spawn('nsenter', [...spaces, '/bin/sh', '-eu'], {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    child.stdin.end(script);
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${name}: ${script}\nended with ${code} (went off, or failed):\n${text}`);
    return text;
  }

  async function cutPower(): Promise<void> {
    if (leader !== 0 && nspawn?.exitCode === null) process.kill(leader, 'SIGKILL');
    if (nspawn && nspawn.exitCode === null && nspawn.signalCode === null) await once(nspawn, 'exit');
    nspawn = undefined;
  }

  return {
    hasUsb: false,
    boot,
    run,
    get: (path) => run(`cat ${path}`),
    cutPower,
    [Symbol.asyncDispose]: cutPower,
  };
}

async function patiently(work: () => Promise<unknown>): Promise<void> {
  for (let tries = 100; ; tries -= 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (tries === 0) throw error;
      await sleep(LOOK_MS);
    }
  }
}

/** The first process in the container; 0: there is none yet. */
function systemdOf(nspawn: number): number {
  const file = `/proc/${nspawn}/task/${nspawn}/children`;
  return existsSync(file) ? Number(readFileSync(file, 'utf8').trim().split(' ')[0]) : 0;
}
