/** The driver in this process, on a simulated coordinator in another. One at a time: its library holds only one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import { MAKE } from '../../simulators/zigbee/make.ts';
import { MAKES } from '../../simulators/zigbee/makes.ts';
import '../../simulators/zigbee/short-pauses.ts';
import type { Clock, Driver, DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import { snapshot } from '../../../drivers/contract/zgate.ts';
import { openZigbee } from '../../../drivers/zigbee/driver.ts';
import type { GatewayPlan } from '../../simulators/zigbee/plan.ts';

export const LOCK = '00158d0001000001';
export const OTHER_LOCK = '00158d0001000002';
/** As the daemon asks for it when it does not lock the door again itself. */
export const unlockOf = (hwId: string) => ({ hwId, relockSeconds: 30, pin: null, gatewayRelocks: false });
export const CONFIRMED = { outcome: 'confirmed', relock: 'timedUnlock' };
export const MANUFACTURER = 0x1234;
export const NETWORK = {
  panId: 0x1a62,
  extPanId: '0102030405060708',
  networkKey: '0104070a0d101316191c1f2225282b2e',
};

export interface TestGateway {
  driver: Driver;
  /** What it was opened with. */
  given: { [name: string]: Plain };
  reports: Map<string, Plain>;
  events: DriverEvent[];
  logged: string[];
  /** How the run ended. */
  ended: Promise<unknown>;
  execute(kind: string, data: Plain, timeoutMs?: number): Promise<unknown>;
  close(): Promise<void>;
}

/** One part of the driver (snapshots, …) waits less; others wait as long: for a connection, or for what a lock answers. */
export const hurried = (part: string, insteadOfMs: number): Clock => ({
  ...systemClock,
  sleep(milliseconds, signal) {
    const isIt = milliseconds === insteadOfMs && new Error('who waits').stack?.includes(`/zigbee/${part}.ts`);
    return systemClock.sleep(isIt ? 50 : milliseconds, signal);
  },
});

/** When what a test opened is closed: at its end, unless it says `afterAll`. */
export type Cleanup = (close: () => Promise<void> | void) => void;

/** For what all the tests of a file share: closed after the last of them, the latest first. */
export function afterAllTests(): Cleanup {
  const closers: (() => Promise<void> | void)[] = [];
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });
  return (close) => void closers.push(close);
}

export async function simulated(
  plan: GatewayPlan,
  cleanup: Cleanup = onTestFinished,
): Promise<SimulatedGateway> {
  const gateway = await openSimulatedGateway({ adapter: MAKE.adapter, ...plan });
  cleanup(async () => gateway[Symbol.asyncDispose]());
  return gateway;
}

export function folder(cleanup: Cleanup = onTestFinished): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-zigbee-'));
  cleanup(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export interface OpenOptions {
  clock?: Clock;
  /** Of the report; it may throw. */
  report?(subject: string): void;
  cleanup?: Cleanup;
  /** Opens a link again, as a host does after it was lost: with the very options of before. */
  again?: TestGateway;
  /** Fires: it need not open any more. */
  signal?: AbortSignal;
}

export async function opened(
  { port, adapter }: Pick<SimulatedGateway, 'port'> & Partial<Pick<SimulatedGateway, 'adapter'>>,
  options: { [name: string]: Plain } = {},
  { clock = systemClock, report, cleanup = onTestFinished, again, signal }: OpenOptions = {},
): Promise<TestGateway> {
  const reports = new Map<string, Plain>();
  const events: DriverEvent[] = [];
  const logged: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) => {
    const { err, ...rest } = fields;
    logged.push(`${message} ${JSON.stringify(rest)} ${err instanceof Error ? err.message : ''}`);
  };
  const stop = new AbortController();
  const given = again?.given ?? {
    port,
    adapter: adapter ?? MAKE.adapter,
    manufacturerCode: MANUFACTURER,
    network: NETWORK,
    allowedChannels: [15],
    cert: null,
    snapshot: null,
    restore: false,
    knownLocks: [],
    lastSeen: {},
    stateDirectory: folder(cleanup),
    ...options,
  };
  const driver = await openZigbee(
    given,
    {
      linkId: 'zigbee',
      clock,
      log: { debug: write, info: write, warn: write, error: write },
      report({ subject, state }) {
        reports.set(subject, state);
        report?.(subject);
      },
      emit: async (event) => void events.push(event),
    },
    signal ? AbortSignal.any([signal, stop.signal]) : stop.signal,
  );
  const ended = driver.run(stop.signal).catch((error: unknown) => error);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      stop.abort(new Error('enough'));
      await ended;
      await driver[Symbol.asyncDispose]();
    })();
    return closing;
  };
  cleanup(close);
  return {
    driver,
    given,
    reports,
    events,
    logged,
    ended,
    close,
    execute: (kind, data, timeoutMs = 20_000) =>
      driver.execute({ kind, data, deadline: clock.monotonic() + timeoutMs }, AbortSignal.timeout(timeoutMs)),
  };
}

/** A link that is to restore a network, when it has done so. */
export async function restored(
  site: Pick<SimulatedGateway, 'port' | 'adapter'>,
  options: { [name: string]: Plain },
): Promise<TestGateway> {
  const { restoringStarts } =
    MAKES[options.adapter === undefined ? site.adapter : (options.adapter as 'ember')];
  for (let start = 1; start < restoringStarts; start += 1)
    await expect(opened(site, options)).rejects.toMatchObject({ code: 'LINK_LOST' });
  return opened(site, options);
}

/** Opens the window, lets the lock in, and waits until it is introduced. */
export async function joined(gateway: TestGateway, site: SimulatedGateway, ieee = LOCK): Promise<void> {
  await gateway.execute('permitJoin', { seconds: 60, allowed: [], installCodes: [] });
  expect(await site.join(ieee)).toBe('joined');
  // Not expect.poll, which is for a test alone: a file may share its gateway.
  await vi.waitFor(() => expect(hasJoined(gateway, ieee)).toBe(true));
  await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
}

/** It was introduced. */
export const hasJoined = ({ events }: TestGateway, ieee = LOCK): boolean =>
  events.some((event) => event.kind === 'lockJoined' && idOf(event) === ieee);

function idOf({ data }: DriverEvent): unknown {
  return typeof data === 'object' && data !== null && 'hwId' in data ? data.hwId : undefined;
}

/** The archive of the newest snapshot, once there is one. */
export async function snapshotOf({ events }: TestGateway): Promise<Uint8Array<ArrayBuffer>> {
  const taken = () => events.findLast(({ kind }) => kind === 'snapshot');
  await expect.poll(taken, { timeout: 30_000 }).toBeDefined();
  return snapshot.parse(taken()?.data).archive;
}
