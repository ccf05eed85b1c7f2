/** Three nats-servers with JetStream on 127.0.0.1, any of which may be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './bench/zigbee/waiting.ts';
import { freePort } from './free-port.ts';
import { openDirectRoutes, openRoutes } from './nats-routes.ts';
import { NATS_SERVER } from './services/events/nats.ts';

const SERVERS = [0, 1, 2];
/** A leader is elected within 9 s. */
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 50;

export interface NatsCluster extends AsyncDisposable {
  /** Of each server, for clients. */
  readonly urls: readonly string[];
  /** Of each server: free ports that nothing of NATS uses by itself. */
  readonly ports: readonly number[];
  /** With -9. */
  kill(server: number): Promise<void>;
  /** With what it has on its disk; resolves when the servers that run have a leader. */
  start(...servers: number[]): Promise<void>;
  /** It runs, and neither it nor the others reach each other. */
  part(server: number): void;
  /** Resolves when the servers that run have found each other again. */
  join(): Promise<void>;
  /** Resolves when all that run have read their configuration again. */
  reload(): Promise<void>;
}

interface Server {
  file: string;
  monitor: number;
  process: ChildProcess | undefined;
}

/** `further`: lines of the configuration of the server with that port, relative paths being relative to the folder. */
export async function openNatsCluster(
  folder: string,
  further: (port: number) => string = () => '',
  { canPart = false } = {},
): Promise<NatsCluster> {
  const [clients, routes, monitors, ports] = (await freePorts(4)) as [number[], number[], number[], number[]];
  const ways = canPart ? await openRoutes(routes) : openDirectRoutes(routes);
  const servers = SERVERS.map((server): Server => {
    const file = join(folder, `nats-${server}.conf`);
    const lines = [
      `server_name: nats-${server}`,
      `listen: "127.0.0.1:${clients[server]}"`,
      `http: "127.0.0.1:${monitors[server]}"`,
      `jetstream { store_dir: "${join(folder, `nats-${server}`)}" }`,
      `cluster { name: site, listen: "127.0.0.1:${routes[server]}", ${ways.of(server)} }`,
      further(ports[server] ?? 0),
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return { file, monitor: monitors[server] ?? 0, process: undefined };
  });
  const running = () => servers.filter(({ process }) => isRunning(process));
  const begin = (server: Server) => {
    server.process = spawn(NATS_SERVER, ['-c', server.file], { stdio: 'ignore' });
  };
  const hasLeader = () =>
    until('the servers have a leader', PATIENCE_MS, LOOK_EVERY_MS, async () => {
      const all = running();
      const seen = await Promise.all(all.map((server) => monitored(server, 'jsz')));
      const routes = await Promise.all(all.map((server) => monitored(server, 'routez')));
      return (
        seen.every(({ meta_cluster: meta }) => meta?.leader && meta.cluster_size === SERVERS.length) &&
        routes.every(({ num_routes: found }) => (found ?? 0) >= all.length - 1)
      );
    });

  for (const server of servers) begin(server);
  await hasLeader();
  return {
    urls: clients.map((port) => `nats://127.0.0.1:${port}`),
    ports,
    kill: (server) => end(servers[server]),
    async start(...wanted) {
      for (const server of wanted) begin(servers[server] as Server);
      await hasLeader();
    },
    part: ways.part,
    async join() {
      ways.join();
      await hasLeader();
    },
    async reload() {
      await Promise.all(running().map(reloaded));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(end));
      await ways[Symbol.asyncDispose]();
    },
  };
}

const isRunning = (one: ChildProcess | undefined): one is ChildProcess =>
  one !== undefined && one.exitCode === null && one.signalCode === null;

async function end(server: Server | undefined): Promise<void> {
  if (!server || !isRunning(server.process)) return;
  const exited = once(server.process, 'exit');
  server.process.kill('SIGKILL');
  await exited;
}

async function reloaded(server: Server): Promise<void> {
  const { config_load_time: before } = await monitored(server, 'varz');
  server.process?.kill('SIGHUP');
  await until('a configuration is read again', PATIENCE_MS, LOOK_EVERY_MS, async () => {
    const { config_load_time: now } = await monitored(server, 'varz');
    return now !== undefined && now !== before;
  });
}

interface Monitored {
  config_load_time?: string;
  num_routes?: number;
  meta_cluster?: { leader?: string; cluster_size?: number };
}

/** Empty while it does not answer. */
async function monitored({ monitor }: Server, what: 'varz' | 'jsz' | 'routez'): Promise<Monitored> {
  const answer = await fetch(`http://127.0.0.1:${monitor}/${what}`).catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as Monitored) : {};
}

/** So many for each server. */
export function freePorts(each: number): Promise<number[][]> {
  return Promise.all(Array.from({ length: each }, () => Promise.all(SERVERS.map(freePort))));
}
