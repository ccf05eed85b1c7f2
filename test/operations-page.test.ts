/**
 * docs/operations.md: its commands, executed as far as no Debian machine, stick or device is needed. A shell block that is
 * not executed is in WITHOUT with the reason, so that a new one cannot be added without either.
 */
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { parseConfig } from '../src/platform/config/config-file.ts';
import { keyPairIn } from '../src/platform/key-pair.ts';
import { openTestGateway } from './gateway.ts';
import { blockWith, page } from './operations-page.ts';
import { LOBBY, openRs485Site } from './rs485-site.ts';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 120_000 });

const ROOT = join(import.meta.dirname, '..');
const START = join(ROOT, 'src/start.js');

/** What the tests below and their neighbours execute, by a part of each block. */
const EXECUTED = {
  'CN=Trial vendor': 'the root of the encoder in step 8',
  'CN=gatehouse.hotel.example': 'a certificate without an authority',
  'certFile: /etc/gatehouse/https.pem': "the site's own certificate",
  'privkey.pem /etc/gatehouse': "the site's own certificate, up to the restart",
  'names: [gatehouse.hotel.example]': 'operations-page-service.test.ts',
  'pki/root.crt /tmp': 'the mode of the copy',
  'SERVICE_TOKEN=$(': 'steps 7 to 10',
  'cat >site.json': 'steps 7 to 10',
  'trial-encoder/encoder.sh': 'steps 7 to 10',
  'encoder/desk-1/write-request/first \\': 'steps 7 to 10',
  'encoder/desk-1/write-request/first': 'steps 7 to 10',
  'id: bus-1': 'operations-page-service.test.ts',
  'call() {': 'steps 7 to 10',
  'gatehouse audit export --out audit.jsonl': 'verified and exported',
  'gatehouse backup key --out': 'a backup, and a restore onto a blank machine',
  'recipients: [$PUBLIC_KEY]': 'a backup, and a restore onto a blank machine',
  '/media/stick/\n': 'a backup, and a restore onto a blank machine',
  'backup --to /media/stick': 'a backup, and a restore onto a blank machine',
  'rm backup-key.txt': 'a backup, and a restore onto a blank machine',
  'install -d -m 700 -o gatehouse': 'a backup, and a restore onto a blank machine',
  'sudo gatehouse doors add':
    'operations-page-field.test.ts, from its fourth line on; operations-page-service.test.ts has the two before',
  'bus scan bus-1 --detect': 'operations-page-field.test.ts',
  'bus trace bus-1': 'operations-page-field.test.ts',
  'osdp set': 'operations-page-field.test.ts',
  '/replace -d': 'operations-page-field.test.ts',
  'bus check-profile': 'operations-page-field.test.ts',
  '--unix-socket': 'operations-page-field.test.ts; promtool reads its second part',
  'sudo gatehouse setup\n': 'operations-page-service.test.ts',
  'systemctl start gatehouse\nsudo gatehouse doctor': 'operations-page-service.test.ts',
  'enable --now': 'operations-page-service.test.ts',
  'config check && sudo systemctl reload': 'operations-page-service.test.ts, also with the first bus',
  'rs485: { rtsOnSend': 'read by the program',
  'tcp-listen://0.0.0.0': 'read by the program',
  'product: Acme A62': 'read by the program',
  'crlfile /etc/mosquitto': 'operations-page-broker.test.ts',
  'enable --now encoders-crl.path': 'operations-page-broker.test.ts',
  'nats-ca.key': 'operations-page-cluster.test.ts',
  'NAME=': 'operations-page-cluster.test.ts',
  'cluster promote\n': 'operations-page-cluster.test.ts',
  'cluster status\n': 'operations-page-cluster.test.ts',
  'cluster promote --force\n':
    'operations-page-cluster.test.ts, without NATS; src/services/cluster/lease.test.ts, with it',
  'config check && sudo systemctl restart gatehouse\n': 'operations-page-cluster.test.ts',
  'bus doctor bus-1': 'operations-page-devices.test.ts',
  'osdp firmware': 'operations-page-devices.test.ts',
  'bus watchdog-test': 'operations-page-devices.test.ts',
  '--rawfile cert': 'operations-page-devices.test.ts',
  '/permit-join': 'operations-page-devices.test.ts',
  'zgate restore': 'operations-page-devices.test.ts',
} as const;

