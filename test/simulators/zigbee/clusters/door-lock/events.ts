/** Events of a lock (ZCL 7.3.2.18): what of them the masks let through, and the log. */
import { bytes, u16, u32 } from '../../bytes.ts';
import type { Time } from '../../time.ts';
import type { Executed, Source } from './bolt.ts';
import { type OperationStyle, openOperations, type Saying } from './operations.ts';
import type { Credential, Kind } from './users.ts';

/** OperationEventSource; of what the lock does by itself it is that of the person at it. */
const SOURCE: Record<Source, number> = { keypad: 0, rf: 1, manual: 2, lock: 2, rfid: 3 };
/** OperationEventCode. */
export const OPERATION = {
  lock: 1,
  unlock: 2,
  unlockFailPin: 5,
  unlockFailSchedule: 6,
  autoLock: 10,
  manualLock: 13,
  manualUnlock: 14,
} as const;
const NO_USER = 0xffff;
const PROGRAMMING_EVENT = 0x21;

/** By source: bit n lets through the code n. 0x41 to 0x47 of the cluster. */
export interface Masks {
  alarm: number;
  keypad: number;
  rf: number;
  manual: number;
  rfid: number;
  keypadProgramming: number;
  rfProgramming: number;
  rfidProgramming: number;
}

export interface Logged {
  id: number;
  monotonicMs: number;
  source: number;
  code: number;
  user: number;
}

export interface Events {
  operation(source: Source, code: number, user: number | null): void;
  /** What the bolt did. */
  moved(done: Executed): void;
  sayAgain(): void;
  /** A code was taken. */
  typed(kind: Kind, code: Uint8Array): void;
  programming(source: 'keypad' | 'rf', code: number, credential: Omit<Credential, 'code'>): void;
  log(): Logged[];
}

const LOG_MAX = 32;
const ZIGBEE_EPOCH_MS = Date.UTC(2000, 0, 1);
export const localSeconds = () => Math.floor((Date.now() - ZIGBEE_EPOCH_MS) / 1_000);

export function openEvents(time: Time, masks: Masks, saying: Saying, style: OperationStyle): Events {
  const { notify } = saying;
  const operations = openOperations(style, saying);
  const log: Logged[] = [];
  let logged = 0;
  const localTime = () => u32(localSeconds());
  const passes = (mask: number, code: number) => (mask & (1 << code)) !== 0;

  function operation(source: Source, code: number, user: number | null): void {
    const number = SOURCE[source];
    logged += 1;
    log.push({ id: logged, monotonicMs: time.now(), source: number, code, user: user ?? NO_USER });
    if (log.length > LOG_MAX) log.shift();
    const mask = [masks.keypad, masks.rf, masks.manual, masks.rfid][number] ?? 0;
    if (passes(mask, code) || style !== 'standard')
      operations.say({ source, number, code, user: user ?? NO_USER, localTime: localTime() });
  }
  return {
    operation,
    sayAgain: operations.sayAgain,
    typed: operations.typed,
    moved({ what, source, user }) {
      if (what === 'jam') return;
      if (what === 'autoRelock') return operation('lock', OPERATION.autoLock, null);
      const isManual = source === 'manual';
      const lock = isManual ? OPERATION.manualLock : OPERATION.lock;
      const unlock = isManual ? OPERATION.manualUnlock : OPERATION.unlock;
      operation(source, what === 'lock' ? lock : unlock, user);
    },
    programming(source, code, { user, type, status }) {
      const mask = source === 'rf' ? masks.rfProgramming : masks.keypadProgramming;
      if (!passes(mask, code)) return;
      const head = bytes(SOURCE[source], code, u16(user), 0, type, status);
      notify(PROGRAMMING_EVENT, bytes(head, localTime(), 0));
    },
    log: () => [...log],
  };
}
