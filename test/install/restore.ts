/** A dead controller: a blank machine, the package, the archive; encoders, doors and boards go on. */
import { match } from 'node:assert/strict';
import { ENCODER } from './site.ts';
import type { Bench } from './steps.ts';

/** On the stick: of the other machine's `gatehouse backup`. */
export const ARCHIVE = 'controller.age';

export async function restoreOntoBlank({ machine, site, packages, report }: Bench): Promise<void> {
  await report.step('a blank machine: boot, install, restore, start', async () => {
    await machine.boot();
    report.onFailure(() => machine.run('journalctl -b --no-pager -n 60'));
    await machine.run(`apt-get install --yes /media/${packages.current}`);
    await machine.run(`echo correct-horse-battery >/var/tmp/pass
      install -d -m 700 -o gatehouse -g gatehouse /var/lib/gatehouse
      gatehouse restore /media/${ARCHIVE} --passphrase-file /var/tmp/pass --yes
      # An encrypted secret stays with the machine that encrypted it.
      sed -i '/certFile:/d; /keyFile:/d' /etc/gatehouse/gatehouse.yaml
      gatehouse config check
      systemctl enable --now gatehouse`);
  });
  await report.step('encoder, door and board are back without being registered or paired again', async () => {
    await site.connected();
    match(await machine.run('gatehouse unlock "Room 101" --yes'), /is open/);
    match(await machine.run(`gatehouse write-keys ${ENCODER} --block 6a1f09c3`), /is written/);
  });
}
