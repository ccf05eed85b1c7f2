/** `gatehouse update` on a real system: refused, accepted, taken back, rolled back, and cut short by the power. */
import { equal, match, rejects } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from './steps.ts';

/** An emulated processor takes its time. */
const WAIT_S = 240;
const ILL_WAIT_S = 40;
const TIMEOUT_MS = 900_000;
/** From its beginning to somewhere in the trial. */
const TRIAL_MS = 8_000;

export async function updates(bench: Bench): Promise<void> {
  const { machine, site, packages, report } = bench;
  const update = (name: string, wait = WAIT_S) =>
    machine.run(`gatehouse update /media/${name} --yes --wait ${wait} 2>&1`, TIMEOUT_MS);
  /** The version that runs, with its schema. */
  const running = async () => {
    await machine.run('until systemctl is-active --quiet gatehouse; do sleep 0.5; done');
    const { version } = JSON.parse(await machine.run('gatehouse status --json')) as { version: string };
    const [, schema] = /schema (\d+)/.exec(await machine.run('gatehouse doctor || true')) ?? [];
    return `${version} ${schema}`;
  };
  const before = await running();
  const [version = '', schema = ''] = before.split(' ');
  const after = `9.1.0 ${Number(schema) + 1}`;

  await report.step('an update without a signature is refused', async () => {
    await machine.run(`cat >/etc/gatehouse/update.pub <<'END'\n${packages.publicKey}END`);
    await rejects(update(packages.unsigned), /does not have this/);
    equal(await running(), before);
  });
  await report.step('an ill update is taken back, with the copy of the database', async () => {
    await rejects(update(packages.ill, ILL_WAIT_S), /9\.2\.0 was taken back/);
    equal(await running(), before);
    await site.connected();
  });
  await report.step('a power cut during the trial ends on the old version', async () => {
    await machine.run(
      `gatehouse update /media/${packages.later} --yes --wait ${WAIT_S} >/var/tmp/update.log 2>&1 &
      until [ -e /usr/lib/gatehouse/releases/update.json ]; do sleep 0.2; done`,
      TIMEOUT_MS,
    );
    await sleep(TRIAL_MS);
    await machine.cutPower();
    await machine.boot();
    equal(await running(), before);
    equal(await machine.run('ls /usr/lib/gatehouse/releases/update.json 2>/dev/null || true'), '');
  });
  await report.step('an update is accepted, and a door opens', async () => {
    await update(packages.later);
    equal(await running(), after);
    await site.connected();
    match(await machine.run('gatehouse unlock "Room 101" --yes'), /is open/);
  });
  await report.step('the accepted update outlives a power cut', async () => {
    await machine.cutPower();
    await machine.boot();
    equal(await running(), after);
  });
  await report.step('gatehouse update rollback brings the old version, with its database', async () => {
    await machine.run('gatehouse update rollback --yes');
    equal(await running(), before);
    await site.connected();
    report.note(`from 9.1.0 to ${version}`);
  });
}
