/** The ways between servers of a cluster, through gates that can be shut: then the servers run, and lose each other. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Routes extends AsyncDisposable {
  /** Of the configuration of a server: where it finds the others. */
  of(server: number): string;
  /** Its connections to the others end, and none is made. */
  part(server: number): void;
  join(): void;
}

/** They cannot be parted. `ports`: of each server, where it waits for the others. */
export function openDirectRoutes(ports: readonly number[]): Routes {
  const refuse = () => {
    throw new Error('these servers cannot be parted: open them with canPart');
  };
  const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(', ');
  return {
    of: () => `routes: [${routes}]`,
    part: refuse,
    join: refuse,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

export async function openRoutes(ports: readonly number[]): Promise<Routes> {
  const parted = new Set<number>();
  const pairs = ports.flatMap((port, to) =>
    ports.flatMap((_, from) => (from === to ? [] : [{ from, to, port }])),
  );
  const gates = await Promise.all(
    pairs.map(async ({ from, to, port }) => {
      const gate = await openGate(port, () => parted.has(from) || parted.has(to));
      return { from, to, ...gate };
    }),
  );
  return {
    of(server) {
      const own = gates.filter(({ from }) => from === server);
      const routes = own.map(({ port }) => `nats-route://127.0.0.1:${port}`).join(', ');
      // Nothing is there: else they would pass on to each other where they are, without the gates.
      return `advertise: "127.0.0.1:1", routes: [${routes}]`;
    },
    part(server) {
      parted.add(server);
      for (const { from, to, cut } of gates) if (from === server || to === server) cut();
    },
    join: () => parted.clear(),
    async [Symbol.asyncDispose]() {
      await Promise.all(gates.map(({ close }) => close()));
    },
  };
}

async function openGate(to: number, isShut: () => boolean) {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    if (isShut()) return void near.destroy();
    const far = connect(to, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      one.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    async close() {
      cut();
      await once(server.close(), 'close');
    },
  };
}
