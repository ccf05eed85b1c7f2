/** A Modbus server of coils and registers (application protocol 1.1b3, 6.1 to 6.6, 6.11, 6.12). */
import type { Pins } from '../pins.ts';
import { EXCEPTION, exception, FUNCTION, type Pdu } from './frame.ts';

/** undefined: there is none at this address, or (of a write) it cannot be written. */
export interface Field {
  read(): number;
  /** The exception that refuses it; undefined: it is done. */
  write?(value: number, now: number): number | undefined;
}

export interface Maps {
  coil(address: number): Field | undefined;
  register(address: number): Field | undefined;
  discrete?(address: number): Field | undefined;
  input?(address: number): Field | undefined;
}

const KNOWN: readonly number[] = [
  FUNCTION.readCoils,
  FUNCTION.readDiscreteInputs,
  FUNCTION.readHoldingRegisters,
  FUNCTION.readInputRegisters,
  FUNCTION.writeSingleCoil,
  FUNCTION.writeSingleRegister,
  FUNCTION.writeMultipleCoils,
  FUNCTION.writeMultipleRegisters,
];

const absent = () => undefined;

export function answerFrom(
  pdu: Pdu,
  { coil, register, discrete = absent, input = absent }: Maps,
  now: number,
): number[] {
  const [functionCode = 0] = pdu;
  const refuse = (code: number) => exception(functionCode, code);
  // Others have less behind the function code than two numbers.
  if (!KNOWN.includes(functionCode)) return refuse(EXCEPTION.illegalFunction);
  const [from, second] = [pdu.readUInt16BE(1), pdu.readUInt16BE(3)];
  const addresses = (count: number) => Array.from({ length: count }, (_, index) => from + index);
  /** All of them, or none. */
  function write(of: Maps['coil'], values: number[], reply: number[]): number[] {
    const fields = values.map((_, index) => of(from + index));
    if (fields.some((field) => !field?.write)) return refuse(EXCEPTION.illegalAddress);
    for (const [index, value] of values.entries()) {
      const refusal = fields[index]?.write?.(value, now);
      if (refusal !== undefined) return refuse(refusal);
    }
    return reply;
  }
  switch (functionCode) {
    case FUNCTION.readCoils:
    case FUNCTION.readDiscreteInputs: {
      if (second < 1) return refuse(EXCEPTION.illegalValue);
      const fields = addresses(second).map(functionCode === FUNCTION.readCoils ? coil : discrete);
      if (fields.includes(undefined)) return refuse(EXCEPTION.illegalAddress);
      const bytes = new Array<number>(Math.ceil(second / 8)).fill(0);
      for (const [index, field] of fields.entries())
        if (field?.read() === 1) bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (1 << (index & 7));
      return [functionCode, bytes.length, ...bytes];
    }
    case FUNCTION.readHoldingRegisters:
    case FUNCTION.readInputRegisters: {
      if (second < 1) return refuse(EXCEPTION.illegalValue);
      const fields = addresses(second).map(functionCode === FUNCTION.readHoldingRegisters ? register : input);
      if (fields.includes(undefined)) return refuse(EXCEPTION.illegalAddress);
      const values = fields.map((field) => field?.read() ?? 0);
      return [functionCode, 2 * second, ...values.flatMap((value) => [value >> 8, value & 0xff])];
    }
    case FUNCTION.writeSingleCoil:
      if (second !== 0 && second !== 0xff00) return refuse(EXCEPTION.illegalValue);
      return write(coil, [second === 0xff00 ? 1 : 0], [...pdu]);
    case FUNCTION.writeSingleRegister:
      return write(register, [second], [...pdu]);
    case FUNCTION.writeMultipleCoils: {
      if (pdu[5] !== Math.ceil(second / 8)) return refuse(EXCEPTION.illegalValue);
      const values = addresses(second).map((_, index) => ((pdu[6 + (index >> 3)] ?? 0) >> (index & 7)) & 1);
      return write(coil, values, [...pdu.subarray(0, 5)]);
    }
    case FUNCTION.writeMultipleRegisters: {
      // As 6.12 has it: a byte count that is not that of the quantity.
      if (pdu[5] !== 2 * second) return refuse(EXCEPTION.illegalValue);
      const values = addresses(second).map((_, index) => pdu.readUInt16BE(6 + 2 * index));
      return write(register, values, [...pdu.subarray(0, 5)]);
    }
    default:
      return refuse(EXCEPTION.illegalFunction);
  }
}

/** A field that holds what was written. */
export function cell(value: number): Field & { value: number } {
  const field = {
    value,
    read: () => field.value,
    write(next: number) {
      field.value = next;
      return undefined;
    },
  };
  return field;
}

/** `switches`: whether a write does anything, though it is acknowledged. */
export function outputFields(pins: Pins, count: number, switches = () => true): Field[] {
  return Array.from({ length: count }, (_, output) => ({
    read: () => (pins.outputs() >> output) & 1,
    write(value: number, now: number) {
      if (switches()) pins.setOutput(output, value === 1, now);
      return undefined;
    },
  }));
}
