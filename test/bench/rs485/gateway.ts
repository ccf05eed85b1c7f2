/**
 * The field side of the gateway as a process for benches: the main process with its links in hosts, as the daemon has
 * them, and no interface. The first line of standard input is the plan, each further one a relay to close.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../../src/platform/clock.ts';
import { configSchema } from '../../../src/platform/config/config.ts';
import { linkOptions } from '../../../src/platform/config/profiles.ts';
import { openField } from '../../../src/platform/field/field.ts';
import { silentLog } from '../../../src/platform/log.ts';

export interface GatewayPlan {
  links: {
    id: string;
    protocol: 'modbus' | 'osdp';
    options: object;
    /** OSDP: of the devices that have one, in hex. */
    keys?: { address: number; key: string }[];
  }[];
}

export interface Ask {
  id: number;
  link: string;
  hwId: string;
  relay: number;
}

/** Times are milliseconds of CLOCK_MONOTONIC. */
export type Message =
  | { kind: 'host'; pid: number }
  | { kind: 'link'; link: string; up: boolean; at: number }
  | { kind: 'met'; link: string; hwId: string; at: number }
  /** `failed`: the code of the error; null when the relay closed. */
  | { kind: 'fired'; id: number; issuedAt: number; answeredAt: number; failed: string | null };

const PULSE_MS = 100;
const TIMEOUT_MS = 5_000;

const report = (message: Message) => void process.stdout.write(`${JSON.stringify(message)}\n`);
const { NODE_COMPILE_CACHE: codeCache, GATEHOUSE_BUNDLE } = process.env;
const now = systemClock.monotonic;
const { signal } = new AbortController();

const input = createInterface({ input: process.stdin });
const ended = once(input, 'close');
const [first] = (await once(input, 'line')) as [string];
const plan = JSON.parse(first) as GatewayPlan;
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-field-'));
/** By link and hwId: the version of the settings that each device has shown. */
const met = new Map<string, Map<string, number>>();
let pid: number | undefined;

const { links } = configSchema.parse({
  links: plan.links.map(({ id, protocol, options }) => ({ id, protocol, options })),
});
const field = openField({
  directory,
  clock: systemClock,
  log: silentLog,
  execPath: process.execPath,
  // As main.ts hands them on.
  environment: {
    ...(codeCache !== undefined && { NODE_COMPILE_CACHE: codeCache }),
    ...(GATEHOUSE_BUNDLE !== undefined && { GATEHOUSE_BUNDLE }),
  },
  kill: (other) => process.kill(other, 'SIGKILL'),
  onEvent: async () => undefined,
  onLink(link, { up }) {
    met.set(link, new Map());
    tellHost();
    report({ kind: 'link', link, up, at: now() });
    if (up) void handKeys(link);
  },
  onReport(link, { subject, state }) {
    const [kind, hwId] = subject.split(':');
    const { connected, reportedSettingsVersion } = state as {
      connected?: boolean;
      reportedSettingsVersion: number;
    };
    const known = met.get(link);
    if (kind !== 'device' || connected !== true || hwId === undefined) return;
    if (!known?.has(hwId)) report({ kind: 'met', link, hwId, at: now() });
    known?.set(hwId, reportedSettingsVersion);
  },
});
field.open(
  links.map((link) => ({
    id: link.id,
    protocol: link.protocol,
    host: link.host,
    options: linkOptions(link),
  })),
);

function tellHost(): void {
  const [host] = field.state().hosts;
  if (host?.pid === undefined || host.pid === pid) return;
  pid = host.pid;
  report({ kind: 'host', pid });
}

/** As the daemon does each time a link comes up. */
async function handKeys(link: string): Promise<void> {
  const { keys } = plan.links.find(({ id }) => id === link) ?? {};
  if (!keys) return;
  const data = {
    devices: [],
    keys: keys.map(({ address, key }) => ({ address, key: Buffer.from(key, 'hex') })),
  };
  await field.execute(link, { kind: 'watch', data, timeoutMs: TIMEOUT_MS }, signal);
}

async function fire({ id, link, hwId, relay }: Ask): Promise<void> {
  const settingsVersion = met.get(link)?.get(hwId) ?? 0;
  const data = { hwId, relay, milliseconds: PULSE_MS, settingsVersion };
  const issuedAt = now();
  const failed = await field.execute(link, { kind: 'pulse', data, timeoutMs: TIMEOUT_MS }, signal).then(
    () => null,
    (error: unknown) => String((error as { code?: string }).code ?? error),
  );
  report({ kind: 'fired', id, issuedAt, answeredAt: now(), failed });
}

input.on('line', (line) => void fire(JSON.parse(line) as Ask));
await ended;
await field[Symbol.asyncDispose]();
rmSync(directory, { recursive: true, force: true });
