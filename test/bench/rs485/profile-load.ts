/**
 * Loads the profiles that it is given as a start does: the daemon reads and checks their files, and the host of the buses checks
 * what it is handed once more. Says what that took, in a process that has done nothing before.
 */
import { profileSchema } from '../../../drivers/modbus/profile.ts';
import { linkOptions } from '../../../src/platform/config/profiles.ts';

export interface ProfileLoad {
  /** Of the processor: reading is all that it waits for. */
  milliseconds: number;
  bytes: number;
}

type Link = Parameters<typeof linkOptions>[0];

const [first = '', ...others] = process.argv.slice(2);
const devices = others.map((profile, index) => ({ unitId: index + 1, profile }));
const link = { id: 'bus', protocol: 'modbus', options: { profile: first, devices } } as unknown as Link;

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const before = heapBytes();
const begun = process.threadCpuUsage();
const { profiles } = linkOptions(link) as { profiles: Record<string, unknown> };
const checked = Object.values(profiles).map((one) => profileSchema.parse(one));
const { user, system } = process.threadCpuUsage(begun);
const milliseconds = (user + system) / 1_000;
const bytes = heapBytes() - before;
if (checked.length !== process.argv.length - 2) throw new Error('not every profile was loaded');
console.log(JSON.stringify({ milliseconds, bytes } satisfies ProfileLoad));
