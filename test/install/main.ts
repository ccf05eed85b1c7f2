/**
 * `npm run test:install`: Debian 12 and 13 with systemd as the first process, each in a machine of its own: the package is
 * installed by apt, set up, opens a first door, writes a first key, is killed, hangs, loses power while it writes and while
 * it is updated, and comes back on a blank machine from a backup. Writes what it saw as a table. The machine is user-mode Linux
 * (user-mode.ts); with `-- --qemu` qemu with Debian's own kernel and a USB adapter (machine.ts), which takes hours. `-- trixie` takes
 * Debian 13 alone. Needs root and what docs/reliability.md lists.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkFaults } from './faults.ts';
import { firstMinutes } from './first-minutes.ts';
import { debianDisk, SUITES, type Suite } from './image.ts';
import { openMachine } from './machine.ts';
import { makePackages, type Packages } from './packages.ts';
import { powerCuts } from './power-cuts.ts';
import { ARCHIVE, restoreOntoBlank } from './restore.ts';
import { openSite } from './site.ts';
import { type Bench, openReport } from './steps.ts';
import { updates } from './updates.ts';
import { openUserMode } from './user-mode.ts';

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
  {
    await using machine = open('controller');
    const bench: Bench = { machine, site, packages, report };
    await report.step('boot', () => machine.boot());
    report.onFailure(() =>
      machine.run('journalctl --no-pager -n 40 -u gatehouse; systemctl --failed --no-pager'),
    );
    await firstMinutes(bench);
    await checkFaults(bench);
    await powerCuts(bench);
    await updates(bench);
    const archive = await report.step('backup to a file', () =>
      machine.run(
        'echo correct-horse-battery >/var/tmp/pass; gatehouse backup --to /var/tmp/a.age --passphrase-file /var/tmp/pass >/dev/null 2>&1; base64 -w0 /var/tmp/a.age',
      ),
    );
    // By the stick: a serial port of user-mode Linux that was sent so much at once takes no more.
    writeFileSync(join(packages.folder, ARCHIVE), Buffer.from(archive, 'base64'));
  }
  await using blank = open('blank');
  await restoreOntoBlank({ machine: blank, site, packages, report });
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    keep: { type: 'boolean', default: false },
    qemu: { type: 'boolean', default: false },
  },
});
// So that what ends with this process ends then too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const suites = SUITES.filter((suite) => positionals.length === 0 || positionals.includes(suite));
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-install-'));
try {
  const packages = makePackages(join(folder, 'packages'));
  for (const suite of suites)
    await testOn(suite, packages, join(folder, suite), values.qemu ? openMachine : openUserMode);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  if (!values.keep) rmSync(folder, { recursive: true, force: true });
}
