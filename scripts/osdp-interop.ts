/**
 * `npm run osdp:interop -- --port /dev/ttyUSB0 --address 0`: the driver against any OSDP device, step by step. A device is
 * spoken to with `--key` (32 hex digits), is given one with `--pair`, or, with neither, is spoken to in clear text.
 * Relays are closed only with `--relay N`. It is watched for `--hold` seconds. Ends with 1 when a step failed; what
 * follows it is not tried then.
 */
import { parseArgs } from 'node:util';
import type { Driver, Plain } from '../drivers/contract/driver.ts';
import { type AlarmEvent, alarmEvent, probed } from '../drivers/contract/rs485.ts';
import { type Rs485Report, rs485Report } from '../drivers/contract/settings.ts';
import { openOsdp } from '../drivers/osdp/driver.ts';
import { systemClock } from '../src/platform/clock.ts';

const OPTIONS = {
  port: { type: 'string' },
  address: { type: 'string', default: '0' },
  baud: { type: 'string', default: '9600' },
  key: { type: 'string' },
  pair: { type: 'boolean', default: false },
  relay: { type: 'string' },
  // Longer than a device takes to drop a session in silence (5.7).
  hold: { type: 'string', default: '10' },
} as const;
const STEP_MS = 15_000;
const LOOK_MS = 50;
const REPEATS = 20;

const never = new AbortController().signal;
const { values } = parseArgs({ options: OPTIONS });
if (values.port === undefined || (values.key !== undefined && !/^[0-9a-fA-F]{32}$/.test(values.key))) {
  process.stderr.write(
    'Use: --port PORT [--address N] [--baud N] [--key 32HEX [--pair]] [--relay N] [--hold S]\n',
  );
  process.exit(2);
}
process.exit(await run(values.port));

async function run(port: string): Promise<number> {
  const address = Number(values.address);
  const key = values.key === undefined ? undefined : Uint8Array.from(Buffer.from(values.key, 'hex'));
  const seen: Seen = { reports: [], alarms: [], restarts: 0 };
  await using driver = await openOsdp(
    {
      port,
      baudRate: Number(values.baud),
      pollEveryMs: 50,
      devices: [{ address, secure: key ? 'required' : 'off' }],
    },
    {
      linkId: 'interop',
      clock: systemClock,
      log: { debug() {}, info: (fields) => countRestart(seen, fields), warn: say, error: say },
      report({ subject, state }) {
        if (subject !== 'bus') seen.reports.push(rs485Report.parse(state));
      },
      emit: async ({ kind, data }) => void (kind === 'alarm' && seen.alarms.push(alarmEvent.parse(data))),
    },
    never,
  );
  const stop = new AbortController();
  void driver.run(stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) say({ err: String(error) }, 'the bus is lost');
  });
  const execute: Execute = (kind, data) => executeOn(driver, kind, data);
  const keys = key && !values.pair ? [{ address, key }] : [];
  await execute('watch', { devices: [], keys });
  const failure = await firstFailure(stepsOf({ address, key, seen, execute }));
  process.stdout.write(`${JSON.stringify(seen.reports.at(-1) ?? null, null, 2)}\n`);
  stop.abort();
  return failure === undefined ? 0 : 1;
}

/** What was seen of the device. */
interface Seen {
  reports: Rs485Report[];
  alarms: AlarmEvent[];
  /** How often its session began again. */
  restarts: number;
}
type Execute = (kind: string, data: Plain) => Promise<Plain>;
type Step = [name: string, step: () => Promise<unknown>];

interface Trial {
  address: number;
  key: Uint8Array | undefined;
  seen: Seen;
  execute: Execute;
}

function stepsOf({ address, key, seen, execute }: Trial): Step[] {
  const now = () => seen.reports.at(-1);
  const steps: Step[] = [
    ['is connected', () => until(() => now()?.connected === true, seen)],
    ['is in its secure channel', () => until(() => !key || now()?.security === 'secure', seen)],
    [
      'answers a scan',
      async () => assertHeard(await execute('probe', { addresses: [address], repeats: REPEATS })),
    ],
    [`stays connected, in one session, for ${values.hold} s`, () => stays(seen, 1_000 * Number(values.hold))],
  ];
  if (key && values.pair)
    steps.unshift(['takes its key', () => execute('pair', { address, key, milliseconds: STEP_MS })]);
  const { relay } = values;
  if (relay !== undefined)
    steps.push([
      `closes relay ${relay} for 1 s`,
      () => {
        const { hwId = '', reportedSettingsVersion: settingsVersion = 0 } = now() ?? {};
        return execute('pulse', { hwId, relay: Number(relay), milliseconds: 1_000, settingsVersion });
      },
    ]);
  return [...steps, ['raises no alarm', async () => assertNone(seen)]];
}

/** Prints each step. After a failed step none is tried: it would wait without end, or pass for no reason. */
async function firstFailure(steps: readonly Step[]): Promise<unknown> {
  for (const [name, step] of steps) {
    try {
      await step();
    } catch (error) {
      process.stdout.write(`FAILED ${name}: ${error}\n`);
      return error;
    }
    process.stdout.write(`ok     ${name}\n`);
  }
  return undefined;
}

function executeOn(driver: Driver, kind: string, data: Plain): Promise<Plain> {
  return driver.execute({ kind, data, deadline: systemClock.monotonic() + 2 * STEP_MS }, never);
}

/** An alarm ends the wait: the device would be tried ever more rarely. */
async function until(isSo: () => boolean, seen: Seen): Promise<void> {
  const deadline = systemClock.monotonic() + STEP_MS;
  while (!isSo()) {
    assertNone(seen);
    if (systemClock.monotonic() > deadline) throw new Error(`not within ${STEP_MS / 1_000} s`);
    await systemClock.sleep(LOOK_MS);
  }
}

async function stays(seen: Seen, milliseconds: number): Promise<void> {
  const before = { reports: seen.reports.length, restarts: seen.restarts };
  await systemClock.sleep(milliseconds);
  if (seen.reports.slice(before.reports).some(({ connected }) => !connected))
    throw new Error('it was lost meanwhile');
  if (seen.restarts > before.restarts)
    throw new Error(`its session began again ${seen.restarts - before.restarts} times`);
}

function countRestart(seen: Seen, fields: Record<string, unknown>): void {
  // Only a session that begins again has a reason.
  if ('reason' in fields) seen.restarts += 1;
}

function assertNone({ alarms }: Seen): void {
  const raised = alarms.filter((alarm) => alarm.raised).map(({ alarm }) => alarm);
  if (raised.length > 0) throw new Error(`alarm ${raised.join(', ')}`);
}

function assertHeard(answer: Plain): void {
  const [result] = probed.parse(answer).results;
  const { counters, identity } = result ?? {};
  if (!identity || counters?.replies !== REPEATS)
    throw new Error(`not every question was answered: ${JSON.stringify(counters)}`);
}

function say(fields: Record<string, unknown>, message: string): void {
  process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
}
