/**
 * The locks of Onesti Products: EasyAccess EasyCodeTouch and Nimly, endpoint 11. They report the charge of the battery in
 * percent. What happens at the lock is an operation event that ends early (drivers/zigbee/herdsman/credible.ts) and has codes of the
 * maker's, or a report of an attribute of the maker's, without a manufacturer code (LAST_OPERATION). Another such attribute
 * (0x0101) has the digits of the PIN that was typed: nothing of it is taken in (drivers/zigbee/herdsman/credible.ts).
 *
 * AutoRelockTime says 1 where the lock locks by itself after some 7 s, and 0 where it does not.
 *
 * Source: device list of zigbee-herdsman-converters (onesti and easyaccess, 2026-08-22; pull request 13233); frames in the
 * issues 4253 of deconz-rest-plugin, 5235 of zha-device-handlers and 17205 of zigbee2mqtt. Pure.
 */
import type { EventDetail, Facts, Heard } from '../messages.ts';
import { field, integer, UINT32_LAST } from '../values.ts';
import { inPercent, type LockFamily, named, withoutProof } from './family.ts';

/** bitmap32, the lowest byte last: source, action, user (16 bits). */
export const LAST_OPERATION = 0x01_00;

const MAKERS = ['Onesti Products AS', 'EasyAccess'];

export const NIMLY: LockFamily = {
  name: 'nimly',
  matches: named(MAKERS, [
    ...['NimlyPRO', 'NimlyCode', 'NimlyTouch', 'NimlyIn', 'NimlyPRO24', 'NimlyShared', 'NimlyCodePRO'],
    ...['easyCodeTouch_v1', 'EasyCodeTouch', 'EasyFingerTouch'],
  ]),
  factsOf: (heard, facts) => operations(heard, inPercent(heard, facts)),
};

/** The older module: half percent, as the standard says. */
export const EASY_CODE: LockFamily = {
  name: 'easycode',
  matches: named(MAKERS, ['EasyCode903G2.1']),
  factsOf: operations,
};

function operations(heard: Heard, facts: Facts): Facts {
  if (heard.cluster !== 'closuresDoorLock') return facts;
  if (heard.type === 'commandOperationEventNotification') return eventOf(heard.data, facts);
  if (heard.type !== 'attributeReport') return facts;
  const value = integer(field(heard.data, `${LAST_OPERATION}`), 0, UINT32_LAST);
  return value === undefined ? facts : { ...facts, ...reportedOperation(value) };
}

/** By the maker `locked` and `unlocked`, by the standard `unknown` and `locked`. */
const AMBIGUOUS = [0, 1];
const FINGERPRINT_LOCK = 0x10;
const FINGERPRINT_UNLOCK = 0x11;
const [LOCKED, UNLOCKED] = [1, 2];

function eventOf(data: unknown, facts: Facts): Facts {
  const { event } = facts;
  // By radio and by itself the source is 0xff, and the code sure of nothing: `locked` was captured before an unlock.
  if (!event || event.source === null) return {};
  const code = field(data, 'opereventcode');
  // By somebody at the lock, if it was an unlock: what the bolt reports then proves nothing of a command.
  if (typeof code === 'number' && AMBIGUOUS.includes(code))
    return { event: { ...event, what: 'unknown' }, unlockedByRadio: false };
  const byFinger = (what: string): EventDetail => ({ ...event, what, source: 'fingerprint' });
  if (code === FINGERPRINT_LOCK) return { event: byFinger('locked'), movedTo: LOCKED };
  if (code === FINGERPRINT_UNLOCK)
    return { event: byFinger('unlocked'), movedTo: UNLOCKED, unlockedByRadio: false };
  return withoutProof(facts);
}

/** 5: by radio, by itself, or from the inside: newer modules do not say which. */
const SOURCES: ReadonlyMap<number, string> = new Map([
  [0, 'rf'],
  [2, 'keypad'],
  [3, 'fingerprint'],
  [4, 'rfid'],
  [10, 'manual'],
]);
const ACTIONS: ReadonlyMap<number, string> = new Map([
  [LOCKED, 'locked'],
  [UNLOCKED, 'unlocked'],
]);
const USER_MAX = 0xff_fe;

function reportedOperation(value: number): Facts {
  const action = (value >>> 16) & 0xff;
  const what = ACTIONS.get(action);
  if (what === undefined) return {};
  const source = SOURCES.get(value >>> 24) ?? null;
  const userId = integer(value & 0xff_ff, 0, USER_MAX) ?? null;
  const isUnlock = action === UNLOCKED && source !== null;
  return withoutProof({
    lastOperation: value,
    event: { kind: 'operation', what, source, userId },
    movedTo: action,
    ...(isUnlock && { unlockedByRadio: source === 'rf' }),
  });
}
