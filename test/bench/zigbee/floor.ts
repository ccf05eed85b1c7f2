/** The least that an unlock takes (floor-server.ts), on a coordinator whose locks a gateway has let in and configured. */
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { openChild } from '../../simulators/child.ts';
import type { SimulatedGateway } from '../../simulators/zigbee/gateway.ts';

const SERVER = join(import.meta.dirname, 'floor-server.ts');

export interface Floor extends AsyncDisposable {
  unlock(mac: string): Promise<void>;
}

export async function openFloor(simulated: SimulatedGateway, macs: readonly string[]): Promise<Floor> {
  await using stack = new AsyncDisposableStack();
  const addresses = new Map<string, number>();
  for (const mac of macs) addresses.set(mac, (await simulated.state(mac)).nwk);
  const child = stack.use(openChild<{ port: number; cert: string }>({ args: [SERVER, simulated.port] }));
  const { port, cert } = await child.waitFor(() => true);
  const agent = new Agent({ keepAlive: true, ca: cert });
  stack.defer(() => agent.destroy());
  const opened = stack.move();
  return {
    unlock: (mac) =>
      new Promise((resolve, reject) => {
        const url = `https://127.0.0.1:${port}/${addresses.get(mac)}`;
        const sent = request(url, { agent, method: 'POST' }, (response) => {
          response.resume().on('error', reject).on('end', resolve);
        });
        sent.on('error', reject).end();
      }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
