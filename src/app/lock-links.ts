/** How doors reach their locks: over the link of the gateway that each is joined to, while that link is up. */
import { DriverError, type Plain } from '../../drivers/contract/driver.ts';
import { lockApplied } from '../../drivers/contract/settings.ts';
import { standingEnded, unlocked } from '../../drivers/contract/zgate.ts';
import type { Execute, LinkCommand } from '../platform/execute.ts';
import type { DoorSliceOptions } from '../resources/doors/slice.ts';

export interface LockLinksOptions {
  /** The link of a gateway of the configuration. */
  linkOf(gatewayId: string): string | undefined;
  execute: Execute;
}

export interface LockLinks
  extends Pick<
    DoorSliceOptions,
    'command' | 'unreachable' | 'applyConfiguration' | 'unlockLock' | 'actuateLock'
  > {
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
}

export function openLockLinks({ linkOf, execute }: LockLinksOptions): LockLinks {
  // Asked for each of a thousand doors: the state of the field would take long to put together.
  const linksUp = new Set<string>();
  const linkOfLock = (gatewayId: string | null) => (gatewayId === null ? undefined : linkOf(gatewayId));
  const command: LockLinks['command'] = ({ gatewayId }, wanted, signal) =>
    execute(linkOfLock(gatewayId) ?? '', wanted, signal);
  return {
    command,
    unreachable({ gatewayId }) {
      const link = linkOfLock(gatewayId);
      if (link === undefined) return `no link reaches the lock (gateway ${gatewayId ?? 'unknown'})`;
      return linksUp.has(link) ? undefined : `link ${link} is down`;
    },
    async applyConfiguration(lock, data, timeoutMs, signal) {
      const wanted: LinkCommand = { kind: 'applyConfiguration', data: data as Plain, timeoutMs };
      const answer = lockApplied.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the lock did not say what it has in force');
    },
    async unlockLock(lock, data, timeoutMs, released) {
      // The caller may have gone; what is on its way goes on, and its outcome is wanted.
      const { signal } = new AbortController();
      const wanted: LinkCommand = { kind: 'unlock', data, timeoutMs, released };
      const answer = unlocked.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the gateway did not report the outcome');
    },
    async actuateLock(lock, { kind, data, released }, timeoutMs) {
      const { signal } = new AbortController();
      const wanted: LinkCommand = { kind, data, timeoutMs, ...(released && { released }) };
      // A lock command and the begin of standing open have the same outcomes.
      const answer = standingEnded.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the gateway did not report the outcome');
    },
    link(linkId, up) {
      if (up) linksUp.add(linkId);
      else linksUp.delete(linkId);
    },
  };
}
