/** A simulated bus in this process: devices on a wire behind a port. bus.ts runs it in one of its own. */
import { osdp } from '../osdp/protocol.ts';
import { dcon } from './dcon/protocol.ts';
import { modbus } from './modbus/protocol.ts';
import { openGatewayTransport } from './modbus/tcp-transport.ts';
import { type BusChange, type CheckedPlan, characterMs, type DeviceChange, type IdleNoise } from './plan.ts';
import type { Protocol } from './protocol.ts';
import { type DeviceState, openStation, type Station } from './station.ts';
import { blockUntil, monotonicMs } from './time.ts';
import { openPtyTransport, openTcpTransport, type Receive, type Transport } from './transport.ts';
import { openWire, type Reply, type Wire, type WireCounters } from './wire.ts';

export interface BusStats extends WireCounters {
  /** Since the bus was opened, or the statistics were reset. */
  elapsedMs: number;
  /** 0 to 1: how much of that time a character was on the wire. */
  busyShare: number;
  /** Whole requests to one address, whether anybody is there or not. */
  requests: Record<string, number>;
  broadcasts: number;
  /** How much later than computed the last byte of a reply was handed over, of the latest 10000 replies. */
  lateness: { replies: number; p50Ms: number; p99Ms: number; maxMs: number };
}

export interface Simulation extends AsyncDisposable {
  readonly port: string;
  readonly addresses: readonly number[];
  /** Undefined for an address where there is no device. */
  state(address: number): DeviceState | undefined;
  /** False for an address where there is no device. Throws RangeError for an input the device does not have. */
  change(address: number, change: DeviceChange): boolean;
  changeBus(change: BusChange): Promise<void>;
  stats(): BusStats;
}

const LATENESS_KEPT = 10_000;
/** Longer waits are left to the event loop, which wakes so much before the time. */
const BLOCK_MS = 25;
const WAKE_EARLY_MS = 5;
/** How often a blocked process looks whether somebody speaks out of turn. */
const LISTEN_MS = 0.5;

