/**
 * `npm run test:install`: Debian 12 and 13 with systemd as the first process, each in a virtual machine: the package is
 * installed by apt, set up, opens a first door, writes a first key, is killed, hangs, loses power while it writes and while
 * it is updated, and comes back on a blank machine from a backup. Takes a quarter of an hour for each, and writes what it
 * saw as a table. `-- --container` takes containers of this kernel instead (container.ts), `-- trixie` Debian 13 alone. Needs root and, of Debian, qemu-system-x86, qemu-utils, mmdebstrap, e2fsprogs and minisign.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openContainer } from './container.ts';
import { checkFaults } from './faults.ts';
import { firstMinutes } from './first-minutes.ts';
import { debianDisk, SUITES, type Suite } from './image.ts';
import { openMachine } from './machine.ts';
import { makePackages, type Packages } from './packages.ts';
import { powerCuts } from './power-cuts.ts';
import { restoreOntoBlank } from './restore.ts';
import { openSite } from './site.ts';
import { type Bench, openReport } from './steps.ts';
import { updates } from './updates.ts';

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/install-test');

async function testOn(
  suite: Suite,
  packages: Packages,
  folder: string,
  openOne: typeof openMachine,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  using report = openReport(suite);
  const disk = await report.step('a disk with Debian, from its packages', () => debianDisk(suite, CACHE));
  await using site = await openSite(folder);
  const open = (name: string) =>
    openOne({
      disk,
      folder,
      name,
      ports: site.ports,
      stick: packages.folder,
      serial: site.bus.port,
    });
  let archive: string;
  {
    await using machine = open('controller');
    const bench: Bench = { machine, site, packages, report };
    await report.step('boot', () => machine.boot());
    report.onFailure(() => machine.run('journalctl -b --no-pager -n 60; systemctl --failed --no-pager'));
    await firstMinutes(bench);
    await checkFaults(bench);
    await powerCuts(bench);
    await updates(bench);
    archive = await report.step('backup to a file', () =>
      machine.run(
        'echo correct-horse-battery >/var/tmp/pass; gatehouse backup --to /var/tmp/a.age --passphrase-file /var/tmp/pass >/dev/null 2>&1; base64 -w0 /var/tmp/a.age',
      ),
    );
  }
  await using blank = open('blank');
  await restoreOntoBlank({ machine: blank, site, packages, report }, archive);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    keep: { type: 'boolean', default: false },
    container: { type: 'boolean', default: false },
  },
});
const suites = SUITES.filter((suite) => positionals.length === 0 || positionals.includes(suite));
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-install-'));
try {
  const packages = makePackages(join(folder, 'packages'));
  for (const suite of suites)
    await testOn(suite, packages, join(folder, suite), values.container ? openContainer : openMachine);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  if (!values.keep) rmSync(folder, { recursive: true, force: true });
}
