/**
 * An eletechsup R421A08 (eight relays): frames of the README of https://github.com/Erriez/R421A08-rs485-8ch-relay-board, and the
 * commands of its relatives RYN404E and RYN408F by HARDWARE.md of https://github.com/packerlschupfer/ESP32-RYN4, which has them from
 * the maker's "MODBUS RTU Command". A relay has a register, from 1 on, which is read as 0 or 1. While the time of the command
 * 0x06 runs, the command to open is acknowledged and ignored (CHANGELOG of the latter); the command to close is taken so too.
 */
import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, framed, pduOf } from './frame.ts';
import { answerFrom, type Field } from './map-server.ts';

const CHANNELS = 8;
const SECOND_MS = 1_000;
const COMMAND = { close: 1, open: 2, toggle: 3, momentary: 5, delay: 6 } as const;

export function openR421a08(plan: DevicePlan): Device {
  const pins = openPins({ inputs: 0, outputs: CHANNELS, epoch: epochMs });

  function command(relay: number, value: number, now: number): number | undefined {
    const [code, seconds] = [value >> 8, value & 0xff];
    const isTimed = pins.pulseEnd(relay) !== undefined;
    switch (code) {
      case COMMAND.close:
      case COMMAND.open:
        if (!isTimed) pins.setOutput(relay, code === COMMAND.close, now);
        return undefined;
      case COMMAND.toggle:
        pins.setOutput(relay, ((pins.outputs() >> relay) & 1) === 0, now);
        return undefined;
      case COMMAND.momentary:
        pins.pulseOutput(relay, true, now + SECOND_MS, now);
        return undefined;
      case COMMAND.delay:
        pins.pulseOutput(relay, true, now + seconds * SECOND_MS, now);
        return undefined;
      default:
        return EXCEPTION.illegalValue;
    }
  }
  const relays = Array.from(
    { length: CHANNELS },
    (_, relay): Field => ({
      read: () => (pins.outputs() >> relay) & 1,
      write: (value, now) => command(relay, value, now),
    }),
  );

  return {
    pins,
    answer(request, now) {
      pins.advance(now);
      const maps = { coil: () => undefined, register: (at: number) => relays[at - 1] };
      return framed(plan.address, answerFrom(pduOf(request), maps, now));
    },
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < CHANNELS; output += 1) pins.setOutput(output, false, now);
    },
    alarm: () => undefined,
    describe: () => ({}),
  };
}
