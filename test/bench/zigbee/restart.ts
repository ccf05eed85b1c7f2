/** From the start of a process to the first lock that obeys it, over a pty; and from a lost connection to the same. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSimulatedGateway, type SimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { ratioRow } from './peer-rows.ts';
import { macsOf, openBenchSite, planOf } from './site.ts';
import { installPeer, openPeer, PEER } from './zigbee2mqtt.ts';

/** Each is opened once, after a start of its own. */
const LOCKS = 5;
const TARGET_RATIO = 0.5;
const DROPS = 15;
const DROP_TARGET_MS = 1_500;
/** Between two attempts of a client that wants a door open. */
const AGAIN_MS = 10;
/** A command over MQTT that no one was there to hear is sent again after so long. */
const HEARD_MS = 30;
const TIMEOUT_MS = 60_000;
/** Of a link that has just come back, so that every loss is one of a link that has been up. */
const SETTLE_MS = 1_000;

interface Contender {
  simulated: SimulatedGateway;
  stop(): Promise<void>;
  start(): Promise<void>;
  unlock(mac: string): Promise<void>;
}

export const benchRestart = (options: { cache: string }) => restarts(options, 'zstack');
export const benchRestartEmber = (options: { cache: string }) => restarts(options, 'ember');

async function restarts(
  { cache }: { cache: string },
  adapter: SimulatedGateway['adapter'],
): Promise<BenchTable> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-zigbee-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const plan = (name: string) => planOf(0, LOCKS, { adapter, transport: 'pty', link: join(folder, name) });
  const site = stack.use(await openBenchSite([plan('ours')]));
  const [gateway] = site.gateways;
  if (!gateway) throw new Error('there is no gateway');
  const { simulated } = gateway;
  // Anyone who waits at the door does not ask first whether it is ready.
  const start = async () => site.site.daemon.launch();
  const ours: Contender = { simulated, unlock: site.unlock, stop: site.stop, start };
  const installed = installPeer(cache);
  let theirs: Contender | undefined;
  if ('entry' in installed) {
    const stick = stack.use(await openSimulatedGateway(plan('theirs')));
    const peer = stack.use(await openPeer(installed, stick));
    await peer.join(stick, macsOf(0, LOCKS));
    // It says that it is online before it listens.
    const unlock = (lock: string) => peer.unlock(lock, HEARD_MS);
    theirs = { simulated: stick, unlock, stop: peer.stop, start: peer.start };
  }
  const [ourStarts, theirStarts]: [number[], number[]] = [[], []];
  // Each time another one: what an earlier process may have sent to a lock within five minutes, the gateway has to rule out first.
  for (const mac of macsOf(0, LOCKS)) {
    ourStarts.push(await restart(ours, mac));
    if (theirs) theirStarts.push(await restart(theirs, mac));
  }
  return {
    title: `Zigbee: back after a restart in order, over a pty, ${adapter}`,
    rows: [
      { what: 'process start → first unlock confirmed', figure: figureOf(ourStarts) },
      theirs
        ? { what: `${PEER}: process start → first lock state published`, figure: figureOf(theirStarts) }
        : { what: PEER, figure: `not measured: ${'missing' in installed && installed.missing}`, met: false },
      ratioRow({
        what: `ours / ${PEER}, median`,
        ours: quantile(ourStarts, 0.5),
        target: TARGET_RATIO,
        ...(theirs && { theirs: quantile(theirStarts, 0.5) }),
      }),
    ],
    notes: [`Anyone who waits asks again every ${AGAIN_MS} ms until a lock has obeyed.`],
  };
}

export async function benchDrop(): Promise<BenchTable> {
  const [mac = ''] = macsOf(0, LOCKS);
  await using site = await openBenchSite([planOf(0, LOCKS)]);
  const [gateway] = site.gateways;
  if (!gateway) throw new Error('there is no gateway');
  const { simulated } = gateway;
  const drops: number[] = [];
  for (let count = 0; count < DROPS; count += 1) {
    await simulated.set(mac, { manual: 'lock' });
    await sleep(SETTLE_MS);
    await simulated.drop();
    const lostAt = performance.now();
    await untilUnlocked(site.unlock, mac);
    drops.push(performance.now() - lostAt);
  }
  const longest = Math.max(...drops);
  const row: Row = {
    what: `connection dropped → first unlock confirmed, ${DROPS} times`,
    figure: figureOf(drops),
    target: `≤ ${DROP_TARGET_MS / 1_000} s`,
    met: longest <= DROP_TARGET_MS,
  };
  return { title: 'Zigbee: a coordinator over TCP that hangs up', rows: [row] };
}

async function restart({ simulated, stop, start, unlock }: Contender, mac: string): Promise<number> {
  await simulated.set(mac, { manual: 'lock' });
  await sleep(SETTLE_MS);
  await stop();
  const begun = performance.now();
  await start();
  await untilUnlocked(unlock, mac);
  return performance.now() - begun;
}

/** One that fails is tried again. */
async function untilUnlocked(unlock: (mac: string) => Promise<void>, mac: string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    const failure = await unlock(mac).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined) return;
    if (performance.now() > deadline) throw failure;
    await sleep(AGAIN_MS);
  }
}

function figureOf(samples: readonly number[]): string {
  return `median ${quantile(samples, 0.5).toFixed(0)} ms, longest ${Math.max(...samples).toFixed(0)} ms`;
}
