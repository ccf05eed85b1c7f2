/** The machine: its clock, its disk, its serial ports. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { roomNeeded } from '../../platform/database/space.ts';
import { openKernelClock } from '../../platform/host/kernel-clock.ts';
import type { Diagnosis, Patient } from './diagnosis.ts';

/** Of the room with which everything is stored: with less it is short of it, or soon (on most disks below 480 MB). */
const FREE_DOUBTFUL = 10;
const INODES_BAD = 100;
const FSYNC_TRIES = 15;
/** Flash takes 8 to 30 ms; with more, each answer that must be durable is felt at the desk. */
const FSYNC_DOUBTFUL_MS = 50;
const FSYNC_BAD_MS = 500;

export async function checkClock({ shell: { clock } }: Patient): Promise<Diagnosis[]> {
  const subject = 'clock';
  const now = new Date(clock.now()).toISOString();
  const kernelClock = openKernelClock({ clock });
  await kernelClock.ask();
  if (kernelClock.isSynchronised()) return [{ severity: 'good', subject, text: `${now}, synchronised` }];
  const remedy =
    'timedatectl set-ntp true, with a time server in /etc/systemd/timesyncd.conf; with chrony: chronyc sources';
  return [{ severity: 'doubtful', subject, text: `${now}, not synchronised`, remedy }];
}

export function checkDisk({ config: { dataDirectory } }: Patient): Diagnosis[] {
  const subject = 'disk';
  const { bavail, blocks, bsize, files, ffree } = statfsSync(existing(dataDirectory));
  const free = bavail * bsize;
  const { plentyBytes } = roomNeeded(blocks * bsize);
  const text = `${Math.floor(free / 1e6)} MB free for ${dataDirectory}; ${Math.ceil(plentyBytes / 1e6)} MB are needed`;
  const remedy = 'find what takes the room: df -h, du -xh --max-depth=2 / | sort -h | tail';
  if (free < plentyBytes) return [{ severity: 'bad', subject, text, remedy }];
  if (files > 0 && ffree < INODES_BAD) {
    return [
      { severity: 'bad', subject, text: `no more files can be made (${ffree} inodes left)`, remedy: 'df -i' },
    ];
  }
  if (free < FREE_DOUBTFUL * plentyBytes) return [{ severity: 'doubtful', subject, text, remedy }];
  return [{ severity: 'good', subject, text }];
}

/** As long as a small commit at least: a page written and put on the disk. */
export function checkFsync({ config: { dataDirectory }, shell: { clock } }: Patient): Diagnosis[] {
  const subject = 'fsync';
  if (!existsSync(dataDirectory)) return [];
  const file = join(dataDirectory, 'doctor.tmp');
  rmSync(file, { force: true });
  // Exclusive: a link that was planted there is refused.
  const descriptor = openSync(file, 'wx', 0o600);
  const page = Buffer.alloc(4_096, 1);
  const times: number[] = [];
  try {
    for (let write = 0; write < FSYNC_TRIES; write += 1) {
      const started = clock.monotonic();
      writeSync(descriptor, page);
      fsyncSync(descriptor);
      times.push(clock.monotonic() - started);
    }
  } finally {
    closeSync(descriptor);
    rmSync(file, { force: true });
  }
  times.sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)] ?? 0;
  const text = `${median.toFixed(1)} ms, at worst ${(times.at(-1) ?? 0).toFixed(1)} ms of ${FSYNC_TRIES}`;
  const remedy = 'replace the card, or move dataDirectory to a better disk; see dmesg';
  if (median > FSYNC_BAD_MS) return [{ severity: 'bad', subject, text, remedy }];
  if (median > FSYNC_DOUBTFUL_MS) return [{ severity: 'doubtful', subject, text, remedy }];
  return [{ severity: 'good', subject, text }];
}

/** Every device file a link names, whatever its protocol calls the option. */
export function checkSerialPorts({ config: { links } }: Patient): Diagnosis[] {
  return links.flatMap(({ id, options }) =>
    Object.values(options)
      .filter((value) => typeof value === 'string' && value.startsWith('/dev/'))
      .map((port) => serialPort(id, String(port))),
  );
}

function serialPort(link: string, port: string): Diagnosis {
  const subject = `link ${link}`;
  if (!existsSync(port)) {
    const remedy = 'plug it in; what is there: ls -l /dev/serial/by-id';
    return { severity: 'bad', subject, text: `${port} does not exist`, remedy };
  }
  try {
    accessSync(port, constants.R_OK | constants.W_OK);
    return { severity: 'good', subject, text: port };
  } catch {
    const remedy = `usermod -aG dialout gatehouse, then systemctl restart gatehouse; ls -l ${port}`;
    return { severity: 'bad', subject, text: `${port} may not be opened by this user`, remedy };
  }
}

function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path));
}
