/**
 * Two bought boards by the maker's public manuals: 'Modbus RTU Relay' (eight relays) and 'Modbus RTU IO 8CH' (eight
 * inputs, eight outputs), https://www.waveshare.com/wiki/Modbus_RTU_Relay and …/Modbus_RTU_IO_8CH, protocol V2. A
 * latching-relay-8 is a board with the same map that times nothing: any value of function 5 but 0 closes its relay.
 */
import { openPins, type Pins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, exception, FUNCTION, framed, type Pdu, pduOf } from './frame.ts';

const CHANNELS = 8;
/** Writing this coil writes all of them. */
const ALL_CHANNELS = 0x00ff;
/** Coils whose value is a time: switch on, or off, for so many tenths of a second, timed by the board. */
const FLASH_ON = 0x0200;
const FLASH_OFF = 0x0400;
const FLASH_UNIT_MS = 100;
const FLASH_MAX = 0x7fff;
const COIL = { on: 0xff00, off: 0x0000, toggle: 0x5500 } as const;
/** Register 0x8000: 200 is V2.00. Register 0x2000: parity in the high byte, the number of the baud rate in the low one. */
const VERSION = 200;
const BAUD_9600 = 1;

export function openWaveshare(plan: DevicePlan): Device {
  const { address } = plan;
  const inputs = plan.kind === 'waveshare-io-8' ? CHANNELS : 0;
  const pins = openPins({ inputs, outputs: CHANNELS, epoch: epochMs });

  function answer(pdu: Pdu, now: number): number[] {
    const [functionCode = 0] = pdu;
    switch (functionCode) {
      case FUNCTION.readCoils:
        return readBits(pdu, pins.outputs(), CHANNELS);
      case FUNCTION.readDiscreteInputs:
        if (inputs > 0) return readBits(pdu, pins.inputs(), inputs);
        return exception(functionCode, EXCEPTION.illegalFunction);
      case FUNCTION.readHoldingRegisters:
        return readRegister(pdu, address);
      case FUNCTION.writeSingleCoil:
        return writeCoil(pdu, pins, now, plan.kind !== 'latching-relay-8');
      case FUNCTION.writeMultipleCoils:
        return writeCoils(pdu, pins, now);
      default:
        return exception(functionCode, EXCEPTION.illegalFunction);
    }
  }
  return {
    pins,
    answer: (request, now) => framed(address, answer(pduOf(request), now)),
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < CHANNELS; output += 1) pins.setOutput(output, false, now);
    },
    alarm: () => undefined,
    describe: () => ({}),
  };
}

function readBits(pdu: Pdu, bits: number, channels: number): number[] {
  const [functionCode = 0] = pdu;
  const [from, count] = [pdu.readUInt16BE(1), pdu.readUInt16BE(3)];
  if (count < 1) return exception(functionCode, EXCEPTION.illegalValue);
  if (from + count > channels) return exception(functionCode, EXCEPTION.illegalAddress);
  return [functionCode, 1, (bits >> from) & ((1 << count) - 1)];
}

function readRegister(pdu: Pdu, address: number): number[] {
  const values = new Map([
    [0x2000, BAUD_9600],
    [0x4000, address],
    [0x8000, VERSION],
  ]);
  const value = values.get(pdu.readUInt16BE(1));
  if (value === undefined) return exception(FUNCTION.readHoldingRegisters, EXCEPTION.illegalAddress);
  if (pdu.readUInt16BE(3) !== 1) return exception(FUNCTION.readHoldingRegisters, EXCEPTION.illegalValue);
  return [FUNCTION.readHoldingRegisters, 2, value >> 8, value & 0xff];
}

/** FC05: single coils, all of them, and flashes. The echo of the request is the reply. */
function writeCoil(pdu: Pdu, pins: Pins, now: number, isTimed: boolean): number[] {
  const [coil, value] = [pdu.readUInt16BE(1), pdu.readUInt16BE(3)];
  const refuse = (code: number) => exception(FUNCTION.writeSingleCoil, code);
  const channel = coil & 0xff;
  const base = coil & 0xff00;
  if (base === FLASH_ON || base === FLASH_OFF) {
    if (channel >= CHANNELS) return refuse(EXCEPTION.illegalAddress);
    if (value > FLASH_MAX) return refuse(EXCEPTION.illegalValue);
    if (!isTimed) {
      pins.setOutput(channel, value !== COIL.off, now);
      return [...pdu];
    }
    pins.pulseOutput(channel, base === FLASH_ON, now + value * FLASH_UNIT_MS, now);
    return [...pdu];
  }
  if (coil >= CHANNELS && coil !== ALL_CHANNELS) return refuse(EXCEPTION.illegalAddress);
  if (value !== COIL.on && value !== COIL.off && value !== COIL.toggle) return refuse(EXCEPTION.illegalValue);
  const before = pins.outputs();
  for (let output = 0; output < CHANNELS; output += 1) {
    if (coil !== ALL_CHANNELS && coil !== output) continue;
    pins.setOutput(output, value === COIL.toggle ? (before & (1 << output)) === 0 : value === COIL.on, now);
  }
  return [...pdu];
}

function writeCoils(pdu: Pdu, pins: Pins, now: number): number[] {
  const [from, count, bits = 0] = [pdu.readUInt16BE(1), pdu.readUInt16BE(3), pdu[6]];
  if (count < 1 || pdu[5] !== 1) return exception(FUNCTION.writeMultipleCoils, EXCEPTION.illegalValue);
  if (from + count > CHANNELS) return exception(FUNCTION.writeMultipleCoils, EXCEPTION.illegalAddress);
  for (let index = 0; index < count; index += 1)
    pins.setOutput(from + index, (bits & (1 << index)) !== 0, now);
  return [...pdu.subarray(0, 5)];
}
