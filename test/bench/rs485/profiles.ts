/** What profiles of Modbus products cost a start. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchTable, quantile } from '../table.ts';
import type { ProfileLoad } from './profile-load.ts';

const PROFILES = join(import.meta.dirname, '../../../config/profiles');
const LOAD = join(import.meta.dirname, 'profile-load.ts');
const COUNT = 32;
const TRIES = 9;
const TARGET_MS = 5;
const TARGET_MB = 2;
const MEGABYTE = 1_048_576;

export async function benchProfiles(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  try {
    const shipped = readdirSync(PROFILES).filter((file) => file.endsWith('.yaml'));
    const files = Array.from({ length: COUNT }, (_, index) => {
      const file = join(folder, `product-${index}.yaml`);
      copyFileSync(join(PROFILES, shipped[index % shipped.length] ?? ''), file);
      return file;
    });
    const environment = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'cache') };
    const load = (count: number): ProfileLoad => {
      const argv = ['--expose-gc', LOAD, ...files.slice(0, count)];
      const { stdout, stderr } = spawnSync(process.execPath, argv, { env: environment, encoding: 'utf8' });
      if (stdout === '') throw new Error(stderr);
      return JSON.parse(stdout);
    };
    // Makes the code cache, which an installation has.
    load(COUNT);
    const tries = Array.from({ length: TRIES }, () => ({ one: load(1), all: load(COUNT) }));
    const milliseconds = tries.map(({ one, all }) => all.milliseconds - one.milliseconds);
    const megabytes = tries.map(({ one, all }) => (all.bytes - one.bytes) / MEGABYTE);
    const [time, memory] = [quantile(milliseconds, 0.5), quantile(megabytes, 0.5)];
    return {
      title: `Modbus: a start with ${COUNT} profiles in place of one`,
      rows: [
        {
          what: 'processor: read, and checked by the daemon and by the host',
          figure: `median ${time.toFixed(1)} ms more, ${Math.min(...milliseconds).toFixed(1)} to ${Math.max(...milliseconds).toFixed(1)}`,
          target: `≤ ${TARGET_MS} ms`,
          met: time <= TARGET_MS,
        },
        {
          what: 'heap that is kept, daemon and host together',
          figure: `median ${memory.toFixed(2)} MB more`,
          target: `≤ ${TARGET_MB} MB`,
          met: memory <= TARGET_MB,
        },
      ],
      notes: ['The profiles that come with Gatehouse, as files of a site; each try in a process of its own.'],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
