/**
 * Keys made of install codes. A coordinator keeps each until another takes its place, and a lock of which it has a wrong
 * one can never join; so what no lock has used is taken back when its window ends. Whose these are is kept on the disk:
 * a window also ends with the host that opened it.
 */
import type { DriverLog } from '../contract/driver.ts';
import type { PermitJoin } from '../contract/zgate.ts';
import type { Radio } from './radio.ts';

export interface InstallCodes {
  /** Has the coordinator take them. Rejects when it does not take one. */
  give(codes: PermitJoin['installCodes']): Promise<void>;
  /** The lock is on the network, with a key that is its own now: it stays. */
  used(ieee: string): void;
  /** Takes back those that are not wanted any more. Never throws; gives whose it has taken. */
  takeBack(isWanted: (ieee: string) => boolean): Promise<string[]>;
}

type Keeper = Pick<
  Radio,
  'hwId' | 'memory' | 'remember' | 'rememberFirst' | 'addInstallCode' | 'removeInstallCode'
>;

export function openInstallCodes(radio: () => Keeper | undefined, log: DriverLog): InstallCodes {
  function kept(): string[] {
    const own = radio();
    const list: unknown = own?.memory(own.hwId).installCodes;
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : [];
  }
  function keep(list: string[]): void {
    const own = radio();
    own?.remember(own.hwId, { installCodes: list });
  }
  /** Of this life, for it is asked of with every frame. */
  const unused = new Set<string>();
  const drop = (ieee: string) => keep(kept().filter((one) => one !== ieee));

  return {
    async give(codes) {
      if (codes.length === 0) return;
      // Before: from then on the coordinator may have them.
      for (const { hwId } of codes) unused.add(hwId);
      const own = radio();
      own?.rememberFirst(own.hwId, { installCodes: [...new Set([...kept(), ...unused])] });
      for (const { hwId, code } of codes) await radio()?.addInstallCode(hwId, code);
    },
    used(ieee) {
      if (unused.delete(ieee)) drop(ieee);
    },
    async takeBack(isWanted) {
      const taken: string[] = [];
      try {
        for (const ieee of kept()) {
          if (isWanted(ieee)) continue;
          await radio()?.removeInstallCode(ieee);
          // It may have been entered again meanwhile.
          if (isWanted(ieee)) continue;
          unused.delete(ieee);
          drop(ieee);
          taken.push(ieee);
        }
      } catch (error) {
        // The next end of a window, or start, tries again.
        log.warn({ err: error }, 'the coordinator did not take an install code back, and keeps it for now');
      }
      return taken;
    },
  };
}
