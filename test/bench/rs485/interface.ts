/** Relays closed through the interface: the whole daemon, with its commit, audit and host. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRandom } from '../../simulators/bus/random.ts';
import { monotonicMs } from '../../simulators/bus/time.ts';
import { openTestSite, type TestSite } from '../../simulators/test-site.ts';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { closingsOf, delays, type Issued } from './relays.ts';
import { FORMAT, openBenchBus, unitsTo, wireTimes } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
const ORDERS = 300;
const RELAY = 2;
const PULSE_MS = 100;
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
const SETTLE_MS = 3_000;

export async function benchBusInterface(): Promise<BenchTable> {
  await using bus = await openBenchBus(BAUD_RATE, UNITS);
  const devices = UNITS.map((unitId) => ({ unitId }));
  const options = { ...FORMAT, port: bus.port, baudRate: BAUD_RATE, pollEveryMs: 0, devices };
  await using site = await openTestSite({
    config: { http: { plain: true } },
    more: { links: [{ id: 'floor', protocol: 'modbus', options }] },
  });
  const ids = await prepare(site);
  await sleep(SETTLE_MS);
  const times = wireTimes(BAUD_RATE);
  const { issued, answeredMs } = await fireAll(site, ids, 1.5 * (times.poll + times.pulseAnswered));
  const closedMs = delays(await closingsOf(bus, issued));
  const figure = (samples: readonly number[]): Row['figure'] =>
    `p50 ${quantile(samples, 0.5).toFixed(1)} ms, p99 ${quantile(samples, 0.99).toFixed(1)} ms`;
  return {
    title: `RS-485 at ${BAUD_RATE} baud, ten controllers: POST …/pulse to the daemon`,
    rows: [
      { what: 'request → relay closed', figure: figure(closedMs) },
      { what: 'request → answer, relay read back', figure: figure(answeredMs) },
    ],
    notes: [`${ORDERS} requests over a kept connection; each is committed before it is carried out.`],
  };
}

/** The ids of the devices by unit, once their settings are in force. */
async function prepare({ daemon, tokens }: TestSite): Promise<ReadonlyMap<number, string>> {
  const token = tokens['service-tool'];
  const list = async () => {
    const { body } = await daemon.call('GET', '/network/rs485', token);
    return (body as { items: { deviceId: string; hwId: string; settingsVersion: number }[] }).items;
  };
  await until(async () => (await list()).length === UNITS.length);
  const ids = new Map<number, string>();
  for (const { deviceId, hwId } of await list()) {
    const wanted = { relayIndex: RELAY, unlockDurationMilliseconds: PULSE_MS };
    const { status } = await daemon.call('PUT', `/network/rs485/${deviceId}`, token, wanted);
    if (status !== 200) throw new Error(`a device was answered ${status}`);
    ids.set(Number(hwId.slice(-4)), deviceId);
  }
  await until(async () => {
    const { body } = await daemon.call('GET', '/network/rs485', token);
    const { items } = body as { items: { reportedSettingsVersion: number; settingsVersion: number }[] };
    return items.every(
      ({ reportedSettingsVersion, settingsVersion }) => reportedSettingsVersion === settingsVersion,
    );
  });
  return ids;
}

async function until(fits: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await fits())) {
    if (performance.now() > deadline) throw new Error('the devices did not take their settings');
    await sleep(POLL_MS);
  }
}

async function fireAll(
  { daemon, tokens }: TestSite,
  ids: ReadonlyMap<number, string>,
  spacingMs: number,
): Promise<{ issued: Issued[]; answeredMs: number[] }> {
  const agent = new Agent({ keepAlive: true });
  const random = openRandom(1);
  const issued: Issued[] = [];
  const answers: Promise<number>[] = [];
  for (let id = 0; id < ORDERS; id += 1) {
    await sleep(spacingMs * (1 + random()));
    const unit = UNITS[id % UNITS.length] ?? 0;
    const issuedAt = monotonicMs();
    issued.push({ id, unit, relay: RELAY, issuedAt });
    const url = `${daemon.baseUrl}/network/rs485/${ids.get(unit)}/pulse`;
    answers.push(post(agent, url, tokens['service-tool']).then(() => monotonicMs() - issuedAt));
  }
  const answeredMs = await Promise.all(answers);
  agent.destroy();
  return { issued, answeredMs };
}

function post(agent: Agent, url: string, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(url, { agent, method: 'POST', headers }, (response) => {
      response.resume().on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`a pulse was answered ${response.statusCode}`));
      });
    });
    sent.on('error', reject).end();
  });
}
