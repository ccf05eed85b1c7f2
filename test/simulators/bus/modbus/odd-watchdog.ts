/**
 * Four relays under a watchdog of no product, with the habits of bad ones. Holding registers: 0x40 its time in tenths of a second,
 * 0x41 its status (0 off, 1 running, 2 run out), 0x42 starts it (1) and clears it (0). Each request feeds it. Without power it
 * loses its time, unless it `keepsTime`.
 */
import { openPins } from '../pins.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, exception, FUNCTION, framed, pduOf } from './frame.ts';
import { answerFrom, type Field, outputFields } from './map-server.ts';

const CHANNELS = 4;
const UNIT_MS = 100;
const ADDRESS = 1;
const DEVICE_FAILURE = 4;
const REGISTER = { time: 0x40, status: 0x41, start: 0x42 } as const;
const [OFF, RUNNING, EXPIRED] = [0, 1, 2];

export interface Habits {
  /** Runs out once, and never again before a restart, though it shows that it runs. */
  expiresOnce?: boolean;
  /** Once it has run out it is not started again before a restart. */
  startsOnce?: boolean;
  /** Runs out, answers everything but a clearing with exception 04, and leaves its relays as they are. */
  keepsRelays?: boolean;
  /** The same, and opens them when it is cleared. */
  opensWhenCleared?: boolean;
  /** Looks at its clock when it is asked something, and not before. */
  opensWhenAsked?: boolean;
  keepsTime?: boolean;
}

export function openOddWatchdog(habits: Habits, opened: number): Device {
  const pins = openPins({ inputs: 0, outputs: CHANNELS, epoch: epochMs });
  const memory = { time: 0, status: OFF, expiries: 0 };
  let fedAt = opened;
  const answersFailure = habits.keepsRelays === true || habits.opensWhenCleared === true;

  function allOff(now: number): void {
    for (let output = 0; output < CHANNELS; output += 1) pins.setOutput(output, false, now);
  }
  const time: Field = {
    read: () => memory.time,
    write(value) {
      memory.time = value;
      return undefined;
    },
  };
  const start: Field = {
    read: () => 0,
    write(value, now) {
      if (value > 1) return EXCEPTION.illegalValue;
      if (value === 0 && memory.status === EXPIRED && habits.opensWhenCleared) allOff(now);
      memory.status = value === 1 && !(habits.startsOnce && memory.expiries > 0) ? RUNNING : OFF;
      fedAt = now;
      return undefined;
    },
  };
  const registers = new Map<number, Field>([
    [REGISTER.time, time],
    [REGISTER.status, { read: () => memory.status }],
    [REGISTER.start, start],
  ]);
  const coils = outputFields(pins, CHANNELS);

  function expire(now: number): void {
    const expiry = fedAt + memory.time * UNIT_MS;
    if (memory.status !== RUNNING || memory.time === 0 || now < expiry) return;
    if (habits.expiresOnce && memory.expiries > 0) return;
    memory.status = EXPIRED;
    memory.expiries += 1;
    if (!answersFailure) allOff(habits.opensWhenAsked ? now : expiry);
  }

  return {
    pins,
    answer(request, now) {
      pins.advance(now);
      expire(now);
      fedAt = now;
      const pdu = pduOf(request);
      const [functionCode = 0] = pdu;
      const clears = functionCode === FUNCTION.writeSingleRegister && pdu.readUInt16BE(1) === REGISTER.start;
      if (memory.status === EXPIRED && answersFailure && !clears)
        return framed(ADDRESS, exception(functionCode, DEVICE_FAILURE));
      const maps = {
        coil: (at: number) => coils[at],
        register: (at: number) => registers.get(at),
      };
      return framed(ADDRESS, answerFrom(pdu, maps, now));
    },
    advance(now) {
      pins.advance(now);
      if (!habits.opensWhenAsked) expire(now);
    },
    restart(now) {
      if (!habits.keepsTime) memory.time = 0;
      memory.status = habits.keepsTime ? RUNNING : OFF;
      memory.expiries = 0;
      fedAt = now;
      allOff(now);
    },
    alarm: () => undefined,
    describe: () => ({ watchdog: { ...memory } }),
  };
}
