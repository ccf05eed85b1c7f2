/** PINs and cards of a lock (ZCL 7.3.2.17.6 and following): users by their number, one credential of each kind. */
import { bytes, type Reader, u16 } from '../../bytes.ts';
import { type Answer, type Cluster, responded } from '../../zcl/cluster.ts';

export type Kind = 'pin' | 'rfid';

export interface Credential {
  user: number;
  /** 1 enabled, 3 disabled; 0 is no one. */
  status: number;
  /** 0 unrestricted, 1 year-day, 2 week-day, 3 master, 4 non-access. */
  type: number;
  code: Buffer;
}

export interface Users {
  commands: Cluster['commands'];
  find(kind: Kind, code: Uint8Array): Credential | undefined;
  /** At its keypad; null: removed. */
  program(change: { user: number; pin: string | null }): void;
  unlimitPin(user: number): void;
  list(kind: Kind): Credential[];
}

export const USERS_MAX = 250;
export const PIN_LENGTHS = [4, 8] as const;
export const RFID_LENGTHS = [4, 10] as const;
/** Of the responses to setting a code: 7.3.2.17.7. */
const SET = { success: 0, failure: 1, memoryFull: 2, duplicate: 3 };
const AVAILABLE = 0;
const ENABLED = 1;
const UNRESTRICTED = 0;
const UNSUPPORTED_TYPE = 0xff;
/** ProgrammingEventCode: added, deleted, changed. */
const PROGRAMMED = { pin: { added: 2, deleted: 3, changed: 4 }, rfid: { added: 5, deleted: 6, changed: 5 } };

export interface UsersOptions {
  initial: Record<Kind, { user: number; code: Buffer }[]>;
  /** Of each kind. */
  codesMax: number;
  masksCodes: boolean;
  /** It says that it took a code, and did not. */
  forgets(): boolean;
  ignoresTypes(): boolean;
  /** A programming event. */
  programmed(source: 'keypad' | 'rf', code: number, credential: Credential): void;
}

export function openUsers({ initial, programmed, ...options }: UsersOptions): Users {
  const tableOf = (kind: Kind) =>
    new Map<number, Credential>(
      initial[kind].map(({ user, code }) => [user, { user, code, status: ENABLED, type: 0 }]),
    );
  const tables = { pin: tableOf('pin'), rfid: tableOf('rfid') };
  const find = (kind: Kind, code: Uint8Array) =>
    [...tables[kind].values()].find((one) => one.status === ENABLED && one.code.equals(code));

  function set(kind: Kind, input: Reader): Answer {
    const command = kind === 'pin' ? 0x05 : 0x16;
    const [user, status, type] = [input.u16(), input.u8(), input.u8()];
    const code = Buffer.from(input.bytes(input.u8()));
    const [shortest, longest] = kind === 'pin' ? PIN_LENGTHS : RFID_LENGTHS;
    const answer = (result: number) => responded(command, Buffer.of(result));
    const isDigits = kind === 'rfid' || code.every((byte) => byte >= 0x30 && byte <= 0x39);
    if (code.length < shortest || code.length > longest || !isDigits) return answer(SET.failure);
    const before = tables[kind].get(user);
    if (user >= USERS_MAX || (!before && tables[kind].size >= options.codesMax))
      return answer(SET.memoryFull);
    const same = [...tables[kind].values()].find((one) => one.user !== user && one.code.equals(code));
    if (same) return answer(SET.duplicate);
    if (options.forgets()) return answer(SET.success);
    const credential = {
      user,
      status: status === AVAILABLE ? ENABLED : status,
      type: options.ignoresTypes() ? 0 : type,
      code,
    };
    tables[kind].set(user, credential);
    programmed('rf', before ? PROGRAMMED[kind].changed : PROGRAMMED[kind].added, credential);
    return answer(SET.success);
  }
  function get(kind: Kind, input: Reader): Answer {
    const user = input.u16();
    const one = tables[kind].get(user);
    const command = kind === 'pin' ? 0x06 : 0x17;
    if (!one) return responded(command, bytes(u16(user), AVAILABLE, UNSUPPORTED_TYPE, 0));
    const code = options.masksCodes ? Buffer.alloc(one.code.length, 0xff) : one.code;
    return responded(command, bytes(u16(user), one.status, one.type, code.length, code));
  }
  function clear(kind: Kind, user: number): void {
    const one = tables[kind].get(user);
    if (!one) return;
    tables[kind].delete(user);
    programmed('rf', PROGRAMMED[kind].deleted, one);
  }
  function clearAll(kind: Kind): void {
    for (const user of [...tables[kind].keys()]) clear(kind, user);
  }
  /** A user's PIN stands for the user. */
  const change = (user: number, changes: Partial<Credential>): boolean => {
    const kinds = (['pin', 'rfid'] as const).filter((kind) => tables[kind].has(user));
    for (const kind of kinds) Object.assign(tables[kind].get(user) ?? {}, changes);
    return kinds.length > 0;
  };
  return {
    find,
    list: (kind) => [...tables[kind].values()],
    unlimitPin(user) {
      const one = tables.pin.get(user);
      if (one) one.type = UNRESTRICTED;
    },
    program({ user, pin }) {
      const before = tables.pin.get(user);
      const code = pin === null ? before?.code : Buffer.from(pin);
      if (!code) return;
      const credential = { user, status: ENABLED, type: 0, code };
      if (pin === null) tables.pin.delete(user);
      else tables.pin.set(user, credential);
      const kind = pin === null ? 'deleted' : before ? 'changed' : 'added';
      programmed('keypad', PROGRAMMED.pin[kind], credential);
    },
    commands: commandsOf({
      set,
      get,
      clear,
      clearAll,
      change,
      anyOf: (user) => tables.pin.get(user) ?? tables.rfid.get(user),
    }),
  };
}

interface Deeds {
  set(kind: Kind, input: Reader): Answer;
  get(kind: Kind, input: Reader): Answer;
  clear(kind: Kind, user: number): void;
  clearAll(kind: Kind): void;
  change(user: number, changes: Partial<Credential>): boolean;
  anyOf(user: number): Credential | undefined;
}

function commandsOf({ set, get, clear, clearAll, change, anyOf }: Deeds): Cluster['commands'] {
  const done = (command: number, isDone = true) => responded(command, Buffer.of(isDone ? 0 : 1));
  return {
    5: (input) => set('pin', input),
    6: (input) => get('pin', input),
    7(input) {
      clear('pin', input.u16());
      return done(0x07);
    },
    8() {
      clearAll('pin');
      return done(0x08);
    },
    9: (input) => done(0x09, change(input.u16(), { status: input.u8() })),
    10(input) {
      const user = input.u16();
      return responded(0x0a, bytes(u16(user), anyOf(user)?.status ?? AVAILABLE));
    },
    20: (input) => done(0x14, change(input.u16(), { type: input.u8() })),
    21(input) {
      const user = input.u16();
      return responded(0x15, bytes(u16(user), anyOf(user)?.type ?? UNSUPPORTED_TYPE));
    },
    22: (input) => set('rfid', input),
    23: (input) => get('rfid', input),
    24(input) {
      clear('rfid', input.u16());
      return done(0x18);
    },
    25() {
      clearAll('rfid');
      return done(0x19);
    },
  };
}