/** By a part of each block: what `npm run test:install` alone does, by commands of its own, on Debian with systemd as the first process. */
const BY_TEST_INSTALL = {
  'apt-get install ./gatehouse_0.1.0': 'needs apt and the root of a machine',
  'update.pub': 'needs an installed package',
  'gatehouse update /media': 'needs an installed package and systemd',
  'gatehouse update rollback': 'needs an installed package and systemd',
  'ls -l /dev/serial/by-id/ ': 'needs a USB adapter, which `-- --qemu` has',
  'systemd-creds encrypt': 'needs systemd',
  'LoadCredentialEncrypted=': 'part of a unit',
} as const;

/** By a part of each block. */
const WITHOUT = {
  'mosquitto_dynamic_security.so':
    'configuration of another program; test/drivers/encoder/mosquitto.ts starts it with settings of its own like these',
  verify_and_map: 'configuration of another program; test/drivers/encoder/nats.ts starts three with these',
  allowed_connection_types:
    'configuration of another program; test/drivers/encoder/nats.ts starts three with these',
  'apt-get install ./gatehouse_0.2.0': 'needs apt and the root of a machine',
  'apt-get install --allow-downgrades': 'needs apt and the root of a machine',
  'gatehouse-https.socket': 'needs systemd; test/service.test.ts has the unit',
  'strict.conf': 'needs systemd; test/service.test.ts has the unit',
  'DeviceAllow=': 'part of a unit',
  'npm run package': 'needs a minute, and npm; scripts/package.test.ts runs what it runs',
  'podman run':
    'needs podman; scripts/package.test.ts runs the image, with its health check, by what util-linux has',
} as const;

describe('docs/operations.md', () => {
  it('has no block that is neither executed nor excused, and no excuse without a block', () => {
    const known = [EXECUTED, BY_TEST_INSTALL, WITHOUT].flatMap((list) => Object.keys(list));
    expect(page.filter((block) => !known.some((part) => `${block}\n`.includes(part)))).toEqual([]);
    expect(known.filter((part) => !page.some((block) => `${block}\n`.includes(part)))).toEqual([]);
  });

  it('has a configuration that the program takes, with its first bus', () => {
    const yaml = (block: string) => /<<'YAML'\n(.*?)^YAML$/ms.exec(block)?.[1] ?? '';
    const text = yaml(blockWith('names: [gatehouse.hotel.example]')) + yaml(blockWith('id: bus-1'));
    const config = parseConfig(text, '/etc/gatehouse/gatehouse.yaml');
    expect(config.http.names).toEqual(['gatehouse.hotel.example']);
    expect(config.links.map(({ id }) => id)).toEqual(['bus-1']);
  });

  it('has settings of a port and a DCON module that the program takes', () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'a62.yaml'), blockWith('product: Acme A62'));
    const [line, dialIn] = [blockWith('rtsOnSend'), blockWith('tcp-listen:')];
    const link = (id: string, options: string) =>
      `  - id: ${id}\n    protocol: dcon\n    options:\n${options.replaceAll(/^/gm, '      ')}\n`;
    const text = `links:\n${link('bus-1', `port: /dev/ttyS1\nmoduleTypes: [${folder}/a62.yaml]\n${line}`)}${link('bus-2', dialIn)}`;
    const { links } = parseConfig(text, join(folder, 'gatehouse.yaml'));
    expect(links.map(({ options }) => options)).toMatchObject([
      { rs485: { rtsOnSend: true } },
      { port: 'tcp-listen://0.0.0.0:4001', allowedPeer: '10.0.0.7' },
    ]);
  });

  it.skipIf(spawnSync('promtool', ['--version']).status !== 0)('has what Prometheus takes', () => {
    const folder = temporaryFolder();
    for (const file of ['gatehouse-root.crt', 'gatehouse.token']) writeFileSync(join(folder, file), '');
    const [, job = ''] = blockWith('--unix-socket').split('# prometheus.yml\n');
    writeFileSync(join(folder, 'prometheus.yml'), `scrape_configs:\n${job}\n`);
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', 'prometheus.yml'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect([status, stderr], stdout).toEqual([0, '']);
    expect(stdout).toContain('prometheus.yml is valid');
  });

  it.skipIf(spawnSync('openssl', ['version']).status !== 0)(
    'makes a certificate that is taken, where openssl by itself makes one that is not',
    () => {
      const cwd = temporaryFolder();
      const made = (script: string) => {
        const { status, stderr } = spawnSync('sh', ['-euc', script], { cwd, encoding: 'utf8' });
        expect(status, stderr).toBe(0);
        const [certificate = '', key = ''] = ['fullchain.pem', 'privkey.pem'].map((file) =>
          readFileSync(join(cwd, file), 'utf8'),
        );
        return keyPairIn(certificate, key);
      };
      const script = blockWith('CN=gatehouse.hotel.example');
      expect(made(script)).toBeDefined();
      const alone = script.replace(/ \\\n[^\n]*basicConstraints[\s\S]*$/, '');
      expect(alone).not.toBe(script);
      expect(() => made(alone)).toThrow("begins with an authority's");
    },
  );
});

