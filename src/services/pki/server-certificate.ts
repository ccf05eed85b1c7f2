/** The server certificate in force, for the listeners that show it and for those that have to show a new one. */
import type { Clock } from '../../platform/clock.ts';
import type { ServerIdentity } from './server-identity.ts';

/** It is renewed months before its end; but one made by a wrong clock waits no longer than this once the clock is right. */
const CHECK_MS = 60_000;

export interface ServerCertificate {
  current(): ServerIdentity;
  /** Until the signal fires. `renewed` is called with each new one: a listener that is given one forgets its TLS sessions. */
  keep(renewed: (identity: ServerIdentity) => void, signal: AbortSignal): Promise<never>;
}

/** `identity` makes a new one when that is due (site-ca.ts). */
export async function openServerCertificate(
  identity: () => Promise<ServerIdentity>,
  clock: Pick<Clock, 'sleep'>,
): Promise<ServerCertificate> {
  let current = await identity();
  return {
    current: () => current,
    async keep(renewed, signal) {
      for (;;) {
        await clock.sleep(CHECK_MS, signal);
        const found = await identity();
        if (found.chain !== current.chain) renewed(found);
        current = found;
      }
    },
  };
}
