/** For tests: the driver on a port that anybody gives, with its reports and events. */
import { expect, onTestFinished, vi } from 'vitest';
import type { DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import { busReport } from '../../../drivers/contract/rs485.ts';
import { type Rs485Report, rs485Report } from '../../../drivers/contract/settings.ts';
import { openOsdp } from '../../../drivers/osdp/driver.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ordered } from '../bus/pulse.ts';

export const patience = { timeout: 20_000, interval: 10 };
const never = new AbortController().signal;
const COMMAND_MS = 5_000;

/** The key of a device in these tests: one of its own for each address. */
export function keyAt(address: number): Uint8Array {
  return Uint8Array.from({ length: 16 }, (_, index) => (0xa0 + index) ^ address);
}

export interface TestLinkOptions {
  port: string;
  /** Addresses of devices with a key. */
  keyed?: readonly number[];
  /** Options of the link. */
  more?: { [key: string]: Plain };
}

export async function openTestLink({ port, keyed = [], more = {} }: TestLinkOptions) {
  const reports = new Map<string, Plain>();
  const history: Rs485Report[] = [];
  const events: DriverEvent[] = [];
  const lines: string[] = [];
  const log = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const driver = await openOsdp(
    { port, baudRate: 115_200, pollEveryMs: 5, ...more },
    {
      linkId: 'readers',
      clock: systemClock,
      log: { debug: log, info: log, warn: log, error: log },
      report({ subject, state }) {
        reports.set(subject, state);
        if (subject !== 'bus') history.push(rs485Report.parse(state));
      },
      emit: async (event) => void events.push(event),
    },
    never,
  );
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch((error: unknown) => error);
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    await run;
    await driver[Symbol.asyncDispose]();
  });
  const report = (hwId: string) => rs485Report.parse(reports.get(`device:${hwId}`));
  const execute = (kind: string, data: Plain, milliseconds = COMMAND_MS) =>
    driver.execute(
      { kind, data: ordered(kind, data, report), deadline: systemClock.monotonic() + milliseconds },
      never,
    );
  const watch = (addresses: readonly number[]) =>
    execute('watch', { devices: [], keys: addresses.map((address) => ({ address, key: keyAt(address) })) });
  await watch(keyed);
  return {
    run,
    events,
    lines,
    history,
    execute,
    watch,
    report,
    bus: () => busReport.parse(reports.get('bus')),
    pulse: (hwId: string, relay = 0, milliseconds = 500) => execute('pulse', { hwId, relay, milliseconds }),
    /** The events of a kind. */
    eventsOf: (kind: string) => events.filter((event) => event.kind === kind).map(({ data }) => data),
    connected: (hwId: string, isConnected = true) =>
      vi.waitFor(() => expect(report(hwId).connected).toBe(isConnected), patience),
  };
}