export async function openSimulation(plan: CheckedPlan): Promise<Simulation> {
  await using stack = new AsyncDisposableStack();
  const protocol = protocolOf(plan);
  const opened = monotonicMs();
  const stations = new Map(
    plan.devices.map((device) => [device.address, openStation(device, plan, protocol, opened)]),
  );
  let skippedMs = 0;
  const deviceNow = (now = monotonicMs()) => now + skippedMs;
  const tally = openTally(stations, deviceNow);
  const wire = openWire({
    latencyMs: plan.latencyMs,
    localEcho: plan.localEcho,
    ...timingOf(plan, protocol),
    delivery: plan.pacing === 'exact' ? 'byte' : 'frame',
    read: protocol.read,
    request: tally.request,
    hear(bytes, at, isReplyEnd) {
      transport.write(bytes);
      if (isReplyEnd) tally.late(monotonicMs() - at);
    },
  });
  const isNoise = () => plan.strictBaudRate && transport.baudRate?.() !== plan.baudRate;
  const receive = (bytes: Uint8Array) => {
    // Sampled at another rate no byte is what it was, and no frame begins with two zeros.
    wire.sent(isNoise() ? new Uint8Array(bytes.length) : bytes, monotonicMs());
    runner.run();
  };
  const transport: Transport = stack.use(await transportOf(plan, receive));
  const runner = stack.use(openRunner(wire, transport, plan.pacing === 'exact'));
  const noise = stack.use(openIdleNoise(wire, runner));
  const open = stack.move();

  return {
    get port() {
      return transport.port;
    },
    addresses: [...stations.keys()],
    state: (address) => stations.get(address)?.state(deviceNow()),
    change(address, change) {
      const station = stations.get(address);
      station?.change(change, deviceNow());
      return station !== undefined;
    },
    async changeBus({ plugged, localEcho, idleNoise, outOfOrder, reading, skipMs = 0, resetStats }) {
      skippedMs += skipMs;
      if (plugged === false) {
        wire.cut();
        await transport.hangUp();
      }
      if (plugged === true) await transport.replug();
      if (localEcho !== undefined) wire.setLocalEcho(localEcho);
      if (outOfOrder !== undefined) wire.setOutOfOrder(outOfOrder);
      if (idleNoise !== undefined) noise.set(idleNoise);
      if (reading !== undefined) transport.setReading(reading);
      if (resetStats) {
        wire.resetCounters();
        tally.reset();
      }
    },
    stats: () => tally.stats(wire.counters()),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

function protocolOf(plan: CheckedPlan): Protocol {
  switch (plan.protocol) {
    case 'modbus':
      return modbus;
    case 'dcon':
      return dcon(plan);
    case 'osdp':
      return osdp(plan);
  }
}

function timingOf(plan: CheckedPlan, protocol: Protocol): { characterMs: number; silenceMs: number } {
  if (plan.pacing === 'none') return { characterMs: 0, silenceMs: 0 };
  const character = characterMs(plan);
  return { characterMs: character, silenceMs: protocol.silenceMs(character) };
}

/** A device may be at another address than it was planned for. */
function stationAt(stations: ReadonlyMap<number, Station>, address: number): Station | undefined {
  const planned = stations.get(address);
  if (planned?.place() === address) return planned;
  return [...stations.values()].find((station) => station.place() === address);
}

/** Who was asked how often, and how late replies were. */
function openTally(stations: ReadonlyMap<number, Station>, deviceNow: (now: number) => number) {
  const requests = new Map<number, number>();
  let lateness: number[] = [];
  let broadcasts = 0;
  let since = monotonicMs();
  return {
    request(frame: Uint8Array, address: number | 'all', now: number): Reply[] {
      if (address === 'all') {
        broadcasts += 1;
        for (const station of stations.values()) station.hear(frame, true, deviceNow(now));
        return [];
      }
      requests.set(address, (requests.get(address) ?? 0) + 1);
      return stationAt(stations, address)?.hear(frame, false, deviceNow(now)) ?? [];
    },
    late(milliseconds: number): void {
      lateness.push(milliseconds);
      if (lateness.length > 2 * LATENESS_KEPT) lateness = lateness.slice(-LATENESS_KEPT);
    },
    stats(counters: WireCounters): BusStats {
      const elapsedMs = monotonicMs() - since;
      const sorted = lateness.slice(-LATENESS_KEPT).sort((one, other) => one - other);
      const quantile = (share: number) =>
        sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
      return {
        ...counters,
        elapsedMs,
        broadcasts,
        busyShare: Math.min(1, counters.busyMs / elapsedMs),
        requests: Object.fromEntries(requests),
        lateness: {
          replies: sorted.length,
          p50Ms: quantile(0.5),
          p99Ms: quantile(0.99),
          maxMs: sorted.at(-1) ?? 0,
        },
      };
    },
    reset(): void {
      requests.clear();
      lateness = [];
      broadcasts = 0;
      since = monotonicMs();
      for (const station of stations.values()) station.resetCounters();
    },
  };
}

interface Runner extends Disposable {
  /** Lets everything happen that is due, and sees to it that the rest will. */
  run(): void;
}

async function transportOf({ transport, link, tcpPort }: CheckedPlan, receive: Receive): Promise<Transport> {
  switch (transport) {
    case 'pty':
      return openPtyTransport(link, receive);
    case 'tcp':
      return await openTcpTransport(receive, tcpPort);
    case 'modbus-tcp':
      return await openGatewayTransport(receive, tcpPort);
  }
}

function openRunner(wire: Wire, transport: Transport, isExact: boolean): Runner {
  let timer: NodeJS.Timeout | undefined;

  /** Until nothing is due soon. The event loop has its turn between two exchanges. */
  function block(): void {
    for (;;) {
      const due = wire.due();
      if (due === undefined || due - monotonicMs() > BLOCK_MS) return;
      const bytes = transport.readNow();
      if (bytes) wire.sent(bytes, monotonicMs());
      const now = monotonicMs();
      if (due > now) blockUntil(Math.min(due, now + LISTEN_MS));
      wire.advance(monotonicMs());
    }
  }
  function run(): void {
    clearTimeout(timer);
    wire.advance(monotonicMs());
    if (isExact) block();
    const due = wire.due();
    if (due === undefined) return;
    const early = isExact ? WAKE_EARLY_MS : 0;
    timer = setTimeout(run, Math.max(0, Math.ceil(due - early - monotonicMs())));
  }
  return { run, [Symbol.dispose]: () => clearTimeout(timer) };
}

function openIdleNoise(wire: Wire, runner: Runner): Disposable & { set(noise: IdleNoise | null): void } {
  let timer: NodeJS.Timeout | undefined;
  return {
    set(noise) {
      clearInterval(timer);
      if (!noise) return;
      timer = setInterval(() => {
        wire.disturb(Buffer.from(noise.bytes, 'hex'), monotonicMs());
        runner.run();
      }, noise.everyMs);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
