/**
 * A machine whose kernel is a program of this host (user-mode Linux): a disk, a file system and a page cache of its own, at
 * nearly the speed of this host. A power cut is kill -9: what the machine has not flushed is gone with its memory.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { SerialPort } from 'serialport';
import { ADDRESS, NEIGHBOUR } from './image.ts';
import type { Machine, MachineOptions } from './machine.ts';
import { askShell, BOOT_TIMEOUT_MS } from './remote-shell.ts';

/** Of this host's end of the cable. */
const CABLE = 'gatehouse-test';
/** Of the serial device server. */
const BUS_PORT = 4_001;

export function openUserMode({ disk, folder, name, ports, stick, serial }: MachineOptions): Machine {
  const image = join(folder, `${name}.img`);
  execFileSync('cp', ['--sparse=always', disk.image, image]);
  const stickImage = join(folder, `${name}.stick`);
  execFileSync('truncate', ['--size', '800M', stickImage]);
  execFileSync('mkfs.ext4', ['-q', '-d', stick, stickImage]);
  const preload = join(folder, 'xstate.so');
  execFileSync('gcc', ['-O2', '-shared', '-fPIC', '-o', preload, join(import.meta.dirname, 'xstate.c')]);
  if (existsSync(`/sys/class/net/${CABLE}`)) execFileSync('ip', ['link', 'del', CABLE]);
  execFileSync('ip', ['tuntap', 'add', CABLE, 'mode', 'tap']);
  execFileSync('ip', ['address', 'add', `${NEIGHBOUR}/24`, 'dev', CABLE]);
  execFileSync('ip', ['link', 'set', CABLE, 'up']);
  const servers: Pick<Server, 'close'>[] = ports.map(forward);
  if (serial !== undefined) servers.push(serveBus(serial));
  let linux: ChildProcess | undefined;
  let shell: Duplex | undefined;

  async function boot(): Promise<void> {
    const console_ = openSync(join(folder, `${name}.console`), 'a');
    const argv = [
      ...['mem=1536M', `ubd0=${image}`, `ubd1=${stickImage}`, 'root=/dev/ubda', 'rw', 'quiet', 'panic=-1'],
      ...['con=null', 'con0=null,fd:1', 'ssl=null', 'ssl1=fd:3'],
      ...[`vec0:transport=tap,ifname=${CABLE},gro=1`, `uml_dir=${folder}/`, `umid=${name}`],
    ];
    linux = spawn('linux.uml', argv, {
      stdio: ['ignore', console_, console_, 'pipe'],
      env: { PATH: process.env.PATH, LD_PRELOAD: preload },
      // A process of this host for each address space in the machine: they end together.
      detached: true,
    });
    shell = linux.stdio[3] as Duplex;
    shell.on('error', () => undefined);
    await run(
      'systemctl is-system-running --wait >/dev/null || true; mount /dev/ubdb /media',
      BOOT_TIMEOUT_MS,
    );
  }

  async function run(script: string, timeoutMs?: number): Promise<string> {
    if (!shell) throw new Error(`${name} is off`);
    return askShell({ name, shell, script, timeoutMs });
  }

  /** Its processes are a group of their own, which would outlive this one. */
  function end(): void {
    if (linux?.pid !== undefined && linux.exitCode === null && linux.signalCode === null)
      process.kill(-linux.pid, 'SIGKILL');
  }
  process.on('exit', end);

  async function cutPower(): Promise<void> {
    const gone = linux && linux.exitCode === null && linux.signalCode === null && once(linux, 'exit');
    end();
    await gone;
    shell?.destroy();
    [linux, shell] = [undefined, undefined];
  }

  return {
    hasUsb: false,
    bus: `tcp://${NEIGHBOUR}:${BUS_PORT}`,
    boot,
    run,
    get: (path) => run(`cat ${path}`),
    cutPower,
    async [Symbol.asyncDispose]() {
      await cutPower();
      process.off('exit', end);
      for (const server of servers) server.close();
      execFileSync('ip', ['link', 'del', CABLE]);
    },
  };
}

/**
 * A serial device server, of one connection: a new one ends the one before, whose machine may have gone without a word. So
 * does its end: a port that stays open is locked for the machine that comes next.
 */
function serveBus(path: string): Pick<Server, 'close'> {
  let end = () => {};
  const server = createServer((socket) => {
    end();
    const bus = new SerialPort({ path, baudRate: 19_200 });
    end = () => {
      socket.destroy();
      if (bus.isOpen) bus.close();
    };
    const ended = end;
    socket.setNoDelay(true).on('error', ended).on('close', ended).pipe(bus);
    bus.on('error', ended).pipe(socket);
  });
  server.listen(BUS_PORT, NEIGHBOUR);
  return {
    close() {
      end();
      return server.close();
    },
  };
}

/** The machine's port, under the same number at this host. */
function forward(port: number): Server {
  const server = createServer((near) => {
    const far = connect(port, ADDRESS);
    const end = (socket: Socket) => () => void socket.destroy();
    near.on('error', end(far)).on('close', end(far)).pipe(far);
    far.on('error', end(near)).on('close', end(near)).pipe(near);
  });
  return server.listen(port, '127.0.0.1');
}
