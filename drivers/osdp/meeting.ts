/** What is read of a device of ours beyond the standard: all of it once a session stands, and its counters every second. */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { DeviceState } from './device-state.ts';
import type { Asking, Talk } from './talk.ts';
import { askVendor } from './vendor-requests.ts';

export interface Meeting {
  /** A session stands. */
  begin(): void;
  /** It does no more: what is being read in it says nothing. */
  end(): void;
  /** There is nothing else to ask: reads what is due. */
  go(): void;
  /** Its counters have something to tell. */
  inputsChanged(): void;
}

export interface MeetingOptions {
  clock: Clock;
  log: DriverLog;
  address: number;
  closing: AbortSignal;
  talk: Talk;
  state: DeviceState;
  /** Everything was read. False: it cannot count as met yet. */
  met(): boolean;
  /** Something was read again. */
  changed(): void;
}

/** Far less than sixteen activations of an input take, which is what its counter can tell. */
const COUNTERS_EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const DEADLINE_MS = 5_000;

type Phase =
  | { kind: 'none' }
  | { kind: 'due'; at: number }
  | { kind: 'reading' }
  | { kind: 'met'; countersAt: number };

export function openMeeting(options: MeetingOptions): Meeting {
  const { clock, log, address, closing, talk, state } = options;
  let phase: Phase = { kind: 'none' };
  let isReading = false;

  const asking = (): Asking => ({
    class: 'settings',
    deadline: clock.monotonic() + DEADLINE_MS,
    signal: closing,
  });

  async function readSettings(): Promise<void> {
    state.madeKnown(await askVendor(talk, { kind: 'readSettings' }, 'settings', asking()));
  }

  async function readCounters(): Promise<void> {
    state.madeKnown(await askVendor(talk, { kind: 'status' }, 'status', asking()));
    if (state.hasOtherSettings()) await readSettings();
  }

  async function readAll(): Promise<void> {
    try {
      state.madeKnown(await askVendor(talk, { kind: 'product' }, 'product', asking()));
      await readSettings();
      await readCounters();
    } catch (error) {
      if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
      state.setOurs(false);
    }
  }

  /** Only what is read in the session that stands now counts. */
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
            ? { kind: 'met', countersAt: now + COUNTERS_EVERY_MS }
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
    go() {
      if (isReading) return;
      const now = clock.monotonic();
      if (phase.kind === 'due' && now >= phase.at)
        read(async () => (state.isOurs() ? await readAll() : undefined), options.met);
      else if (phase.kind === 'met' && state.isOurs() && now >= phase.countersAt)
        read(readCounters, () => {
          options.changed();
          return true;
        });
    },
    inputsChanged() {
      if (phase.kind === 'met' && state.settings()?.useInputPinMemory)
        phase = { kind: 'met', countersAt: clock.monotonic() };
    },
  };
}
