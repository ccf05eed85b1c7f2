/** Sockets that systemd has opened for this process (sd_listen_fds(3)). */
import { fstatSync } from 'node:fs';

/** Descriptors that systemd hands over start here. */
const FIRST = 3;

/** The descriptor of the socket with this name in LISTEN_FDNAMES; undefined when there is none. */
export function handedOver(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
): number | undefined {
  const index = env.LISTEN_FDNAMES?.split(':').indexOf(name) ?? -1;
  return index === -1 ? undefined : socketAt(String(FIRST + index));
}

/** Undefined when the number is none of a socket: it may be stale, and would then be a file of ours. */
export function socketAt(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,4}$/.test(text)) return undefined;
  try {
    return fstatSync(Number(text)).isSocket() ? Number(text) : undefined;
  } catch {
    return undefined;
  }
}
