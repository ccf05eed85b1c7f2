/**
 * What `gatehouse simulate` starts: one simulator in a process of its own. A package has it as a bundle of its own
 * (scripts/package.ts), so that nothing of it is in the daemon.
 */
import { argv, stderr } from 'node:process';

const PROGRAMS: Record<string, () => Promise<unknown>> = {
  bus: () => import('./bus/main.ts'),
  encoder: () => import('./encoder/device.ts'),
  zigbee: () => import('./zigbee/main.ts'),
};

// The rest is the program's own.
const [kind = ''] = argv.splice(2, 1);
const program = PROGRAMS[kind];
if (!program) {
  stderr.write(`simulate.ts ${Object.keys(PROGRAMS).join(' | ')}\n`);
  process.exit(2);
}
await program();
