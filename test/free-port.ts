/** Ports for servers that are killed and started again, and for what takes none that the kernel chooses. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those from which the kernel takes one for each outgoing connection (ip_local_port_range: 32768 and up). Such a connection, of any
 * other test, keeps a server from its port while that is down; and a client that tries the port of a server that is down can get
 * itself for a peer.
 */
const FIRST = 20_000;
/** Of each worker: a server that is down for a moment keeps its port from the tests beside it. */
const EACH = 2_000;
const WORKERS = 6;
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS) * EACH;
const given = new Set<number>();

/** Of 127.0.0.1, and each another one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, first + EACH);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue;
    }
    await once(server.close(), 'close');
    return port;
  }
}
