/**
 * Campaigns of delivery: events of a hundred encoders for three kinds of sinks, while the gateway is killed and frozen, its clock
 * jumps, its disk is full, links are cut, slow and half open, services are restarted, and servers of a cluster die and lose each other. `npm run faults -- delivery --seeds 20` runs more of them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { natsMissing } from '../services/events/nats.ts';
import { canMount, type SmallDisk, smallDisk } from '../small-disk.ts';
import { migratedFile, temporaryFolder } from '../temporary.ts';
import { faultsOf } from './delivery/checker.ts';
import { seeded } from './delivery/random.ts';
import type { RecorderMessage, Step } from './delivery/recorder.ts';
import { openBroker, openStream, openWebhook, type Service } from './delivery/services.ts';

const { FAULT_SEEDS = '1', FAULT_STEPS = '60' } = process.env;
const SEEDS = FAULT_SEEDS.split(',').map(Number);
const ENCODERS = 100;
const EVENTS_PER_STEP = 5;
/** Fifty events a second. */
const STEP_MS = 100;
const DAY_MS = 86_400_000;
/** The database of a run, and some. */
const DISK_BYTES = 24 * 1024 * 1024;

type Fault = [name: string, begin: () => Promise<void> | void];

/** The gateway; killed, and started again on its database. */
async function openRecorder(file: string, sinks: object[]) {
  const recorded: Step[] = [];
  let refused = 0;
  let waiting: Record<string, number> = {};
  let child: ChildProcess | undefined;
  let ready = Promise.withResolvers<void>();
  function start(): Promise<void> {
    ready = Promise.withResolvers();
    const argv = [`${import.meta.dirname}/delivery/recorder.ts`, file, JSON.stringify(sinks)];
    child = spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin?.on('error', () => undefined);
    if (!child.stdout) return ready.promise;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as RecorderMessage;
      ready.resolve();
      // What waited before says nothing any more.
      waiting = 'waiting' in message ? message.waiting : {};
      if ('recorded' in message) recorded.push(...message.recorded);
      if ('refused' in message) refused += message.refused;
    });
    return ready.promise;
  }
  async function kill(): Promise<void> {
    const exited = child && once(child, 'exit');
    child?.kill('SIGKILL');
    await exited;
    waiting = {};
  }
  await start();
  return {
    recorded,
    refused: () => refused,
    waiting: () => waiting,
    order: (what: object) => void child?.stdin?.write(`${JSON.stringify(what)}\n`),
    signal: (signal: NodeJS.Signals) => void child?.kill(signal),
    async restart() {
      await kill();
      await start();
    },
    [Symbol.asyncDispose]: kill,
  };
}

it.skipIf(natsMissing).each(SEEDS)(
  'seed %d: nothing that was recorded is lost, and every encoder keeps its order',
  async (seed) => {
    const random = seeded(seed);
    const numbers = new Map<string, number>();
    const drawn = () =>
      Array.from({ length: EVENTS_PER_STEP }, (): Step => {
        const encoder = `desk-${Math.floor(random() * ENCODERS)}`;
        const n = (numbers.get(encoder) ?? 0) + 1;
        numbers.set(encoder, n);
        return { encoder, n };
      });
    await using stream = await openStream();
    const services: Service[] = [await openBroker(), await openWebhook(), stream];
    const disk = canMount() ? smallDisk(DISK_BYTES) : undefined;
    const file = await migratedFile(disk?.folder ?? temporaryFolder());
    await using gateway = await openRecorder(
      file,
      services.map(({ settings }) => settings),
    );
    /** Until it is seen: what the write-ahead log has room for is still stored. */
    async function fill({ fill: takeAll }: SmallDisk): Promise<void> {
      takeAll();
      const before = gateway.refused();
      await vi.waitFor(
        () => {
          gateway.order({ record: drawn() });
          expect(gateway.refused()).toBeGreaterThan(before);
        },
        { timeout: 30_000, interval: 20 },
      );
    }
    const faults: Fault[] = [
      ...services.flatMap((service) => Object.entries(service.faults)),
      ['the gateway is killed', gateway.restart],
      ['the gateway is frozen', () => gateway.signal('SIGSTOP')],
      ...(disk ? [['the disk is full', () => fill(disk)] satisfies Fault] : []),
      ['the clock jumps', () => gateway.order({ jump: (random() < 0.5 ? -90 : 90) * DAY_MS })],
    ];
    const heal = async () => {
      gateway.signal('SIGCONT');
      disk?.makeRoom();
      for (const service of services) await service.heal();
    };
    const plan = faults.toSorted(() => random() - 0.5);
    const reached = new Set<string>();
    const steps = Math.max(Number(FAULT_STEPS), plan.length * 4);
    for (let step = 0; step < steps; step += 1) {
      gateway.order({ record: drawn() });
      if (step % 4 === 0) {
        const [name, fault] = plan[(step / 4) % plan.length] ?? ['none', () => undefined];
        await fault();
        reached.add(name);
      }
      if (step % 4 === 3) await heal();
      await sleep(STEP_MS);
    }
    await heal();
    gateway.order({ record: [{ encoder: 'desk-last', n: 1 }] });
    await expect
      .poll(() => gateway.recorded.some(({ encoder }) => encoder === 'desk-last'), { timeout: 60_000 })
      .toBe(true);
    const left = () => Object.values(gateway.waiting());
    await expect
      .poll(() => left().length === 3 && left().every((waiting) => waiting === 0), { timeout: 60_000 })
      .toBe(true);
    expect([...reached].toSorted()).toEqual(faults.map(([name]) => name).toSorted());
    expect(gateway.recorded.length).toBeGreaterThan(EVENTS_PER_STEP * 20);
    for (const service of services) {
      const verdict = faultsOf(gateway.recorded, await service.delivered());
      expect({ seed, sink: service.settings, faults: verdict.slice(0, 20) }).toMatchObject({ faults: [] });
    }
  },
  120_000 + 1_000 * Number(FAULT_STEPS),
);
