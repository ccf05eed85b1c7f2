/**
 * A port in memory, for tests of protocols and of the bus on a manual clock:
 *
 *     const clock = manualClock();
 *     const wire = openTestPort(clock, (request) => reply(request));
 *     await using bus = await openBus({ options, openPort: wire.openPort, clock, log: wire.log }, signal);
 *     const pending = bus.exchange(…);
 *     await clock.advance(100);
 *
 * The device hears the request when a wire would have carried it, also where its host is gone by then. The reply arrives as
 * one piece when a wire would have carried that, `turnaroundMs` later. `null` is a device that says nothing. `wire.sent`
 * reports what was sent, and when the host handed it over.
 */

import type { BusOptions, LineSettings } from '../../../drivers/bus/options.ts';
import { characterMs } from '../../../drivers/bus/options.ts';
import type { OpenPort, PortListener } from '../../../drivers/bus/port.ts';
import { type Clock, DriverError, type DriverLog } from '../../../drivers/contract/driver.ts';

export type Answer = Uint8Array | null | { bytes: Uint8Array; turnaroundMs: number };

export interface TestPort {
  openPort: OpenPort;
  /** Newest last; `at` is monotonic, `line` what the port had. */
  sent: { bytes: Uint8Array; at: number; line: LineSettings }[];
  /** Bytes that no one asked for, now. */
  deliver(bytes: Uint8Array): void;
  /** The port is lost, as on a hang-up. */
  lose(error?: Error): void;
  /** It takes bytes, and hands none on until it is stalled no more, like an adapter whose flow control holds it. */
  stall(isStalled: boolean): void;
  /** Whether the bus disposed it. */
  isClosed(): boolean;
  log: DriverLog;
  /** Messages of level warn and error. */
  complaints: string[];
}

export interface TestPortTraits {
  paced?: boolean;
  diesUnnoticed?: boolean;
  latencyMs?: number;
  /** Devices have this, and hear noise of all else; as the port is opened when absent. */
  deviceLine?: LineSettings;
  /** Cannot have other characters than it is opened with. */
  fixed?: boolean;
  /** It cannot be opened again with the characters it had. */
  sticks?: boolean;
}

const USUAL_TURNAROUND_MS = 1;

export function openTestPort(
  clock: Clock,
  answer: (request: Uint8Array) => Answer,
  traits: TestPortTraits = {},
): TestPort {
  const { paced = true, diesUnnoticed = false, latencyMs = 0 } = traits;
  const sent: TestPort['sent'] = [];
  const complaints: string[] = [];
  const closing = new AbortController();
  let listener: PortListener | undefined;
  let isStalled = false;
  let held: (() => void)[] = [];

  /** A device that throws is a fault of the test, which the bus would take for a lost port. */
  function answered(request: Uint8Array): Answer {
    try {
      return answer(request);
    } catch (error) {
      void Promise.reject(error);
      return null;
    }
  }

  async function reply(request: Uint8Array, options: LineSettings): Promise<void> {
    await clock.sleep(request.length * characterMs(options));
    const isNoise = traits.deviceLine && characterMs(traits.deviceLine) !== characterMs(options);
    const given = isNoise ? null : answered(request);
    if (given === null) return;
    const { bytes, turnaroundMs } =
      given instanceof Uint8Array ? { bytes: given, turnaroundMs: USUAL_TURNAROUND_MS } : given;
    await clock.sleep(bytes.length * characterMs(options) + turnaroundMs + latencyMs);
    if (!closing.signal.aborted) listener?.data(bytes);
  }

  return {
    async openPort(options, theListener) {
      listener = theListener;
      const { baudRate, parity, stopBits }: BusOptions = options;
      const opened: LineSettings = { baudRate, parity, stopBits };
      let line = opened;
      const retune = async (to: LineSettings) => {
        if (traits.sticks && line !== opened) throw new DriverError('LINK_LOST', 'it is gone');
        line = to;
      };
      return {
        name: 'test',
        warnings: [],
        paced,
        diesUnnoticed,
        ...(!traits.fixed && { retune }),
        latencyMs: () => latencyMs,
        write(bytes) {
          sent.push({ bytes: Uint8Array.from(bytes), at: clock.monotonic(), line });
          const handOn = () => void reply(Uint8Array.from(bytes), line);
          if (isStalled) held.push(handOn);
          else handOn();
        },
        async discard() {
          held = [];
        },
        async [Symbol.asyncDispose]() {
          closing.abort();
        },
      };
    },
    sent,
    deliver: (bytes) => listener?.data(bytes),
    lose: (error = new Error('hung up')) => listener?.lost(error),
    stall(now) {
      isStalled = now;
      if (!now) for (const handOn of held.splice(0)) handOn();
    },
    isClosed: () => closing.signal.aborted,
    log: {
      debug: () => {},
      info: () => {},
      warn: (_, message) => complaints.push(message),
      error: (_, message) => complaints.push(message),
    },
    complaints,
  };
}
