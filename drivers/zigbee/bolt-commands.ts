/** Unlock, lock, and stand open: what is sent to a lock for each, and what a refusal of it means. */
import { type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import { EVENT_WITHIN_MS } from '../contract/owed-events.ts';
import { LOCK_STATES } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { settles } from '../contract/waiting.ts';
import {
  type BoltRead,
  type Locked,
  type LockNow,
  lockNow,
  readBolt as readBoltData,
  type StandingEnded,
  type StandingOpen,
  standOpen as standOpenData,
  type Unlock,
  type Unlocked,
  unlock as unlockData,
} from '../contract/zgate.ts';
import { type HeldFrames, openHeldFrames, openHeldWrites } from './held-frames.ts';
import { commanded, type Lock, type Locks } from './locks.ts';
import { DOOR_LOCK, KNOWN, type LockRadio, type Radio } from './radio.ts';
import type { SharedAddresses } from './shared-addresses.ts';
import { endStandOpen, type StandOpenOptions, standOpen } from './stand-open.ts';
import { autoRelockSeconds, requiresPin, waysOf } from './standard-lock.ts';
import { type ActuationOptions, actuate, type BoltCommand, readState } from './unlocking.ts';
import { STATUS_UNSUP_COMMAND, statusName } from './zcl-status.ts';

export interface BoltCommandsOptions {
  radio: LockRadio;
  clock: DriverContext['clock'];
  locks: Pick<Locks, 'find' | 'listen' | 'operatedAt' | 'owed'>;
  addresses: Pick<SharedAddresses, 'reason'>;
  /** Its auto-relock time, bolt and door may not be as they were reported last: they are read again. */
  readAgain(ieee: string): void;
  /** Fires when the link ends. */
  ended: AbortSignal;
}

export interface BoltCommands {
  unlock: (...given: Given) => Promise<Unlocked>;
  lock: (...given: Given) => Promise<Locked>;
  standOpen: (...given: Given) => Promise<StandingOpen>;
  endStandOpen: (...given: Given) => Promise<StandingEnded>;
  readBolt: (...given: Given) => Promise<BoltRead>;
}

type Given = [data: Plain, deadline: number, signal: AbortSignal, released?: Promise<void>];

type DeviceMemory = Pick<Radio, 'attribute' | 'meta' | 'remember'>;

interface Change {
  /** It ends standing open. */
  ends: boolean;
  /** What has not been sent of it is not to be. */
  calledOff: AbortController;
  settled: Promise<void>;
}

const CALLED_OFF = new DriverError('OUTCOME_UNKNOWN', 'standing open was ended before it had begun');

/** Begins a command that opens a lock or closes it: who is meant, how it is sent, and what ends the waiting. */
type Begin = (
  hwId: string,
  given: Given,
  /** `before`: as `earlierAt` of an Unlock. */
  how: {
    opens: boolean;
    before?: number | null;
    calledOff?: AbortSignal;
    eventConfirms?: boolean | undefined;
  },
) => { lock: Lock; options: ActuationOptions; over: AbortSignal };

export function openBoltCommands(options: BoltCommandsOptions): BoltCommands {
  const { radio, clock, locks, readAgain } = options;
  /** Locks that are being put into stand-open, or taken out of it. */
  const changing = new Map<string, Change>();
  const held = openHeldFrames(clock, locks.owed);
  const heldWrites = openHeldWrites(clock);

  const questions = openQuestions(options);
  const begin = beginner(options, held, questions.begin);

  /** Refused by the lock: DriverError REFUSED. */
  async function move(
    kind: 'lockDoor' | 'unlockDoor',
    pin: string | null,
    { lock, options, over }: ReturnType<Begin>,
  ): Promise<Locked> {
    const target = kind === 'lockDoor' ? 'locked' : 'unlocked';
    const payload = { pincodevalue: pinOf(pin, lock, radio) };
    const end = await actuate({ command: kind, payload, target }, options, over);
    if ('refused' in end) throw refusal(end.refused, pin, lock, radio);
    return end;
  }

  async function changed<End>(
    given: Given,
    { hwId, pin, earlierAt = null }: LockNow & { earlierAt?: number | null },
    change: (options: StandOpenOptions) => Promise<End>,
  ): Promise<End> {
    const calledOff = new AbortController();
    const ends = change === endStandOpen;
    const begun = begin(hwId, given, { opens: !ends, before: earlierAt, calledOff: calledOff.signal });
    const { ieee } = begun.lock;
    const signal = begun.over;
    const before = changing.get(ieee);
    // Frames to a sleeping lock take up to a minute: the end of standing open does not wait for all of its begin.
    if (before && ends && !before.ends) {
      before.calledOff.abort(CALLED_OFF);
      await settles(before.settled, given[1] - clock.monotonic(), clock, signal);
    }
    if (changing.has(ieee))
      throw new DriverError(
        'BUSY',
        'the lock changes its mode already: wait for the outcome of that, and send it again',
      );
    const { promise: settled, resolve } = Promise.withResolvers<void>();
    changing.set(ieee, { ends, calledOff, settled });
    try {
      const moving = (kind: 'lockDoor' | 'unlockDoor') => move(kind, pin, begun);
      return await change({ ...begun.options, radio, signal, heldWrites, move: moving });
    } finally {
      changing.delete(ieee);
      resolve();
    }
  }

  return {
    async unlock(...given) {
      const data = valid(unlockData, given[0], 'INVALID_COMMAND');
      const how = { opens: true, before: data.earlierAt };
      return held.opening(data.hwId, () => unlock(data, begin(data.hwId, given, how), radio));
    },
    async lock(...given) {
      const { hwId, pin, eventConfirms } = valid(lockNow, given[0], 'INVALID_COMMAND');
      const begun = begin(hwId, given, { opens: false, eventConfirms });
      let isSeen = false;
      try {
        const end = await move('lockDoor', pin, begun);
        isSeen = end.outcome === 'confirmed';
        return end;
      } finally {
        // A parent may hand the command to the lock after the deadline. And the lock may be here because it did not lock by itself.
        if (!isSeen || autoRelockSeconds({ autoRelockTime: relockTimeOf(begun.lock, radio) }) !== undefined)
          readAgain(begun.lock.ieee);
      }
    },
    async standOpen(...given) {
      const data = valid(standOpenData, given[0], 'INVALID_COMMAND');
      const { hwId } = data;
      try {
        return await held.opening(hwId, () => changed(given, data, standOpen));
      } catch (error) {
        // What the lock has taken is read as soon as it is heard, and reported.
        if (error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN') readAgain(hwId);
        throw error;
      }
    },
    readBolt: questions.readBolt,
    async endStandOpen(...given) {
      return changed(given, valid(lockNow, given[0], 'INVALID_COMMAND'), endStandOpen);
    },
  };
}

function openQuestions({ radio, clock, locks, ended }: BoltCommandsOptions) {
  /** By lock: fires when a command to it begins. */
  const next = new Map<string, AbortController>();
  function superseded(ieee: string): AbortSignal {
    const controller = next.get(ieee) ?? new AbortController();
    next.set(ieee, controller);
    return controller.signal;
  }
  return {
    /** A command begins; the signal is for its own questions. */
    begin(ieee: string): AbortSignal {
      next.get(ieee)?.abort(KNOWN);
      next.delete(ieee);
      return superseded(ieee);
    },
    async readBolt(...[data, _, signal]: Given): Promise<BoltRead> {
      const { ieee, endpoint } = locks.find(valid(readBoltData, data, 'INVALID_COMMAND').hwId);
      const asked = { radio, clock, ieee, endpoint, superseded: superseded(ieee) };
      const value = await readState(asked, AbortSignal.any([signal, ended])).catch(() => undefined);
      const lockState = typeof value === 'number' ? LOCK_STATES[value] : undefined;
      if (lockState !== undefined) return { lockState };
      throw new DriverError('NO_REPLY', 'the lock did not say where its bolt is');
    },
  };
}

function beginner(
  options: BoltCommandsOptions,
  held: HeldFrames,
  superseding: (ieee: string) => AbortSignal,
): Begin {
  const { radio, clock, locks, addresses, ended } = options;
  /** Monotonic milliseconds, by lock: a second event may come until EVENT_WITHIN_MS later. */
  const sentAgainAt = new Map<string, number>();
  return (
    hwId,
    [, deadline, signal, released],
    { opens, before = null, calledOff, eventConfirms = false },
  ) => {
    const lock = commanded(locks.find(hwId));
    const { ieee, endpoint } = lock;
    const shared = opens ? addresses.reason(ieee) : undefined;
    if (shared !== undefined) throw new DriverError('DEVICE_OFFLINE', shared);
    const known = {
      superseded: superseding(ieee),
      earlier: held.earlier(ieee, before),
      isReopened: held.reopening(ieee),
      byAnyone: opens && calledOff !== undefined,
      namesRadio: opens && namesRadioOf(ieee, options),
      eventConfirms:
        eventConfirms &&
        clock.monotonic() > (sentAgainAt.get(ieee) ?? Number.NEGATIVE_INFINITY) + EVENT_WITHIN_MS,
      sentAgain: () => void sentAgainAt.set(ieee, clock.monotonic()),
    };
    const listen: ActuationOptions['listen'] = (hear) => locks.listen(ieee, hear);
    const over = AbortSignal.any([signal, ended, ...(calledOff ? [calledOff] : [])]);
    return { lock, over, options: { radio, clock, ieee, endpoint, deadline, ...known, released, listen } };
  };
}

/** A lock that did so once does so from then on: its event masks were written. */
function namesRadioOf(ieee: string, { radio, locks }: BoltCommandsOptions): boolean {
  if (radio.meta(ieee).namesRadio === true) return true;
  if (locks.operatedAt(ieee) === undefined) return false;
  radio.remember(ieee, { namesRadio: true });
  return true;
}

async function unlock(
  { relockSeconds, pin, gatewayRelocks }: Unlock,
  { lock, options, over }: ReturnType<Begin>,
  kept: DeviceMemory,
): Promise<Unlocked> {
  const { ieee } = lock;
  const { timedUnlock } = kept.meta(ieee);
  const autoRelockTime = relockTimeOf(lock, kept);
  let untimed = 'not sent: the lock has no Unlock with Timeout';
  for (const relock of waysOf({ timedUnlock, autoRelockTime }, gatewayRelocks)) {
    const isTimed = relock === 'timedUnlock';
    const pincodevalue = pinOf(pin, lock, kept);
    const command: BoltCommand = isTimed
      ? {
          command: 'unlockWithTimeout',
          payload: { timeout: relockSeconds, pincodevalue },
          target: 'unlocked',
        }
      : { command: 'unlockDoor', payload: { pincodevalue }, target: 'unlocked' };
    const end = await actuate(command, options, over);
    if (!('refused' in end)) {
      if (isTimed && timedUnlock !== true) kept.remember(ieee, { timedUnlock: true });
      return { ...end, relock };
    }
    const { refused } = end;
    if (!isTimed || refused !== STATUS_UNSUP_COMMAND) throw refusal(refused, pin, lock, kept);
    // One that said before that it has it is asked once more the next time.
    kept.remember(ieee, { timedUnlock: timedUnlock === true ? null : false });
    untimed = `the lock refused Unlock with Timeout (${statusName(refused)})`;
  }
  throw new DriverError('REFUSED', `${untimed}, and does not lock again by itself: set its auto-relock time`);
}

const relockTimeOf = ({ ieee, endpoint }: Lock, { attribute }: DeviceMemory) =>
  attribute(ieee, endpoint, DOOR_LOCK, 'autoRelockTime');

const requires = ({ ieee, endpoint }: Lock, { attribute }: DeviceMemory) =>
  requiresPin(attribute(ieee, endpoint, DOOR_LOCK, 'requirePinForRfOperation'));

/** Only a lock that says that it needs none is not given it. */
function pinOf(pin: string | null, lock: Lock, kept: DeviceMemory): Buffer {
  return pin === null || requires(lock, kept) === false ? Buffer.alloc(0) : Buffer.from(pin, 'ascii');
}

function refusal(status: number, pin: string | null, lock: Lock, kept: DeviceMemory): DriverError {
  const reason = `the lock refused (${statusName(status)})`;
  if (requires(lock, kept) !== true) return new DriverError('REFUSED', reason);
  const advice =
    pin === null
      ? 'it requires a PIN for commands by radio: store one'
      : 'see whether its stored PIN is right';
  return new DriverError('REFUSED', `${reason}; ${advice}`);
}
