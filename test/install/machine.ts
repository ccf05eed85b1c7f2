/**
 * A virtual machine with a disk of its own, run by qemu without the processor's help: ten times slower than a real one, the
 * same everywhere. A power cut is kill -9: what the guest has not flushed is gone.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Disk } from './image.ts';
import { askShell, BOOT_TIMEOUT_MS } from './remote-shell.ts';

export interface MachineOptions {
  disk: Disk;
  /** For its disk, its sockets and its console. */
  folder: string;
  name: string;
  /** TCP ports that this host forwards, under the same number. */
  ports: readonly number[];
  /** What is on the stick that is plugged in: a folder of this host. */
  stick: string;
  /** A terminal of this host, which the machine has as its bus. */
  serial?: string;
}

export interface Machine extends AsyncDisposable {
  /** The bus is at a USB adapter, which udev knows. */
  readonly hasUsb: boolean;
  /** Where the bus is, for a shell of the machine. */
  readonly bus: string;
  boot(): Promise<void>;
  /** The output of a shell script, run by root. Throws, with the output, where it fails. */
  run(script: string, timeoutMs?: number): Promise<string>;
  /** Gets a file of the machine, as text. */
  get(path: string): Promise<string>;
  /** As when the plug is pulled. */
  cutPower(): Promise<void>;
}

const LOOK_MS = 50;
const STICK_SIZE = '800M';

export function openMachine(options: MachineOptions): Machine {
  const { disk, folder, name, stick } = options;
  const overlay = join(folder, `${name}.qcow2`);
  const monitor = join(folder, `${name}.sock`);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', disk.image, overlay]);
  const stickImage = join(folder, `${name}.stick`);
  execFileSync('truncate', ['--size', STICK_SIZE, stickImage]);
  execFileSync('mkfs.ext4', ['-q', '-d', stick, stickImage]);
  let qemu: ChildProcess | undefined;
  let shell: Socket | undefined;

  async function boot(): Promise<void> {
    const console_ = openSync(join(folder, `${name}.console`), 'a');
    const argv = argumentsOf(options, { overlay, stickImage, monitor });
    qemu = spawn('qemu-system-x86_64', argv, { stdio: ['ignore', console_, console_] });
    shell = await connected(monitor, qemu);
    await run(
      'systemctl is-system-running --wait >/dev/null || true; mount /dev/vdb /media',
      BOOT_TIMEOUT_MS,
    );
  }

  async function run(script: string, timeoutMs?: number): Promise<string> {
    if (!shell) throw new Error(`${name} is off`);
    return askShell({ name, shell, script, timeoutMs });
  }

  async function ended(): Promise<void> {
    if (qemu && qemu.exitCode === null && qemu.signalCode === null) await once(qemu, 'exit');
    shell?.destroy();
    [qemu, shell] = [undefined, undefined];
  }

  async function cutPower(): Promise<void> {
    qemu?.kill('SIGKILL');
    await ended();
  }

  return {
    hasUsb: true,
    bus: '"$(echo /dev/serial/by-id/*)"',
    boot,
    run,
    get: (path) => run(`cat ${path}`),
    cutPower,
    [Symbol.asyncDispose]: cutPower,
  };
}

/** Of qemu. */
function argumentsOf(
  { disk, ports, serial }: MachineOptions,
  { overlay, stickImage, monitor }: Record<'overlay' | 'stickImage' | 'monitor', string>,
): string[] {
  const forwards = ports.map((port) => `,hostfwd=tcp:127.0.0.1:${port}-:${port}`).join('');
  return [
    ...['-M', 'pc', '-accel', 'tcg,thread=single', '-cpu', 'max', '-m', '1536'],
    // Its clock goes by instructions, and by the wall while it is idle: however busy this host is, nothing in it comes too late.
    ...['-icount', 'shift=1'],
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
    ...['-kernel', disk.kernel, '-initrd', disk.initrd],
    ...['-append', 'root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off quiet'],
    ...['-drive', `id=disk,file=${overlay},format=qcow2,if=none,cache=writeback`],
    ...['-drive', `id=stick,file=${stickImage},format=raw,if=none`],
    ...['-device', 'virtio-blk-pci,drive=disk', '-device', 'virtio-blk-pci,drive=stick'],
    ...['-device', 'virtio-rng-pci'],
    ...['-nic', `user,model=virtio-net-pci,restrict=on${forwards}`],
    ...['-device', 'virtio-serial-pci', '-chardev', `socket,id=shell,path=${monitor},server=on,wait=off`],
    ...['-device', 'virtserialport,chardev=shell,name=test'],
    ...(serial === undefined ? [] : ['-chardev', `serial,id=bus,path=${serial}`, '-device', 'qemu-xhci']),
    ...(serial === undefined ? [] : ['-device', 'usb-serial,chardev=bus']),
  ];
}

/** Waits for qemu to have made its socket. */
async function connected(path: string, qemu: ChildProcess): Promise<Socket> {
  for (;;) {
    if (qemu.exitCode !== null) throw new Error(`qemu ended with ${qemu.exitCode}`);
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return socket.on('error', () => undefined);
    } catch {
      await sleep(LOOK_MS);
    }
  }
}
