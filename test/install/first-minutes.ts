/** From an empty controller to a first door and a first key, as docs/operations.md has it. */
import { equal, match, ok } from 'node:assert/strict';
import type { Machine } from './machine.ts';
import { ENCODER } from './site.ts';
import type { Bench, Report } from './steps.ts';

/** The simulated board answers by way of an emulated adapter on an emulated processor. */
const TURNAROUND_MS = 2_000;

export async function firstMinutes({ machine, site, packages, report }: Bench): Promise<void> {
  const [https, mqtt] = site.ports;
  await report.step('apt installs the package, without a network', async () => {
    const text = await machine.run(`apt-get install --yes /media/${packages.current} 2>&1`);
    match(text, /sudo gatehouse setup/);
    equal(await machine.run("dpkg-query --show --showformat '$'{Status} gatehouse"), 'install ok installed');
  });
  await report.step(
    'the unit is without a fault for this systemd, and is exposed by 1.4 at most',
    async () => {
      equal(await machine.run('systemd-analyze verify gatehouse.service gatehouse-update.service 2>&1'), '');
      await machine.run('systemd-analyze security --offline=yes --threshold=14 gatehouse.service >/dev/null');
      report.note((await machine.run('systemctl --version | head -1')).trim());
    },
  );
  if (machine.hasUsb) await adapterIsNamed(machine, report);
  await report.step('gatehouse setup, with options, starts the service', async () => {
    await machine.run(`cat >/var/tmp/vendor-root.pem <<'END'\n${site.vendorRoot}\nEND`);
    await machine.run(
      `gatehouse setup --yes --name ${site.name} --listen 0.0.0.0:${https} --encoders 0.0.0.0:${mqtt} \
        --vendor-root /var/tmp/vendor-root.pem --link modbus=${machine.bus}`,
    );
    equal((await machine.run('systemctl is-active gatehouse')).trim(), 'active');
    // Here alone: an emulated wire is slower than any real one.
    await machine.run(
      `sed -i 's/^\\( *\\)port: .*\\(by-id\\|tcp:\\).*/&\\n\\1turnaroundMaxMs: ${TURNAROUND_MS}/' /etc/gatehouse/gatehouse.yaml; gatehouse config check; systemctl restart gatehouse`,
    );
  });
  await report.step('gatehouse doctor finds nothing to mend but clock and disk', async () => {
    const { checks } = JSON.parse(await machine.run('gatehouse doctor --json || true')) as {
      checks: { subject: string; severity: string }[];
    };
    const bad = checks.filter(
      ({ severity, subject }) => severity !== 'good' && !['clock', 'fsync'].includes(subject),
    );
    equal(JSON.stringify(bad), '[]');
  });
  await report.step('gatehouse login-code lets a person sign in', async () => {
    const code = (
      await machine.run('gatehouse login-code --role service-tool --label test 2>/dev/null')
    ).trim();
    site.trust(await machine.get('/var/lib/gatehouse/pki/root.crt'));
    const { status, headers } = await site.call('POST', '/session', { code });
    ok(status < 300, `${status}`);
    ok(headers['set-cookie']);
  });
  await report.step('a board is found on the bus, and a first door opens by its relay', async () => {
    await machine.run('gatehouse bus scan bus-1 --from 1 --to 1');
    site.useToken(
      (await machine.run('gatehouse token create --role service-tool --label test 2>/dev/null')).trim(),
    );
    const device = await site.until(
      '/network/rs485',
      ({ items }) => (items as { deviceId: string }[])[0]?.deviceId,
    );
    const said = await machine.run('gatehouse doors add "Room 101"');
    const [door] = /[0-9a-f-]{36}/.exec(said) ?? [];
    await machine.run(`gatehouse rs485 set ${device} doorId=${door} relayIndex=0`);
    await site.until(
      `/network/rs485/${device}`,
      (body) => body.reportedSettingsVersion === body.settingsVersion || undefined,
    );
    match(await machine.run('gatehouse unlock "Room 101" --yes'), /is open/);
    ok((await site.bus.state(1)).history.length > 0);
  });
  await report.step('an encoder is registered, and a first key is written', async () => {
    await site.registerEncoder();
    await site.connected();
    match(await machine.run(`gatehouse write-keys ${ENCODER} --block 6a1f09c2`), /is written/);
    ok(site.encoder().physicalLog().length > 0);
  });
}

async function adapterIsNamed(machine: Machine, report: Report): Promise<void> {
  await report.step('the adapter has a name, the group dialout and 1 ms', async () => {
    equal((await machine.run('ls /dev/serial/by-id | wc -l')).trim(), '1');
    equal((await machine.run('stat -Lc %G:%a /dev/serial/by-id/*')).trim(), 'dialout:660');
    equal((await machine.run('cat /sys/bus/usb-serial/devices/*/latency_timer')).trim(), '1');
  });
}
