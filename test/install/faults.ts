/** What systemd does for the service: encrypted secrets, and a start after each death. */
import { equal, match, ok } from 'node:assert/strict';
import type { Bench } from './steps.ts';

/** Milliseconds from BEGIN to the service's READY. Both properties in one question: between two the process may end. */
const BEGIN = 'pid=$(systemctl show -P MainPID gatehouse); began=$(date +%s%N)';
const UNTIL_READY = `
until
  state=$(systemctl show --property=ActiveState,MainPID gatehouse | sort | tr '\\n' ' ')
  [ "\${state#ActiveState=active MainPID=}" != "$state" ] && [ "$state" != "ActiveState=active MainPID=$pid " ]
do sleep 0.05; done
echo $(( ($(date +%s%N) - began) / 1000000 ))`;

export async function checkFaults({ machine, site, report }: Bench): Promise<void> {
  await report.step(
    'the service starts with a key that lies encrypted (LoadCredentialEncrypted)',
    async () => {
      await machine.run(`
      mkdir -p -m 700 /etc/credstore.encrypted /etc/systemd/system/gatehouse.service.d
      sed -n '/BEGIN CERT/,$p' /var/lib/gatehouse/pki/server.pem >/etc/gatehouse/https.pem
      chmod 644 /etc/gatehouse/https.pem
      sed '/BEGIN CERT/,$d' /var/lib/gatehouse/pki/server.pem |
        systemd-creds encrypt --name=https.key - /etc/credstore.encrypted/https.key
      cat >/etc/systemd/system/gatehouse.service.d/credential.conf <<'END'
[Service]
LoadCredentialEncrypted=https.key:/etc/credstore.encrypted/https.key
END
      sed -i 's|^http:|&\\n  certFile: /etc/gatehouse/https.pem\\n  keyFile: /run/credentials/gatehouse.service/https.key|' /etc/gatehouse/gatehouse.yaml
      systemctl daemon-reload
      systemctl restart gatehouse
      gatehouse config check`);
      match(await machine.run('gatehouse doctor || true'), /✓ +certificate own/);
      const { status } = await site.call('GET', '/access/doors');
      equal(status, 200);
    },
  );
  await report.step('kill -9: systemd starts it again', async () => {
    const milliseconds = Number(await machine.run(`${BEGIN}; kill -9 $pid\n${UNTIL_READY}`));
    report.note(`${(milliseconds / 1_000).toFixed(1)} s to READY`);
    ok(milliseconds > 0);
    await site.connected();
  });
  await report.step('a hang: the watchdog ends it, and systemd starts it again', async () => {
    const milliseconds = Number(await machine.run(`${BEGIN}; kill -STOP $pid\n${UNTIL_READY}`));
    report.note(`${(milliseconds / 1_000).toFixed(1)} s to READY`);
    match(await machine.run('systemctl show -P NRestarts gatehouse'), /^2$/m);
    await site.connected();
  });
}
