/**
 * A WAGO 750 coupler with eight digital outputs, by "MODBUS Functions", "Internal Variables" (registers 0x1000 to 0x1008) of
 * the WAGO-I/O-SYSTEM 750 ETHERNET TCP/IP manual and tables 99 and 100 of that of the 750-843, version 1.2.0. Its watchdog is
 * off until its trigger changes to another value than 0, is fed by the function codes of its mask alone, takes no other time
 * while it runs, answers everything with exception 04 once it has run out, and forgets all of it without power. Coils are
 * read at their offset: without it, reading brings inputs, of which it has none.
 */
import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, exception, FUNCTION, framed, type Pdu, pduOf } from './frame.ts';
import { answerFrom, type Field, outputFields } from './map-server.ts';

const CHANNELS = 8;
const UNIT_MS = 100;
const OUTPUTS = 0x0200;
const REGISTER = { time: 0x1000, mask: 0x1001, trigger: 0x1003, running: 0x1006, stop: 0x1008 } as const;
const STOPS: readonly number[] = [0x55aa, 0xaa55];
const INACTIVE = 0;
const ACTIVE = 1;
const EXPIRED = 2;
const DEVICE_FAILURE = 4;

export function openWago750(plan: DevicePlan, opened: number): Device {
  const pins = openPins({ inputs: 0, outputs: CHANNELS, epoch: epochMs });
  const off = { time: 0, mask: 0, trigger: 0, running: INACTIVE };
  const watchdog = { ...off };
  let fedAt = opened;

  const setting = (name: 'time' | 'mask'): Field => ({
    read: () => watchdog[name],
    write(value) {
      if (watchdog.running === ACTIVE) return EXCEPTION.illegalValue;
      watchdog[name] = value;
      return undefined;
    },
  });
  const trigger: Field = {
    read: () => watchdog.trigger,
    write(value, now) {
      const isChanged = value !== watchdog.trigger;
      watchdog.trigger = value;
      if (!isChanged || value === 0 || watchdog.time === 0) return undefined;
      watchdog.running = ACTIVE;
      fedAt = now;
      return undefined;
    },
  };
  const stop: Field = {
    read: () => 0,
    write(value) {
      if (STOPS.includes(value)) watchdog.running = INACTIVE;
      return undefined;
    },
  };
  const registers = new Map<number, Field>([
    [REGISTER.time, setting('time')],
    [REGISTER.mask, setting('mask')],
    [REGISTER.trigger, trigger],
    [REGISTER.running, { read: () => watchdog.running }],
    [REGISTER.stop, stop],
    [0x2010, { read: () => 5 }],
    [0x2011, { read: () => 750 }],
  ]);
  const outputs = outputFields(pins, CHANNELS);
  /** Both ranges are outputs when they are written. */
  const coil = (address: number, isRead: boolean) =>
    outputs[address - OUTPUTS] ?? (isRead ? undefined : outputs[address]);

  function advance(now: number): void {
    pins.advance(now);
    const expiry = fedAt + watchdog.time * UNIT_MS;
    if (watchdog.running !== ACTIVE || now < expiry) return;
    watchdog.running = EXPIRED;
    allOff(expiry);
  }
  function allOff(now: number): void {
    for (let output = 0; output < CHANNELS; output += 1) pins.setOutput(output, false, now);
  }
  function answer(pdu: Pdu, now: number): number[] {
    const [functionCode = 0] = pdu;
    const isStop = functionCode === FUNCTION.writeSingleRegister && pdu.readUInt16BE(1) === REGISTER.stop;
    if (watchdog.running === EXPIRED && !isStop) return exception(functionCode, DEVICE_FAILURE);
    if ((watchdog.mask >> (functionCode - 1)) & 1) fedAt = now;
    const isRead = functionCode === FUNCTION.readCoils;
    return answerFrom(
      pdu,
      { coil: (address) => coil(address, isRead), register: (at) => registers.get(at) },
      now,
    );
  }

  return {
    pins,
    answer(request, now) {
      advance(now);
      return framed(plan.address, answer(pduOf(request), now));
    },
    advance,
    restart(now) {
      Object.assign(watchdog, off);
      allOff(now);
    },
    alarm: () => undefined,
    describe: () => ({ watchdog: { ...watchdog } }),
  };
}
