/** Whether one device is connected, under which name, what is read of it before that, and what is reported of it. */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Rs485Report, SessionFault } from '../contract/settings.ts';
import { type Asking, askVendor, type DeviceSession } from './device-session.ts';
import { type DeviceState, hwIdOf } from './device-state.ts';
import type { Identity } from './protocol/messages.ts';

export interface Presence {
  connected(): boolean;
  /** Everything was read in its session. False: another device that is connected has its name. */
  connect(): boolean;
  disconnect(): void;
  /** After each exchange: whether it answered, and whether a session stands. After some time without it counts as gone. */
  exchanged(answered: boolean, isOnline: boolean): void;
  /** It has not answered for so long that nothing is worth waiting for. */
  isGone(): boolean;
  /** `hearsay`: anybody may have said it. */
  identified(identity: Identity, hearsay: boolean): void;
  /** Only when something is new, unless `again`. */
  report(again?: boolean): void;
  /** Another device that is connected has its name. */
  isConflict(): boolean;
}

export interface PresenceOptions {
  address: number;
  clock: Clock;
  log: DriverLog;
  state: DeviceState;
  security(): NonNullable<Rs485Report['security']>;
  /** Why there is no session with it, though it answers. */
  sessionFault(): SessionFault | null;
  /** Names the pending key, once the session that stands proves it. */
  provenKey(): string | undefined;
  pulse(): Rs485Report['pulse'];
  /** Takes the name for this device; false: another one that is connected has it. */
  claim(hwId: string): boolean;
  /** Another one that is connected has the name. */
  isTaken(hwId: string): boolean;
  reportState(report: Rs485Report): void;
  /** Another device is where one was that is known. */
  exchanged(): void;
  /** It is connected no more. */
  lost(): void;
}

/** A device that is not heard of inside a session for so long is off-line (5.7). */
const OFFLINE_AFTER_MS = 8_000;
/** More than the bad luck of a bad wire: it is asked half a dozen times meanwhile. */
const GONE_AFTER_MS = 1_500;

export function openPresence(options: PresenceOptions): Presence {
  const { address, clock, log, state } = options;
  let connected = false;
  let isConflict = false;
  let withoutSince: number | undefined;
  let silentSince: number | undefined = Number.NEGATIVE_INFINITY;
  let reported = '';

  function report(again = false): void {
    const { security, pulse } = options;
    const sessionFault = isGone() ? null : options.sessionFault();
    const provenKey = options.provenKey();
    const whole = state.report({
      connected,
      security: security(),
      sessionFault,
      pulse: connected ? pulse() : null,
      ...(provenKey !== undefined && { provenKey }),
    });
    // A device that only claims a name proves nothing about the device that has it.
    if (!whole || (!connected && options.isTaken(whole.hwId))) return;
    const { readAt: _, ...facts } = whole;
    const text = JSON.stringify(facts);
    if (text === reported && !again) return;
    reported = text;
    options.reportState(whole);
  }

  function disconnect(): void {
    if (!connected) return;
    connected = false;
    options.lost();
    report();
  }

  const isGone = () => silentSince !== undefined && clock.monotonic() - silentSince >= GONE_AFTER_MS;
  return {
    isGone,
    report,
    disconnect,
    connected: () => connected,
    isConflict: () => isConflict,
    connect() {
      const hwId = state.hwId();
      if (hwId === undefined) return false;
      isConflict = !options.claim(hwId);
      if (isConflict) return false;
      connected = true;
      report();
      return true;
    },
    exchanged(answered, isOnline) {
      silentSince = answered ? undefined : (silentSince ?? clock.monotonic());
      withoutSince = isOnline ? undefined : (withoutSince ?? clock.monotonic());
      const isLost = withoutSince !== undefined && clock.monotonic() - withoutSince >= OFFLINE_AFTER_MS;
      if (isLost || isGone()) disconnect();
    },
    identified(identity, hearsay) {
      // A name in clear text does not move a device from its address.
      if (hearsay && connected) return;
      const gone = state.report({ connected: false, security: 'none', sessionFault: null, pulse: null });
      const isOther = state.meet(identity);
      if (isOther && gone) options.exchanged();
      if (isOther && gone && connected) {
        connected = false;
        options.lost();
        options.reportState({ ...gone, levels: {} });
        log.warn(
          { address, before: gone.hwId, now: hwIdOf(identity) },
          'another device answers where one was',
        );
      }
      if (!connected) report();
    },
  };
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

/** Shorter than sixteen activations of an input take: its counter has four bits. */
const COUNTERS_EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const DEADLINE_MS = 5_000;

type Phase =
  | { kind: 'none' }
  | { kind: 'due'; at: number }
  | { kind: 'reading' }
  | { kind: 'complete'; countersAt: number };

/**
 * Reads what a device of our own vendor code has beyond the standard: all of it once a session is online, after which it is
 * connected; its counters every second. Where it cannot count as connected yet it is read again.
 */
export function openDeviceReadout(
  {
    clock,
    log,
    address,
    closing,
  }: Pick<PresenceOptions, 'clock' | 'log' | 'address'> & { closing: AbortSignal },
  state: DeviceState,
  session: DeviceSession,
  { connect, report }: Pick<Presence, 'connect' | 'report'>,
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