it.skipIf(spawnSync('openssl', ['version']).status !== 0)(
  "puts the site's own certificate in place, and is content with it, as the page says",
  async () => {
    const folder = temporaryFolder();
    const [install = '', installKey = '', checkAndRestart = ''] = blockWith('privkey.pem /etc').split('\n');
    const inFolder = (text: string) =>
      text.replaceAll('-g gatehouse ', '').replaceAll('/etc/gatehouse', folder);
    const configuration = `dataDirectory: data\n${inFolder(blockWith('certFile: /etc/gatehouse/https.pem'))}\n  names: [gatehouse.hotel.example]\n`;
    writeFileSync(join(folder, 'gatehouse.yaml'), configuration);
    const gatehouse = `GATEHOUSE_CONFIG="${folder}/gatehouse.yaml" "${process.execPath}" "${START}" "$@"`;
    const script = [
      'sudo() { "$@"; }',
      'systemctl() { echo "systemctl $*"; }',
      `gatehouse() { ${gatehouse}; }`,
      blockWith('CN=gatehouse.hotel.example'),
      ...[install, installKey, checkAndRestart].map(inFolder),
    ];
    const { stdout } = await promisify(execFile)('bash', ['-euc', script.join('\n')], { cwd: folder });
    expect(stdout).toMatch(/is valid.*systemctl restart gatehouse/s);
    expect(statSync(join(folder, 'https.key')).mode & 0o777).toBe(0o640);
  },
);

it('exports and verifies the audit as the page says', async () => {
  const gateway = await openTestGateway();
  const script = [
    'sudo() { "$@"; }',
    `gatehouse() { "${process.execPath}" "${START}" "$@" --socket "${gateway.gateway.adminSocket}"; }`,
    blockWith('gatehouse audit export --out audit.jsonl'),
    'gatehouse audit verify --checkpoint audit.jsonl',
  ];
  const { stdout } = await promisify(execFile)('bash', ['-euc', script.join('\n')], { cwd: gateway.folder });
  expect(stdout).toMatch(
    /The audit is intact: \d+ entries\.\n.*intact: \d+ entries, as the checkpoint says\./s,
  );
});

it('makes a key and a backup, restores it, and brings it onto a blank machine, as the page says', async () => {
  const { gateway, folder, dataDirectory, configFile, close } = await openTestGateway();
  const stick = join(folder, 'stick');
  mkdirSync(stick);
  const blank = temporaryFolder();
  const archive = () => join(stick, readdirSync(stick)[0] ?? '');
  const execute = (configuration: string, ...blocks: string[]) => {
    const script = [
      'sudo() { "$@"; }',
      'systemctl() { :; }',
      `gatehouse() { GATEHOUSE_CONFIG="${configuration}" "${process.execPath}" "${START}" "$@"; }`,
      ...blocks,
    ]
      .join('\n')
      .replaceAll('/media/stick/gatehouse-20270101T032000Z.age', archive())
      .replaceAll('/media/stick', stick)
      .replaceAll('/etc/gatehouse/gatehouse.yaml', configuration)
      .replaceAll('-o gatehouse -g gatehouse /var/lib/gatehouse', join(blank, 'data'))
      .replaceAll('/var/lib/gatehouse', dataDirectory)
      .replaceAll(/gatehouse restore .*/g, '$& --yes');
    return promisify(execFile)('bash', ['-euc', script], { cwd: folder });
  };
  const [make = '', verify = ''] = blockWith('backup --to /media/stick').split('\n');
  // JSON has no place for a further setting of YAML at its end.
  writeFileSync(configFile, 'dataDirectory: data\nhttp: { listen: "127.0.0.1:0", plain: true }\n');
  await execute(
    configFile,
    blockWith('gatehouse backup key --out'),
    blockWith('recipients: [$PUBLIC_KEY]'),
    make,
  );
  expect(statSync(archive()).mode & 0o777).toBe(0o600);
  await execute(configFile, blockWith('pki/root.key /media/stick/'));
  expect(readdirSync(stick).slice(1)).toEqual(['root.key', 'vault.key']);
  expect((await execute(configFile, verify)).stdout).toMatch(/✓ .* is whole/);
  await close();
  copyFileSync(join(folder, 'backup-key.txt'), join(folder, 'printed'));
  await execute(configFile, blockWith('rm backup-key.txt'));
  copyFileSync(join(folder, 'printed'), join(folder, 'backup-key.txt'));
  const restored = await execute(join(blank, 'gatehouse.yaml'), blockWith('install -d -m 700 -o gatehouse'));
  expect(restored.stdout).toMatch(/is restored\.\nThe configuration is restored: .*gatehouse\.yaml\./);
  const again = await openTestGateway({}, blank);
  expect(again.gateway.systemId).toBe(gateway.systemId);
});

