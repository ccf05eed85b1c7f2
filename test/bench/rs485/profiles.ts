/** What profiles of Modbus products cost a start. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from '../../../scripts/build.ts';
import { readProfile } from '../../../src/platform/config/profiles.ts';
import { type BenchTable, quantile } from '../table.ts';
import type { ProfileLoad } from './profile-load.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PROFILES = join(ROOT, 'config/profiles');
const LOAD = 'test/bench/rs485/profile-load.ts';
const COUNT = 32;
const TRIES = 9;
const TARGET_MS = 5;
const TARGET_MB = 2;
const MEGABYTE = 1_048_576;

export async function benchProfiles(): Promise<BenchTable> {
  // In this tree, where a bundle finds what it does not hold.
  const folder = mkdtempSync(join(ROOT, 'node_modules', '.bench-'));
  try {
    const shipped = readdirSync(PROFILES).filter((file) => file.endsWith('.yaml'));
    const [there, site] = [join(folder, 'config/profiles'), join(folder, 'site')];
    for (const one of [there, site]) mkdirSync(one, { recursive: true });
    const names = Array.from({ length: COUNT }, (_, index) => {
      const [name, product] = [`product-${index}`, join(PROFILES, shipped[index % shipped.length] ?? '')];
      for (const one of [there, site]) copyFileSync(product, join(one, `${name}.yaml`));
      // As scripts/package/contents.ts has them.
      writeFileSync(join(there, `${name}.json`), JSON.stringify(readProfile(product)));
      return name;
    });
    // A bundle finds the folder of profiles from its own place.
    await bundle(ROOT, LOAD, join(folder, 'dist/load'));
    const packaged = join(folder, 'dist/load/profile-load.js');
    const files = names.map((name) => join(site, `${name}.yaml`));
    const load = loader(join(folder, 'cache'));
    const rows = [
      ...rowsOf(
        'come with Gatehouse, from a package',
        (count) => load(packaged, names.slice(0, count)),
        true,
      ),
      ...rowsOf('are files of a site', (count) => load(packaged, files.slice(0, count)), false),
    ];
    return {
      title: `Modbus: a start with ${COUNT} profiles in place of one`,
      rows,
      notes: [
        'Copies of those that come with Gatehouse; each try in a process of its own, of a bundle. A checkout reads those that come with Gatehouse as files of a site are read.',
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function loader(cache: string) {
  const environment = { ...process.env, NODE_COMPILE_CACHE: cache };
  return (program: string, profiles: readonly string[]): ProfileLoad => {
    const argv = ['--expose-gc', program, ...profiles];
    const { stdout, stderr } = spawnSync(process.execPath, argv, { env: environment, encoding: 'utf8' });
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout);
  };
}

function rowsOf(which: string, load: (count: number) => ProfileLoad, isBound: boolean): BenchTable['rows'] {
  // Makes the code cache, which an installation has.
  load(COUNT);
  const tries = Array.from({ length: TRIES }, () => ({ one: load(1), all: load(COUNT) }));
  const milliseconds = tries.map(({ one, all }) => all.milliseconds - one.milliseconds);
  const megabytes = tries.map(({ one, all }) => (all.bytes - one.bytes) / MEGABYTE);
  const [time, memory] = [quantile(milliseconds, 0.5), quantile(megabytes, 0.5)];
  const least = Math.min(...milliseconds).toFixed(1);
  return [
    {
      what: `that ${which}: processor of daemon and host`,
      figure: `median ${time.toFixed(1)} ms more, ${least} to ${Math.max(...milliseconds).toFixed(1)}`,
      ...(isBound && { target: `≤ ${TARGET_MS} ms`, met: time <= TARGET_MS }),
    },
    {
      what: `that ${which}: heap that is kept, daemon and host together`,
      figure: `median ${memory.toFixed(2)} MB more`,
      target: `≤ ${TARGET_MB} MB`,
      met: memory <= TARGET_MB,
    },
  ];
}
