/** The door lock cluster (ZCL 7.3). */
import type { ActiveFaults } from '../../active-faults.ts';
import { bytes, type Reader, u16 } from '../../bytes.ts';
import type { LockPlan } from '../../plan.ts';
import type { Time } from '../../time.ts';
import {
  type Answer,
  type Attribute,
  type Cluster,
  type Context,
  constant,
  fieldOf,
  responded,
} from '../../zcl/cluster.ts';
import { ZCL_STATUS } from '../../zcl/frame.ts';
import { TYPE, type Value } from '../../zcl/types.ts';
import { type Bolt, DOOR, type DoorName, LOCK, MODE, type Move, openBolt, type Source } from './bolt.ts';
import { type Events, localSeconds, type Masks, OPERATION, openEvents } from './events.ts';
import {
  HOLIDAYS,
  openSchedules,
  type Schedules,
  WEEK_DAYS_PER_USER,
  YEAR_DAYS_PER_USER,
} from './schedules.ts';
import { type Kind, openUsers, PIN_LENGTHS, RFID_LENGTHS, USERS_MAX, type Users } from './users.ts';

export const DOOR_LOCK = 0x0101;
const JAMMED_ALARM = 0;
const WRONG_CODE_ALARM = 4;
const FORCED_ALARM = 6;
const SUCCESS = 0;
const FAILURE = 1;

export interface DoorLock {
  cluster: Cluster;
  bolt: Bolt;
  users: Users;
  schedules: Schedules;
  events: Events;
  masks: Masks;
  /** Somebody types a PIN, or holds a card to it. */
  present(kind: Kind, code: Buffer): void;
  manual(what: 'lock' | 'unlock'): void;
  setDoor(door: DoorName): void;
  alarm(code: number): void;
}

export interface DoorLockOptions {
  time: Time;
  plan: LockPlan;
  activeFaults: ActiveFaults;
  notify(command: number, payload: Buffer): void;
  /** An alarm of this cluster, or of another one. */
  raise(code: number, cluster?: number): void;
  /** Reports attributes. */
  reportUnasked(records: Uint8Array): void;
  changed(): void;
}

interface Parts {
  options: DoorLockOptions;
  bolt: Bolt;
  users: Users;
  schedules: Schedules;
  events: Events;
  masks: Masks;
  settings: {
    needsPin: boolean;
    wrongLimit: number;
    lockoutSeconds: number;
    isLogging: boolean;
    language: string;
    volume: number;
    isOneTouch: boolean;
  };
}

export function openDoorLock(options: DoorLockOptions): DoorLock {
  const { time, plan, activeFaults, changed } = options;
  const all = plan.eventMasks;
  const masks: Masks = {
    alarm: all,
    keypad: all,
    rf: all,
    manual: all,
    rfid: all,
    keypadProgramming: all,
    rfProgramming: all,
    rfidProgramming: all,
  };
  const events = openEvents(time, masks, options, plan.operations);
  const alarm = (code: number) => {
    if (masks.alarm & (1 << code)) options.raise(code);
  };
  const bolt = openBolt({
    time,
    boltMs: plan.boltMs,
    relockSeconds: plan.autoRelockSeconds ?? 0,
    isJammed: activeFaults.isJammed,
    isStuck: activeFaults.isStuck,
    boasts: activeFaults.boasts,
    relocksMs: activeFaults.relocksMs,
    settled(done) {
      events.moved(done);
      if (done.what === 'jam') alarm(JAMMED_ALARM);
      changed();
    },
    boasted: (done) => events.moved(done),
  });
  const users = openUsers({
    initial: {
      pin: plan.pins.map(({ user, code }) => ({ user, code: Buffer.from(code) })),
      rfid: plan.rfids.map(({ user, code }) => ({ user, code: Buffer.from(code, 'hex') })),
    },
    codesMax: plan.codesMax,
    masksCodes: !plan.sendsPins,
    forgets: activeFaults.forgetsCodes,
    ignoresTypes: activeFaults.ignoresUserTypes,
    programmed: events.programming,
  });
  const settings = settingsOf(plan);
  const parts: Parts = {
    options,
    bolt,
    users,
    schedules: schedulesOf(options, users),
    events,
    masks,
    settings,
  };
  let wrong = 0;

  return {
    ...parts,
    alarm,
    cluster: { id: DOOR_LOCK, attributes: attributesOf(parts), commands: commandsHad(parts) },
    present(kind, code) {
      const source: Source = kind === 'pin' ? 'keypad' : 'rfid';
      const found = users.find(kind, code);
      // Table 7-13: keypad and cards are off in both.
      if (hasMode(parts, 'vacation', 'privacy')) return;
      wrong = found ? 0 : wrong + 1;
      if (found && parts.schedules.permits(found)) {
        events.typed(kind, code);
        return bolt.move({ what: 'unlock', source, user: found.user });
      }
      const failure = OPERATION[found ? 'unlockFailSchedule' : 'unlockFailPin'];
      events.operation(source, failure, found?.user ?? null);
      if (wrong === settings.wrongLimit) alarm(WRONG_CODE_ALARM);
    },
    manual: (what) => bolt.move({ what, source: 'manual' }),
    setDoor(door) {
      if (bolt.state.door !== DOOR[door]) bolt.state[door === 'closed' ? 'closed' : 'opened'] += 1;
      bolt.state.door = DOOR[door];
      if (door === 'forcedOpen') alarm(FORCED_ALARM);
      changed();
    },
  };
}

