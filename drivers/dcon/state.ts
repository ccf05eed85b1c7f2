/** What is known of one module, and what its parts share: polling.ts reads it, outputs.ts switches it. */

import type { Outstanding } from '../bus/reply-confirmation.ts';
import { busWarning } from '../contract/bus-warnings.ts';
import type { Clock, DriverLog } from '../contract/driver.ts';
import type { Rs485Settings } from '../contract/settings.ts';
import type { Notifier } from '../contract/waiting.ts';
import type { Mutex } from '../rs485/mutex.ts';
import type { RelayFaults } from '../rs485/relay-faults.ts';
import type { WatchdogFeed, WatchdogPauses } from '../rs485/watchdog-feed.ts';
import type { Inputs } from './inputs.ts';
import type { LivePulses } from './live-pulses.ts';
import { aa, type Pins } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import type { ScriptRunner } from './script-runner.ts';
import type { Guard, Known } from './scripts.ts';

export type Stage =
  /** Not heard, or not any more. */
  | { kind: 'silent' }
  /** It answers; what it is and what its outputs do is still to be asked. */
  | { kind: 'heard' }
  /** Its outputs are as they are meant to be. null: it is not in the table (module-types.ts). */
  | { kind: 'ready'; type: ModuleType | null };

export interface ModuleState {
  readonly address: number;
  readonly hwId: string;
  stage: Stage;
  known: Known | null;
  guard: Guard;
  pins: Pins | null;
  /** When they were asked for, at the earliest. Monotonic milliseconds. */
  pinsAskedAt: number;
  /** The settings in force. They are kept here, for the modules have no place for them. */
  applied: { version: number; settings: Rs485Settings } | null;
  /** Outputs that were ordered to be on, or seen on, since they were last read back as off. */
  maybeOn: number;
  /** The output that its watchdog is to switch off, which is tested. A mask. */
  tested: number;
  /** Since when it is not known what its outputs do; undefined: it was brought up since. Monotonic milliseconds. */
  unknownSince: number | undefined;
  /** Since when an output may be on that is not wanted; undefined: none is. Monotonic milliseconds. */
  straySince: number | undefined;
  /** Tries to switch it off, in a row. */
  offFailures: number;
  /** Asked nothing: its watchdog is to switch an output off (switch-off.ts). */
  isLeftAlone: boolean;
  /** The bring-up that is under way. */
  bringingUp: AbortController | undefined;
  /** How often a poll has shown that its outputs may have gone off by themselves: a restart, or its watchdog. */
  suspectedResets: number;
  /** Its outputs are switched off for good (outputs.ts). */
  isClosing: boolean;
}

export interface ModuleParts {
  readonly state: ModuleState;
  readonly pulses: LivePulses;
  readonly inputs: Inputs;
  readonly runner: ScriptRunner;
  /** What is switched and read back is not mixed with what another command does. */
  readonly mutex: Mutex;
  /** The modules of a bus are brought up one after the other. */
  readonly bringUpMutex: Mutex;
  /** When there is something to switch, or to bring up: notifies the two that follow. */
  readonly notifier: Pick<Notifier, 'notify'>;
  readonly offNotifier: Notifier;
  readonly upNotifier: Notifier;
  readonly faults: RelayFaults;
  readonly watchdogMs: number;
  typeOf(name: string): ModuleType | null;
  readonly clock: Clock;
  readonly log: DriverLog;
  /** Throws BUSY while a watchdog of the bus is tested: no module is fed, and an output would go off before its time. */
  assertFed(): void;
  /** Its watchdog may have run out for the sake of another module (driver.ts). */
  wasStarved(): boolean;
  /** Why its watchdog may have run out between two requests; undefined: it was fed in time, or says itself that it ran out. */
  unarmed(): string | undefined;
  lapsedMs: WatchdogFeed['lapsedMs'];
  /** Of its watchdog. */
  pauses: WatchdogPauses;
  /** The same exchange; what feeds the watchdog is noted. */
  feeding: WatchdogFeed['feeding'];
  outstanding: Outstanding;
  /** Reports the module if something that is reported has changed. */
  changed(): void;
}

/** Nothing is known of it yet. */
export function newState({ address, hwId }: Pick<ModuleState, 'address' | 'hwId'>, now: number): ModuleState {
  return {
    address,
    hwId,
    stage: { kind: 'silent' },
    known: null,
    guard: { kind: 'none', reason: busWarning('MODULE_NOT_HEARD', { address: aa(address) }) },
    pins: null,
    pinsAskedAt: now,
    applied: null,
    maybeOn: 0,
    tested: 0,
    unknownSince: now,
    straySince: undefined,
    offFailures: 0,
    isLeftAlone: false,
    bringingUp: undefined,
    suspectedResets: 0,
    isClosing: false,
  };
}

/** Outputs that may be on though no pulse is live. */
export function strayOutputs({ state, pulses, clock }: ModuleParts): number {
  return state.maybeOn & ~pulses.live(clock.monotonic()) & ~state.tested;
}

/** Since when an output may be on that is not wanted; undefined: that cannot be. */
export function unsafeSince(parts: ModuleParts): number | undefined {
  const { state, clock } = parts;
  if (strayOutputs(parts) === 0) state.straySince = undefined;
  else state.straySince ??= clock.monotonic();
  return state.unknownSince ?? state.straySince;
}
