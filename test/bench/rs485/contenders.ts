/** Who drives a bus: the gateway, and what one writes with a library. All poll as fast as they can, and close relays when asked. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openChild } from '../../simulators/child.ts';
import type { Ask, GatewayPlan, Message } from './gateway.ts';
import { FORMAT, hwIdOf } from './site.ts';

export interface Order {
  id: number;
  unit: number;
  relay: number;
}

export interface Contender extends AsyncDisposable {
  fire(order: Order): void;
  /** Resolves when the outcome of each is reported: the code or text of the error, null when it was acknowledged. */
  fired(ids: readonly number[]): Promise<(string | null)[]>;
}

export interface Gateway extends Contender {
  readonly pid: number;
  /** Of the process that has the ports open, now. */
  hostPid(): number;
  messages(): readonly Message[];
  waitFor(fits: (messages: readonly Message[]) => boolean, timeoutMs?: number): Promise<void>;
}

export interface Place {
  port: string;
  baudRate: number;
  units: readonly number[];
}

const FIRED_TIMEOUT_MS = 60_000;
const MET_TIMEOUT_MS = 120_000;
const LINK = 'bus-1';
const GATEWAY = join(import.meta.dirname, 'gateway.ts');
const MODBUS_SERIAL_LOOP = join(import.meta.dirname, 'modbus-serial-loop.ts');
const LIBMODBUS_LOOP = join(import.meta.dirname, 'libmodbus-loop.c');

export interface FieldOptions {
  links: GatewayPlan['links'];
  /** How many there are in all. */
  devices: number;
  hwIdOf(address: number): string;
}

/**
 * The field side of the gateway with its host, which has been started before: the first start makes the code cache, as
 * it does for the daemon, takes longer and needs more memory. Resolves when every device is met.
 */
export async function openFieldGateway(options: FieldOptions): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const cache = mkdtempSync(join(tmpdir(), 'gatehouse-bench-cache-'));
  stack.defer(() => rmSync(cache, { recursive: true, force: true }));
  const environment = { NODE_COMPILE_CACHE: cache };
  const { [Symbol.asyncDispose]: close } = await startGateway(options, environment);
  await close();
  const gateway = stack.use(await startGateway(options, environment));
  const open = stack.move();
  return { ...gateway, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

/** Of Modbus. */
export interface BenchLink {
  id: string;
  port: string;
  baudRate: number;
  units: number[];
}

export function openGateway(links: BenchLink[], pollEveryMs: number): Promise<Gateway> {
  return openFieldGateway({
    links: links.map(({ id, port, baudRate, units }) => ({
      id,
      protocol: 'modbus' as const,
      options: { ...FORMAT, port, baudRate, pollEveryMs, devices: units.map((unitId) => ({ unitId })) },
    })),
    devices: links.reduce((sum, { units }) => sum + units.length, 0),
    hwIdOf,
  });
}

async function startGateway(
  { links, devices, hwIdOf: nameOf }: FieldOptions,
  environment: Record<string, string>,
): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const child = stack.use(openChild<Message>({ args: [GATEWAY], environment }));
  child.say({ links } satisfies GatewayPlan);
  const waitFor = async (fits: (messages: readonly Message[]) => boolean, timeoutMs = MET_TIMEOUT_MS) =>
    void (await child.waitFor(() => fits(child.messages), timeoutMs));
  await waitFor((messages) => messages.filter(({ kind }) => kind === 'met').length >= devices);
  const open = stack.move();
  return {
    pid: child.pid,
    hostPid() {
      const host = child.messages.findLast((message) => message.kind === 'host');
      if (!host) throw new Error('the gateway has no host');
      return host.pid;
    },
    messages: () => child.messages,
    waitFor,
    fire: ({ id, unit, relay }) =>
      child.say({ id, relay, link: links[0]?.id ?? LINK, hwId: nameOf(unit) } satisfies Ask),
    fired: (ids) => firedBy(child, ids),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

export function openGatewayAt({ units, ...place }: Place): Promise<Gateway> {
  return openGateway([{ ...place, id: LINK, units: [...units] }], 0);
}

export function openModbusSerialAt(place: Place): Promise<Contender> {
  return openLoop(process.execPath, [MODBUS_SERIAL_LOOP], place);
}

/** `program`: as `buildLibmodbusLoop` has made it. */
export function openLibmodbusAt(program: string, place: Place): Promise<Contender> {
  return openLoop(program, [], place);
}

/** False where there is no compiler or no libmodbus-dev. */
export function buildLibmodbusLoop(program: string): boolean {
  return (
    spawnSync('cc', ['-O2', '-o', program, LIBMODBUS_LOOP, '-I/usr/include/modbus', '-lmodbus']).status === 0
  );
}

type LoopMessage = { kind: 'ready' } | { kind: 'fired'; id: number; failed: string | null };

async function openLoop(
  program: string,
  args: string[],
  { port, baudRate, units }: Place,
): Promise<Contender> {
  await using stack = new AsyncDisposableStack();
  const child = stack.use(
    openChild<LoopMessage>({ program, args: [...args, port, String(baudRate), ...units.map(String)] }),
  );
  await child.waitFor(({ kind }) => kind === 'ready');
  const open = stack.move();
  return {
    fire: ({ id, unit, relay }) => child.say([id, unit, relay]),
    fired: (ids) => firedBy(child, ids),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

interface Teller {
  readonly messages: readonly (Message | LoopMessage)[];
  waitFor(fits: () => boolean, timeoutMs: number): Promise<unknown>;
}

async function firedBy(child: Teller, ids: readonly number[]): Promise<(string | null)[]> {
  const all = () => {
    const fired = child.messages.filter((message) => message.kind === 'fired');
    return new Map(fired.map(({ id, failed }) => [id, failed]));
  };
  await child.waitFor(() => {
    const known = all();
    return ids.every((id) => known.has(id));
  }, FIRED_TIMEOUT_MS);
  const known = all();
  return ids.map((id) => known.get(id) ?? null);
}