const hasPeers = [
  'openssl version',
  'curl --version',
  'jq --version',
  "/usr/bin/python3 -c 'import paho.mqtt'",
].every((command) => spawnSync('sh', ['-c', command]).status === 0);

it.skipIf(!hasPeers)(
  'steps 7 to 10 of docs/operations.md write a first key and open a first door',
  async () => {
    await using rs485 = await openRs485Site({ lobby: { ...LOBBY, devices: LOBBY.devices.slice(0, 1) } });
    const { site } = rs485;
    const { daemon, directory, factoryFiles } = site;
    const cwd = join(directory, 'page');
    mkdirSync(cwd);
    const replaced = (block: string) =>
      block
        .replaceAll('https://gatehouse.hotel.example:8443', daemon.baseUrl)
        .replaceAll('/tmp/gatehouse-root.crt', join(cwd, 'root.crt'))
        .replaceAll('/var/lib/gatehouse/pki', join(directory, 'data/pki'))
        .replaceAll('/usr/share/gatehouse/trial-encoder', join(ROOT, 'test/independent'))
        // The factory of the site in place of the trial root, which its configuration does not name.
        .replaceAll('$PWD/vendor-root.pem', factoryFiles.caCert)
        .replaceAll('$PWD/vendor-root.key', factoryFiles.caKey)
        // The simulated bus has another device besides, in the cellar.
        .replaceAll('.items[0]', '(.items[] | select(.hwId == "IO-1"))');
    const encoder = replaced(blockWith('trial-encoder/encoder.sh'));
    const firstKey = blockWith(
      '-X PUT https://gatehouse.hotel.example:8443/encoder/desk-1/write-request/first',
    );
    const outcome =
      page.find((block) => block.endsWith('/write-request/first') && !block.includes('-X PUT')) ?? '';
    const script = [
      'PATH=/usr/bin:$PATH',
      'sudo() { "$@"; }',
      `gatehouse() { "${process.execPath}" "${START}" "$@" --socket "${join(directory, 'admin.sock')}"; }`,
      'mkfifo open; exec 3<> open',
      replaced(blockWith('pki/root.crt /tmp')),
      replaced(blockWith('SERVICE_TOKEN=$(')),
      replaced(blockWith('cat >site.json')),
      // A process group of its own: kill ends all of it. What is left of it would hold the output of this script open.
      'set -m',
      `${encoder} <&3 >encoder.log 2>&1 &`,
      "trap 'kill %1' EXIT",
      'until grep -q hello encoder.log; do sleep 0.2; done',
      replaced(firstKey),
      `until ${replaced(outcome)} | jq -e '.status == "written"'; do sleep 0.2; done`,
      // A board is listed once it was read twice.
      `until curl --silent --cacert root.crt -H "Authorization: Bearer $SERVICE_TOKEN" ${daemon.baseUrl}/network/rs485 |`,
      `  jq -e '.items[] | select(.hwId == "IO-1")'; do sleep 0.2; done`,
      replaced(blockWith('call() {')),
    ];
    const { stdout } = await promisify(execFile)('bash', ['-euc', script.join('\n')], { cwd });
    expect(stdout).toContain('"outcome":"confirmed"');
    expect(statSync(join(cwd, 'root.crt')).mode & 0o777).toBe(0o644);
  },
);
