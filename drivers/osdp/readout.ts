/**
 * What a device of our own vendor code is asked beyond the standard (protocol/vendor-messages.ts), and when: all of it once a session is
 * online, after which the device is connected; its counters every second.
 */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Asking, DeviceSession } from './device-session.ts';
import type { DeviceState } from './device-state.ts';
import {
  decodeVendorReply,
  encodeVendorRequest,
  type VendorReply,
  type VendorRequest,
} from './protocol/vendor-messages.ts';

type Answer<Kind> = VendorReply & { kind: Kind };

/** Throws a DriverError; REFUSED also when the device knows no such message. */
export async function askVendor<Kind extends 'status' | 'settings' | 'product'>(
  session: Pick<DeviceSession, 'ask'>,
  request: VendorRequest,
  kind: Kind,
  asking: Asking,
): Promise<Answer<Kind>> {
  const reply = decodeVendorReply(await session.ask(encodeVendorRequest(request), asking));
  if (reply?.kind === kind) return reply as Answer<Kind>;
  if (reply?.kind === 'refused')
    throw new DriverError('REFUSED', `the device does not take it (reason ${reply.reason})`);
  throw new DriverError('BAD_REPLY', 'the device answered something else than it was asked');
}

export interface DeviceReadout {
  /** A session is online: everything is read. */
  begin(): void;
  /** The session has ended: a readout that began in it is discarded. */
  end(): void;
  /** Reads what is due. Call it when the session has nothing else to ask. */
  readDue(): void;
  /** An input has changed: the counters are read at once. */
  inputsChanged(): void;
}

interface ReadoutOptions {
  address: number;
  clock: Clock;
  log: DriverLog;
  /** Fires when the driver closes. */
  closing: AbortSignal;
}

interface Readable {
  /** Everything was read. False: it cannot count as connected yet. */
  connect(): boolean;
  report(): void;
}

/** Shorter than sixteen activations of an input take: its counter has four bits. */
const COUNTERS_EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const DEADLINE_MS = 5_000;

type Phase =
  | { kind: 'none' }
  | { kind: 'due'; at: number }
  | { kind: 'reading' }
  | { kind: 'complete'; countersAt: number };

export function openDeviceReadout(
  { clock, log, address, closing }: ReadoutOptions,
  state: DeviceState,
  session: DeviceSession,
  { connect, report }: Readable,
): DeviceReadout {
  let phase: Phase = { kind: 'none' };
  let isReading = false;

  const asking = (): Asking => ({
    class: 'settings',
    deadline: clock.monotonic() + DEADLINE_MS,
    signal: closing,
  });

  async function readSettings(): Promise<void> {
    state.madeKnown(await askVendor(session, { kind: 'readSettings' }, 'settings', asking()));
  }

  async function readCounters(): Promise<void> {
    state.madeKnown(await askVendor(session, { kind: 'status' }, 'status', asking()));
    if (state.hasOtherSettings()) await readSettings();
  }

  async function readAll(): Promise<void> {
    try {
      state.madeKnown(await askVendor(session, { kind: 'product' }, 'product', asking()));
      await readSettings();
      await readCounters();
    } catch (error) {
      if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
      state.setOurs(false);
    }
  }

  /** A readout counts only in the session in which it began. */
  function read(work: () => Promise<void>, done: () => boolean): void {
    const begun: Phase = { kind: 'reading' };
    phase = begun;
    isReading = true;
    void work()
      .then(
        () => {
          if (phase !== begun) return;
          const now = clock.monotonic();
          phase = done()
            ? { kind: 'complete', countersAt: now + COUNTERS_EVERY_MS }
            : { kind: 'due', at: now + RETRY_MS };
        },
        (error: unknown) => {
          if (phase === begun) phase = { kind: 'due', at: clock.monotonic() + RETRY_MS };
          if (!closing.aborted) log.debug({ address, err: String(error) }, 'a device was not read');
        },
      )
      .finally(() => {
        isReading = false;
      });
  }

  return {
    begin() {
      phase = { kind: 'due', at: Number.NEGATIVE_INFINITY };
    },
    end() {
      phase = { kind: 'none' };
    },
    readDue() {
      if (isReading) return;
      const now = clock.monotonic();
      if (phase.kind === 'due' && now >= phase.at)
        read(async () => (state.isOurs() ? await readAll() : undefined), connect);
      else if (phase.kind === 'complete' && state.isOurs() && now >= phase.countersAt)
        read(readCounters, () => {
          report();
          return true;
        });
    },
    inputsChanged() {
      if (phase.kind === 'complete' && state.settings()?.useInputPinMemory)
        phase = { kind: 'complete', countersAt: clock.monotonic() };
    },
  };
}
