/**
 * The version of settings that each address of a link has shown last. A poll names no device; its version does, as no two devices are given
 * the same. But a write of settings reaches another device than the one that was asked for its name before it, where the two change places at
 * that moment, and both have one version then. So after each write no version says who is there until all others have shown theirs. And a device that
 * takes settings may clear the counters of its inputs: also where it took those of another one before, and shows its own again.
 */
import type { Clock } from '../contract/driver.ts';

export interface ShownVersions {
  /** `askedAt`: monotonic, as of a reading (exchange.ts). */
  read(unit: number, version: number, askedAt: number): void;
  /** As it was asked for after the last write; undefined: it was not. */
  of(unit: number): number | undefined;
  /** Settings of this version are sent, to any unit. */
  written(version: number): void;
  /** They were, since then (monotonic). */
  isWrittenSince(version: number, since: number): boolean;
  /** No device answers there any more. */
  gone(unit: number): void;
  /** Another device has the version of this one, or may have it. */
  isShared(unit: number): boolean;
}

/** Writes that are remembered: as many as a bus has devices. */
const WRITES_MAX = 256;

export function openShownVersions(clock: Clock): ShownVersions {
  /** undefined: not read since the last write. */
  const versions = new Map<number, number | undefined>();
  let writtenAt = Number.NEGATIVE_INFINITY;
  /** When each version was sent last; the oldest first. */
  const writes = new Map<number, number>();
  return {
    read(unit, version, askedAt) {
      versions.set(unit, askedAt >= writtenAt ? version : undefined);
    },
    of: (unit) => versions.get(unit),
    written(version) {
      writtenAt = clock.monotonic();
      writes.delete(version);
      writes.set(version, writtenAt);
      const [oldest = version] = writes.keys();
      if (writes.size > WRITES_MAX) writes.delete(oldest);
      for (const unit of versions.keys()) versions.set(unit, undefined);
    },
    isWrittenSince: (version, since) => (writes.get(version) ?? Number.NEGATIVE_INFINITY) >= since,
    gone: (unit) => void versions.delete(unit),
    isShared(unit) {
      const own = versions.get(unit);
      if (own === undefined) return true;
      for (const [other, version] of versions)
        if (other !== unit && (version === undefined || version === own)) return true;
      return false;
    },
  };
}
