/**
 * A virtual machine with a disk of its own, run by qemu without the processor's help: ten times slower than a real one, the
 * same everywhere. A power cut is kill -9: what the guest has not flushed is gone.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Disk } from './image.ts';

export interface MachineOptions {
  disk: Disk;
  /** For its disk, its sockets and its console. */
  folder: string;
  name: string;
  /** TCP ports that this host forwards, under the same number. */
  ports: readonly number[];
  /** What is on the stick that is plugged in: a folder of this host. */
  stick: string;
  /** A terminal of this host, which the machine sees as a USB serial adapter. */
  serial?: string;
}

export interface Machine extends AsyncDisposable {
  /** The bus is at a USB adapter, which udev knows. */
  readonly hasUsb: boolean;
  boot(): Promise<void>;
  /** The output of a shell script, run by root. Throws, with the output, where it fails. */
  run(script: string, timeoutMs?: number): Promise<string>;
  /** Gets a file of the machine, as text. */
  get(path: string): Promise<string>;
  /** As when the plug is pulled. */
  cutPower(): Promise<void>;
}

const BOOT_TIMEOUT_MS = 600_000;
const RUN_TIMEOUT_MS = 300_000;
const LOOK_MS = 50;
const STICK_SIZE = '800M';
const LONGEST_LINE = 60_000;

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

  async function run(script: string, timeoutMs = RUN_TIMEOUT_MS): Promise<string> {
    const [socket, end] = [shell, randomUUID()];
    if (!socket) throw new Error(`${name} is off`);
    const received: Buffer[] = [];
    const answer = Promise.withResolvers<string>();
    const onData = (chunk: Buffer) => {
      received.push(chunk);
      if (chunk.includes('\n')) {
        const found = new RegExp(`@${end} (\\S*) (\\d+)\n`).exec(Buffer.concat(received).toString());
        if (found) answer.resolve(`${found[2]} ${found[1]}`);
      }
    };
    const onClose = () => answer.reject(new Error(`${name} went off during ${script}`));
    const timeout = setTimeout(
      () => answer.reject(new Error(`${name} has not ended within ${timeoutMs / 1_000} s: ${script}`)),
      timeoutMs,
    );
    socket.on('data', onData).on('close', onClose);
    try {
      const coded = Buffer.from(script).toString('base64');
      socket.write('f=$(mktemp)\n');
      for (let at = 0; at < coded.length; at += LONGEST_LINE)
        socket.write(`printf %s ${coded.slice(at, at + LONGEST_LINE)} >>$f\n`);
      socket.write(
        `base64 -d $f >$f.sh; sh -eu $f.sh >$f.out 2>&1 </dev/null; c=$?; printf '@%s %s %d\\n' ${end} "$(base64 -w0 $f.out)" $c; rm -f $f*\n`,
      );
      const [code, output = ''] = (await answer.promise).split(' ');
      const text = Buffer.from(output, 'base64').toString();
      if (code !== '0') throw new Error(`${name}: ${script}\nended with ${code}:\n${text}`);
      return text;
    } finally {
      clearTimeout(timeout);
      socket.off('data', onData).off('close', onClose);
    }
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