function schedulesOf({ plan, activeFaults }: DoorLockOptions, users: Users): Schedules {
  return openSchedules({
    changes: activeFaults.changesSchedules,
    now: localSeconds,
    beyond: plan.scheduleEnd,
    cleared(user) {
      if (plan.clearingUnlimitsPins) users.unlimitPin(user);
    },
  });
}

/** A holiday goes before what was written. */
const modeOf = ({ bolt, schedules }: Parts): number => schedules.holidayMode() ?? bolt.state.mode;

function hasMode(parts: Parts, ...names: (keyof typeof MODE)[]): boolean {
  return names.some((name) => MODE[name] === modeOf(parts));
}

function settingsOf({ requirePin: needsPin }: LockPlan): Parts['settings'] {
  const limits = { needsPin, wrongLimit: 5, lockoutSeconds: 30 };
  return { ...limits, isLogging: false, language: 'en', volume: 1, isOneTouch: false };
}

function attributesOf(parts: Parts): Record<number, Attribute> {
  const { options, bolt, masks, settings } = parts;
  const { plan, changed } = options;
  const { state } = bolt;
  const isWritable = { isWritable: true, changed };
  const masked = (key: keyof Masks) =>
    fieldOf(masks as Record<keyof Masks, Value>, key, TYPE.bitmap16, isWritable);
  const door: Record<number, Attribute> = {
    3: fieldOf(state, 'door', TYPE.enum8, { isReportable: true }),
    4: fieldOf(state, 'opened', TYPE.uint32),
    5: fieldOf(state, 'closed', TYPE.uint32),
  };
  const all: Record<number, Attribute> = {
    0: {
      type: TYPE.enum8,
      isReportable: !plan.keepsLockState,
      get: () => options.activeFaults.misreported() ?? state.lock,
    },
    1: constant(TYPE.enum8, 0),
    2: constant(TYPE.boolean, true, true),
    ...(plan.hasDoorSensor && door),
    16: constant(TYPE.uint16, 32),
    17: constant(TYPE.uint16, USERS_MAX),
    18: constant(TYPE.uint16, USERS_MAX),
    19: constant(TYPE.uint16, USERS_MAX),
    20: constant(TYPE.uint8, WEEK_DAYS_PER_USER),
    21: constant(TYPE.uint8, YEAR_DAYS_PER_USER),
    22: constant(TYPE.uint8, HOLIDAYS),
    23: constant(TYPE.uint8, PIN_LENGTHS[1]),
    24: constant(TYPE.uint8, PIN_LENGTHS[0]),
    25: constant(TYPE.uint8, RFID_LENGTHS[1]),
    26: constant(TYPE.uint8, RFID_LENGTHS[0]),
    32: fieldOf(settings, 'isLogging', TYPE.boolean, isWritable),
    33: fieldOf(settings, 'language', TYPE.string, isWritable),
    ...(plan.autoRelockSeconds !== null && {
      35: fieldOf(state, 'relockSeconds', TYPE.uint32, { isWritable: true, isReportable: true }),
    }),
    36: {
      ...fieldOf(settings, 'volume', TYPE.uint8),
      set(value) {
        // Silent, low, high.
        if (Number(value) > 2) return ZCL_STATUS.invalidValue;
        settings.volume = Number(value);
        return ZCL_STATUS.success;
      },
    },
    37: {
      type: TYPE.enum8,
      isReportable: true,
      get: () => modeOf(parts),
      set(value, cause) {
        const mode = Number(value);
        if (mode > MODE.passage || !(plan.supportedOperatingModes & (1 << mode)))
          return ZCL_STATUS.invalidValue;
        bolt.setMode(mode, cause);
        return ZCL_STATUS.success;
      },
    },
    38: constant(TYPE.bitmap16, plan.supportedOperatingModes),
    41: fieldOf(settings, 'isOneTouch', TYPE.boolean, isWritable),
    48: fieldOf(settings, 'wrongLimit', TYPE.uint8, isWritable),
    49: fieldOf(settings, 'lockoutSeconds', TYPE.uint8, isWritable),
    50: constant(TYPE.boolean, plan.sendsPins),
    51: fieldOf(settings, 'needsPin', TYPE.boolean, isWritable),
    64: masked('alarm'),
    65: masked('keypad'),
    66: masked('rf'),
    67: masked('manual'),
    68: masked('rfid'),
    69: masked('keypadProgramming'),
    70: masked('rfProgramming'),
    71: masked('rfidProgramming'),
  };
  for (const id of plan.lacksAttributes) delete all[id];
  return all;
}

