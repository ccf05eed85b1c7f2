/** Which boot of the kernel this is: the monotonic clock goes on between processes of the same one (proc(5)). */
import { readFileSync } from 'node:fs';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** undefined: it is unknown. */
export function readBootId(): string | undefined {
  try {
    return readFileSync(BOOT_ID, 'ascii').trim();
  } catch {
    return undefined;
  }
}
