/** What is known of one module, and what its parts share: polling.ts reads it, outputs.ts switches it. */

import type { Bell } from '../bus/pause.ts';
import type { Clock, DriverLog } from '../driver.ts';
import type { Mutex } from '../rs485/mutex.ts';
import type { WatchdogFeed } from '../rs485/watchdog-feed.ts';
import type { WatchdogPauses } from '../rs485/watchdog-pauses.ts';
import type { Rs485Settings } from '../settings.ts';
import type { Inputs } from './inputs.ts';
import type { Pins } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import type { Pulses } from './pulses.ts';
import type { Guard, Known } from './scripts.ts';
import type { Unheard } from './sure.ts';
import type { Talk } from './talk.ts';

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
  /** The settings in force. They are kept here, for the modules have no place for them. */
  applied: { version: number; settings: Rs485Settings } | null;
  /** Outputs that were told to be on, or seen on, since they were last read back as off. */
  maybeOn: number;
  /** Since when an output may be on that nobody wants on; undefined: that cannot be. Monotonic milliseconds. */
  unsafeSince: number | undefined;
  /** Its outputs are switched off for good (outputs.ts). */
  isClosing: boolean;
}

export interface Works {
  readonly state: ModuleState;
  readonly pulses: Pulses;
  readonly inputs: Inputs;
  readonly talk: Talk;
  /** What is switched and read back is not mixed with what another command does. */
  readonly mutex: Mutex;
  /** The modules of a bus are brought up one after the other. */
  readonly turns: Mutex;
  /** Rung when there is something to switch, or to bring up. */
  readonly bell: Bell;
  readonly watchdogMs: number;
  readonly clock: Clock;
  readonly log: DriverLog;
  /** Throws BUSY while a watchdog of the bus is tested: no module is fed, and an output would go off before its time. */
  assertFed(): void;
  /** Its watchdog may have run out for the sake of another module (feed.ts). */
  wasStarved(): boolean;
  /** Why its watchdog may have run out between two requests; undefined: it was fed in time, or says itself that it ran out. */
  unarmed(): string | undefined;
  lapsedMs: WatchdogFeed['lapsedMs'];
  /** Of its watchdog. */
  pauses: WatchdogPauses;
  /** The same exchange; what feeds the watchdog is noted. */
  feeding: WatchdogFeed['feeding'];
  unheard: Unheard;
  /** Reports the module if something that is reported has changed. */
  changed(): void;
}

/** Outputs that may be on though no pulse is live. */
export function strayOutputs({ state, pulses, clock }: Works): number {
  return state.maybeOn & ~pulses.live(clock.monotonic());
}
