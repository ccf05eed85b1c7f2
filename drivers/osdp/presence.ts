/** Whether one device is connected, under which name, and what is reported of it. */
import type { Clock, DriverLog } from '../contract/driver.ts';
import type { Rs485Report, SessionFault } from '../contract/settings.ts';
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
