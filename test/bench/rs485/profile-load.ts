/**
 * Loads the profiles that it is given as a start does: the daemon checks them with its configuration and hands them to the host of
 * the buses, which looks at the shape of what it is handed. Says what that took, in a process that has done nothing before.
 */
import { valid } from '../../../drivers/contract/valid.ts';
import { profileShape } from '../../../drivers/modbus/profile-shape.ts';
import { linkOptions, profileProblems } from '../../../src/platform/config/profiles.ts';

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
const problems = profileProblems([link], () => false);
const { profiles } = linkOptions(link) as { profiles: { [name: string]: string } };
const handed = Object.values(profiles).map((one) => valid(profileShape, one, 'INVALID_OPTIONS'));
const { user, system } = process.threadCpuUsage(begun);
const milliseconds = (user + system) / 1_000;
const bytes = heapBytes() - before;
if (problems.length > 0) throw new Error(JSON.stringify(problems));
if (handed.length !== process.argv.length - 2) throw new Error('not every profile was loaded');
console.log(JSON.stringify({ milliseconds, bytes } satisfies ProfileLoad));
