/**
 * The disk running full, step by step and back by itself: losing the disk must not stop the doors.
 *
 *   plenty  everything is stored.
 *   short   telemetry is refused: what is only good to know must not take the last of the room.
 *   full    a commit found no room. The ballast, a file that holds room for this moment, is given up, half of it to
 *           the write-ahead log before anyone else can take it, and only urgent work is stored: what opens or shuts a
 *           door or takes a right away, with its audit. Everything else is refused until the ballast has been put
 *           back, which takes more room than it was short of. Also after a restart: a ballast that is not whole says
 *           that its room is being spent.
 *
 * Until `keep` has looked for the first time, at start-up, everything is urgent.
 */

import { randomFillSync } from 'node:crypto';
import { rmSync, statfsSync, statSync } from 'node:fs';
import { type FileHandle, open, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import { reserveInLog } from './write-ahead-log.ts';

/** `urgent` jobs may run twice, the first time rolled back: they touch nothing but the database. */
export type Urgency = 'telemetry' | 'normal' | 'urgent';
export type Space = 'plenty' | 'short' | 'full';

/** A day of unlocks and their audit is some 2 MB, and the write-ahead log grows to 12 MB between checkpoints. */
const BALLAST_MAX_BYTES = 16 * 1024 * 1024;
/** A few hundred unlocks. */
const BALLAST_MIN_BYTES = 2 * 1024 * 1024;
/** Of a small disk: what must be free for all to be stored is then a tenth of it. */
const BALLAST_SHARE = 1 / 32;
/** Free room in ballasts: below the first it is short, from the second on it is plenty again, one of them for itself. */
const SHORT_BELOW = 2;
const PLENTY_FROM = 3;
/** Of the ballast, given to the write-ahead log. The rest is for what a checkpoint adds to the database, and small files. */
const SHARE_OF_LOG = 1 / 2;
/** With so much free a start succeeds on a disk without ballast: log, its index, and a new database are some 500 kB. */
export const START_BYTES = 2 * 1024 * 1024;
/** How soon the gateway notices that someone has made room. */
const LOOK_EVERY_MS = 5_000;
/** Written at a time: a few milliseconds. */
const CHUNK_BYTES = 1024 * 1024;

export interface SpaceState {
  space: Space;
  /** When `space` was found to be so, which is looked at again every few seconds; null before the first look. */
  freeBytes: number | null;
  /** With so much free everything is stored again; null before the first look. */
  plentyBytes: number | null;
}

/** Of a disk with so many bytes in all. */
export function roomNeeded(diskBytes: number): { ballastBytes: number; plentyBytes: number } {
  const share = Math.floor(diskBytes * BALLAST_SHARE);
  const ballastBytes = Math.min(BALLAST_MAX_BYTES, Math.max(BALLAST_MIN_BYTES, share));
  return { ballastBytes, plentyBytes: PLENTY_FROM * ballastBytes };
}

/** Whether the disk of a folder has room for a start; a new schema needs more. */
export function roomForStart(folder: string, neededBytes: number = START_BYTES) {
  const freeBytes = freeBytesOf(statfsSync(folder));
  return { freeBytes, isEnough: freeBytes >= neededBytes };
}

export interface DiskSpace {
  state(): SpaceState;
  admits(urgency: Urgency): boolean;
  /** A commit found no room: gives the ballast up, and returns whether that made room. */
  release(): boolean;
  /** Looks after the room until the signal fires. */
  keep(clock: Clock, signal: AbortSignal): Promise<never>;
}

export interface DiskSpaceOptions {
  /** Its folder is the disk in question. */
  databaseFile: string;
  /** By the size of the disk when absent. */
  ballastBytes?: number;
  /** Called at every change. */
  changed?: (state: SpaceState) => void;
}

export function openDiskSpace(options: DiskSpaceOptions): DiskSpace {
  const { databaseFile, changed = () => {} } = options;
  const directory = dirname(databaseFile);
  const ballast = join(directory, 'ballast');
  let space: Space = 'plenty';
  let freeBytes: number | null = null;
  let plentyBytes: number | null = null;

  function become(next: Space): void {
    if (next === space) return;
    space = next;
    changed({ space, freeBytes, plentyBytes });
  }

  function release(): boolean {
    const bytes = sizeOf(ballast);
    // On a disk that takes no change at all, such as one gone read-only, there is nothing to give.
    const gone = attempt(() => rmSync(ballast, { force: true }));
    if (gone && bytes > 0) attempt(() => reserveInLog(databaseFile, Math.floor(bytes * SHARE_OF_LOG)));
    // What the last look found was taken since.
    attempt(() => {
      freeBytes = freeBytesOf(statfsSync(directory));
    });
    become('full');
    return bytes > 0 && gone;
  }

  async function look(): Promise<void> {
    const disk = await statfs(directory);
    const free = freeBytesOf(disk);
    const ballastBytes = options.ballastBytes ?? roomNeeded(disk.blocks * disk.bsize).ballastBytes;
    plentyBytes = PLENTY_FROM * ballastBytes;
    if (sizeOf(ballast) < ballastBytes) {
      const isFilled = free >= plentyBytes && (await fill(ballast, ballastBytes));
      // Not before: while the ballast is written the disk still counts as full, and then it has less room.
      freeBytes = freeBytesOf(await statfs(directory));
      // A commit that found no room meanwhile has given it up again.
      return become(isFilled && sizeOf(ballast) >= ballastBytes ? 'plenty' : 'full');
    }
    freeBytes = free;
    // Its removal had failed.
    if (space === 'full') return;
    become(free < (space === 'short' ? PLENTY_FROM : SHORT_BELOW) * ballastBytes ? 'short' : 'plenty');
  }

  return {
    state: () => ({ space, freeBytes, plentyBytes }),
    admits: (urgency) =>
      plentyBytes === null ||
      space === 'plenty' ||
      urgency === 'urgent' ||
      (space === 'short' && urgency === 'normal'),
    release,
    async keep(clock, signal) {
      for (;;) {
        await look();
        await clock.sleep(LOOK_EVERY_MS, signal);
      }
    },
  };
}

/**
 * Takes the room with content that no file system can compress. Not synced: after a power cut it is made again. Returns
 * false, and leaves nothing, when there was not enough.
 */
async function fill(file: string, bytes: number): Promise<boolean> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, 'w', 0o600);
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let left = bytes; left > 0; left -= CHUNK_BYTES) {
      await handle.writeFile(randomFillSync(chunk).subarray(0, left));
    }
    await handle.close();
    return true;
  } catch {
    await handle?.close().catch(() => {});
    attempt(() => rmSync(file, { force: true }));
    return false;
  }
}

function freeBytesOf({ bavail, bsize }: { bavail: number; bsize: number }): number {
  return bavail * bsize;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function attempt(action: () => void): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}
