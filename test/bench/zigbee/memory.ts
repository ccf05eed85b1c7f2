/** The memory of the process that has a gateway with a hundred locks, which are used meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openSimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import { residentMegabytes } from '../desk.ts';
import type { BenchTable, Row } from '../table.ts';
import { macsOf, openBenchSite, planOf } from './site.ts';
import { installPeer, openPeer, PEER } from './zigbee2mqtt.ts';

const LOCKS = 100;
const TARGET_MB = 110;
const ROUNDS = 3;
const SPACING_MS = 40;

interface Measured {
  most: number;
  now: number;
}

export async function benchZigbeeMemory({ cache }: { cache: string }): Promise<BenchTable> {
  const ours = await oursAtWork();
  return {
    title: `Zigbee: a gateway with ${LOCKS} locks, each unlocked and locked ${ROUNDS} times`,
    rows: [
      {
        what: 'resident memory of its host',
        figure: figureOf(ours),
        target: `≤ ${TARGET_MB} MB`,
        met: ours.most <= TARGET_MB,
      },
      await peerRow(cache),
    ],
    notes: [`${PEER} does in one process what ours does in two, without HTTP, doors, roles and an audit.`],
  };
}

async function oursAtWork(): Promise<Measured> {
  await using site = await openBenchSite([planOf(0, LOCKS)]);
  const [gateway] = site.gateways;
  if (!gateway) throw new Error('there is no gateway');
  const lock = (mac: string) => gateway.simulated.set(mac, { manual: 'lock' });
  return await atWork(gateway.hostPid(), gateway.locks, site.unlock, lock);
}

async function peerRow(cache: string): Promise<Row> {
  const installed = installPeer(cache);
  if ('missing' in installed) return { what: PEER, figure: `not measured: ${installed.missing}`, met: false };
  await using simulated = await openSimulatedGateway(planOf(0, LOCKS));
  await using peer = await openPeer(installed, simulated);
  const macs = macsOf(0, LOCKS);
  await peer.join(simulated, macs);
  const lock = (mac: string) => simulated.set(mac, { manual: 'lock' });
  return { what: `${PEER}, resident`, figure: figureOf(await atWork(peer.pid, macs, peer.unlock, lock)) };
}

async function atWork(
  pid: number,
  macs: readonly string[],
  unlock: (mac: string) => Promise<void>,
  lock: (mac: string) => Promise<unknown>,
): Promise<Measured> {
  let most = 0;
  for (let round = 0; round < ROUNDS; round += 1)
    for (const mac of macs) {
      await lock(mac);
      await sleep(SPACING_MS);
      await unlock(mac);
      most = Math.max(most, residentMegabytes(pid));
    }
  return { most, now: residentMegabytes(pid) };
}

function figureOf({ most, now }: Measured): string {
  return `${most} MB at most, ${now} MB at the end`;
}
