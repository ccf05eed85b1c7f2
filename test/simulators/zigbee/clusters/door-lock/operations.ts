/**
 * What locks send of an operation: as the standard has it, and as makers do (families.ts, which names the sources). A lock with
 * a style of its own has no event masks.
 */
import { bytes, u16 } from '../../bytes.ts';
import { TYPE } from '../../zcl/types.ts';
import type { Source } from './bolt.ts';
import type { Kind } from './users.ts';

export const OPERATION_STYLES = ['standard', 'noText', 'easyCode', 'nimly', 'control4', 'none'] as const;
export type OperationStyle = (typeof OPERATION_STYLES)[number];

/** With the codes of the standard: 7.3.2.18. */
export interface Operation {
  source: Source;
  /** OperationEventSource. */
  number: number;
  code: number;
  user: number;
  localTime: Buffer;
}

/** Ways to say something. */
export interface Saying {
  notify(command: number, payload: Buffer): void;
  raise(code: number, cluster?: number): void;
  reportUnasked(records: Uint8Array): void;
}

export interface Operations {
  say(operation: Operation): void;
  /** Says the last one once more, as a lock does whose attribute has it. */
  sayAgain(): void;
  typed(kind: Kind, code: Uint8Array): void;
}

const OPERATION_EVENT = 0x20;
const UNLOCKS = [2, 9, 12, 14];
const LOCKS = [1, 7, 8, 10, 11, 13];

export function openOperations(style: OperationStyle, saying: Saying): Operations {
  const say: Record<OperationStyle, (operation: Operation) => void> = {
    // The PIN is never sent (SendPINOverTheAir is false): an empty string.
    standard: ({ number, code, user, localTime }) =>
      saying.notify(OPERATION_EVENT, bytes(number, code, u16(user), 0, localTime, 0)),
    noText: ({ number, code, user, localTime }) =>
      saying.notify(OPERATION_EVENT, bytes(number, code, u16(user), 0, localTime)),
    easyCode(operation) {
      const said = easyCodeOf(operation);
      if (said) saying.notify(OPERATION_EVENT, bytes(...said, u16(operation.user), 0, 0, 0, 0));
    },
    nimly(operation) {
      const action = actionOf(operation);
      const value = bytes(u16(operation.user), action ?? 0, NIMLY_SOURCES[operation.source]);
      if (action !== undefined) saying.reportUnasked(bytes(u16(0x0100), TYPE.bitmap32, value));
    },
    control4(operation) {
      const alarm = control4Of(operation);
      if (alarm !== undefined) saying.raise(alarm, CONTROL4_CLUSTER);
    },
    none: () => undefined,
  };
  let last: Operation | undefined;
  return {
    say(operation) {
      last = operation;
      say[style](operation);
    },
    sayAgain: () => last && say[style](last),
    typed(kind, code) {
      // The digits, as they were typed.
      if (style === 'nimly' && kind === 'pin')
        saying.reportUnasked(bytes(u16(0x0101), TYPE.octets, code.length, Buffer.from(code)));
    },
  };
}

function actionOf({ code }: Operation): number | undefined {
  if (UNLOCKS.includes(code)) return 2;
  return LOCKS.includes(code) ? 1 : undefined;
}

/** By radio, by itself and from the inside alike: 5. */
const NIMLY_SOURCES: Record<Source, number> = { keypad: 2, rf: 5, manual: 10, rfid: 4, lock: 5 };

/** Source and code. By radio and by itself: 0xff, with 13 for a lock and 14 for an unlock. */
function easyCodeOf(operation: Operation): [number, number] | undefined {
  const action = actionOf(operation);
  if (action === undefined) return undefined;
  const isUnlock = action === 2;
  switch (operation.source) {
    case 'keypad':
      return [0, isUnlock ? 2 : 0];
    case 'rfid':
      return [3, isUnlock ? 2 : 0];
    case 'manual':
      return [2, isUnlock ? 1 : 0];
    default:
      return [0xff, isUnlock ? 14 : 13];
  }
}

const CONTROL4_CLUSTER = 0xfc00;
function control4Of(operation: Operation): number | undefined {
  const action = actionOf(operation);
  if (action === undefined) return undefined;
  const codes: Record<Source, [lock: number, unlock: number]> = {
    keypad: [18, 19],
    rf: [24, 25],
    manual: [21, 22],
    rfid: [18, 19],
    lock: [27, 25],
  };
  return codes[operation.source][action - 1];
}
