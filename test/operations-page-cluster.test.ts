/** docs/operations.md, A standby that takes over: the configuration of its three NATS servers, and of a gateway on them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openVault } from '../src/platform/vault.ts';
import { until } from './bench/zigbee/waiting.ts';
import { opensslIsMissing, openTestAuthority } from './drivers/encoder/certificates.ts';
import { freePorts } from './nats-cluster.ts';
import { blockWith } from './operations-page.ts';
import { NATS_SERVER, natsMissing } from './services/events/nats.ts';
import { temporaryFolder } from './temporary.ts';

const PROGRAM = join(import.meta.dirname, '../src/start.js');
const SERVERS = ['nats-1', 'nats-2', 'nats-3'];

it.skipIf(natsMissing || opensslIsMissing)(
  'three servers of the page work together, and a gateway of the page finds them',
  { timeout: 90_000 },
  async () => {
    const folder = temporaryFolder();
    using authority = openTestAuthority();
    const { certFile, keyFile } = authority.peer();
    const [clients, routes] = (await freePorts(2)) as [number[], number[]];
    /** Of the machines of the page: ports of this one. */
    const here = (text: string) =>
      SERVERS.reduce(
        (done, name, index) =>
          done
            .replaceAll(`${name}.example:6222`, `127.0.0.1:${routes[index]}`)
            .replaceAll(`${name}.example:4222`, `127.0.0.1:${clients[index]}`),
        text
          .replaceAll('/etc/nats/server.pem', certFile)
          .replaceAll('/etc/nats/server.key', keyFile)
          .replaceAll(/\/etc\/(nats\/ca|gatehouse\/cluster-ca)\.pem/g, authority.rootFile),
      );
    const written = here(blockWith('jetstream {'));
    const servers = SERVERS.map((name, index): ChildProcess => {
      const file = join(folder, `${name}.conf`);
      const own = written
        .replace('server_name: nats-1', `server_name: ${name}`)
        .replace('0.0.0.0:4222', `127.0.0.1:${clients[index]}`)
        .replace('0.0.0.0:6222', `127.0.0.1:${routes[index]}`)
        .replace('/var/lib/nats', join(folder, name));
      writeFileSync(file, own);
      return spawn(NATS_SERVER, ['-c', file], { stdio: 'ignore' });
    });
    onTestFinished(async () => {
      for (const server of servers) {
        const exited = once(server, 'exit');
        if (server.kill('SIGKILL')) await exited;
      }
    });
    mkdirSync(join(folder, 'data', 'keys'), { recursive: true });
    chmodSync(join(folder, 'data', 'keys'), 0o700);
    openVault(join(folder, 'data', 'keys', 'vault.key'));
    const config = join(folder, 'gatehouse.yaml');
    writeFileSync(config, `dataDirectory: data\n${here(blockWith('name: lobby-a'))}\n`);
    const status = () => {
      const argv = [PROGRAM, 'cluster', 'status', '--config', config];
      const { stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
      return `${stdout}${stderr}`;
    };
    await until('the servers have a leader', 60_000, 250, async () =>
      status().includes('no gateway is active'),
    );
    expect(status()).toContain('no gateway follows');
  },
);