function commandsHad(parts: Parts): Cluster['commands'] {
  const { lacksCommands } = parts.options.plan;
  const had = Object.entries(commandsOf(parts)).filter(([id]) => !lacksCommands.includes(Number(id)));
  return Object.fromEntries(had);
}

function commandsOf(parts: Parts): Cluster['commands'] {
  const { options, bolt, users, schedules, events, settings } = parts;

  /** Lock, unlock, toggle and unlock with timeout: a PIN may follow. */
  function actuate(command: number, input: Reader, { tsn, heardMs }: Context, what: Move['what']): Answer {
    const relockSeconds = command === 0x03 ? input.u16() : undefined;
    const code = input.left() > 0 ? input.bytes(input.u8()) : Buffer.alloc(0);
    const answer = (status: number) => responded(command, Buffer.of(status));
    const refusal = options.activeFaults.refusal();
    if (refusal !== undefined) return answer(refusal);
    if (hasMode(parts, 'privacy', 'noRf')) return answer(FAILURE);
    const user = users.find('pin', code)?.user;
    if (settings.needsPin && user === undefined) {
      events.operation('rf', OPERATION.unlockFailPin, null);
      return answer(FAILURE);
    }
    const move: Move = { what, source: 'rf', cause: { tsn, heardMs }, ...(user !== undefined && { user }) };
    bolt.move(relockSeconds === undefined ? move : { ...move, relockSeconds });
    return answer(SUCCESS);
  }
  const refusable = (commands: Cluster['commands']): Cluster['commands'] =>
    Object.fromEntries(
      Object.entries(commands).map(([id, handler]) => [
        id,
        (input, context) => {
          const refusal = options.activeFaults.refusal();
          return refusal === undefined ? handler(input, context) : responded(Number(id), Buffer.of(refusal));
        },
      ]),
    );

  return {
    0: (input, context) => actuate(0x00, input, context, 'lock'),
    1: (input, context) => actuate(0x01, input, context, 'unlock'),
    2: (input, context) => actuate(0x02, input, context, bolt.state.lock === LOCK.locked ? 'unlock' : 'lock'),
    3: (input, context) => actuate(0x03, input, context, 'unlock'),
    4(input) {
      const index = input.u16();
      const log = events.log();
      // 0: the latest one.
      const one = index === 0 ? log.at(-1) : log.find(({ id }) => id === index);
      if (!one) return responded(0x04, bytes(u16(index), Buffer.alloc(4, 0xff), 0, 0, 0, u16(0xffff), 0));
      return responded(
        0x04,
        bytes(u16(one.id), Buffer.alloc(4, 0xff), 0, one.source, one.code, u16(one.user), 0),
      );
    },
    ...refusable({ ...users.commands, ...schedules.commands }),
  };
}
