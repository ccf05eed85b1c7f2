/**
 * `npm run osdp:interop -- --port /dev/ttyUSB0 --address 0`: the driver against any OSDP device, step by step. A device is
 * spoken to with `--key` (32 hex digits), is given one with `--pair`, or, with neither, is spoken to in clear text.
 * Relays are closed only with `--relay N`. Ends with 1 when a step failed.
 */
import { parseArgs } from 'node:util';
import type { Driver, Plain } from '../drivers/driver.ts';
import { openOsdp } from '../drivers/osdp/driver.ts';
import { probed } from '../drivers/rs485.ts';
import { type Rs485Report, rs485Report } from '../drivers/settings.ts';
import { systemClock } from '../src/clock.ts';

const OPTIONS = {
  port: { type: 'string' },
  address: { type: 'string', default: '0' },
  baud: { type: 'string', default: '9600' },
  key: { type: 'string' },
  pair: { type: 'boolean', default: false },
  relay: { type: 'string' },
} as const;
const STEP_MS = 15_000;
const LOOK_MS = 50;
const REPEATS = 20;
const HOLD_MS = 10_000;

const never = new AbortController().signal;
const { values } = parseArgs({ options: OPTIONS });
if (values.port === undefined || (values.key !== undefined && !/^[0-9a-fA-F]{32}$/.test(values.key))) {
  process.stderr.write('Use: --port PORT [--address N] [--baud N] [--key 32HEX [--pair]] [--relay N]\n');
  process.exit(2);
}
process.exit(await run(values.port));

async function run(port: string): Promise<number> {
  const address = Number(values.address);
  const key = values.key === undefined ? undefined : Uint8Array.from(Buffer.from(values.key, 'hex'));
  const told: Rs485Report[] = [];
  const alarms: Plain[] = [];
  await using driver = await openOsdp(
    {
      ...{ port, baudRate: Number(values.baud), pollEveryMs: 50 },
      devices: [{ address, secure: key ? 'required' : 'off' }],
    },
    {
      ...{ linkId: 'interop', clock: systemClock },
      log: { debug() {}, info() {}, warn: say, error: say },
      report({ subject, state }) {
        if (subject !== 'bus') told.push(rs485Report.parse(state));
      },
      emit: async ({ kind, data }) => void (kind === 'alarm' && alarms.push(data)),
    },
    never,
  );
  const stop = new AbortController();
  void driver.run(stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) say({ err: String(error) }, 'the bus is lost');
  });
  const now = () => told.at(-1);
  const execute = (kind: string, data: Plain) => executeOn(driver, kind, data);
  const keys = key && !values.pair ? [{ address, key }] : [];
  await execute('watch', { devices: [], keys });

  const steps: [name: string, step: () => Promise<unknown>][] = [
    ...(key && values.pair
      ? [
          ['takes its key', () => execute('pair', { address, key, milliseconds: STEP_MS })] as [
            string,
            () => Promise<unknown>,
          ],
        ]
      : []),
    ['is connected', () => until(() => now()?.connected === true)],
    ['is in its secure channel', () => until(() => !key || now()?.security === 'secure')],
    [
      'answers a scan',
      async () => assertHeard(await execute('probe', { addresses: [address], repeats: REPEATS })),
    ],
    ['stays connected', () => stays(told, HOLD_MS)],
    ...(values.relay === undefined
      ? []
      : [
          [
            `closes relay ${values.relay} for 1 s`,
            () =>
              execute('pulse', { hwId: now()?.hwId ?? '', relay: Number(values.relay), milliseconds: 1_000 }),
          ] as [string, () => Promise<unknown>],
        ]),
    ['raises no alarm', async () => assertEmpty(alarms)],
  ];
  let failed = 0;
  for (const [name, step] of steps) {
    const failure = await step().then(
      () => undefined,
      (error: unknown) => String(error),
    );
    if (failure !== undefined) failed += 1;
    process.stdout.write(
      `${failure === undefined ? 'ok    ' : 'FAILED'} ${name}${failure ? `: ${failure}` : ''}\n`,
    );
  }
  process.stdout.write(`${JSON.stringify(now() ?? null, null, 2)}\n`);
  stop.abort();
  return failed === 0 ? 0 : 1;
}

function executeOn(driver: Driver, kind: string, data: Plain): Promise<Plain> {
  return driver.execute({ kind, data, deadline: systemClock.monotonic() + 2 * STEP_MS }, never);
}

async function until(isSo: () => boolean): Promise<void> {
  const deadline = systemClock.monotonic() + STEP_MS;
  while (!isSo()) {
    if (systemClock.monotonic() > deadline) throw new Error(`not within ${STEP_MS / 1_000} s`);
    await systemClock.sleep(LOOK_MS);
  }
}

async function stays(told: readonly Rs485Report[], milliseconds: number): Promise<void> {
  const before = told.length;
  await systemClock.sleep(milliseconds);
  if (told.slice(before).some(({ connected }) => !connected)) throw new Error('it was lost meanwhile');
}

function assertEmpty(alarms: readonly Plain[]): void {
  if (alarms.length > 0) throw new Error(JSON.stringify(alarms));
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
