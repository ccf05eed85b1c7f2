/** A Modbus server of holding registers: FC03, FC16 and FC43/14 (application protocol 1.1b3, 6.3, 6.12, 6.21). */
import { EXCEPTION, exception, FUNCTION, type Pdu } from './frame.ts';

export interface Registers {
  /** Undefined: not all of them are there. */
  read(from: number, count: number): number[] | undefined;
  /** All of it, or nothing and why. */
  write(from: number, count: number, values: Buffer): 'done' | 'illegalAddress' | 'illegalValue';
  /** Vendor, product code, revision. */
  identity: readonly string[];
}

const READ_MAX = 125;
const READ_DEVICE_IDENTIFICATION = 0x0e;
/** Basic objects, as a stream and one by one. */
const CONFORMITY = 0x81;
const ONE_BY_ONE = 4;

export function answer(pdu: Pdu, registers: Registers): number[] {
  const [functionCode = 0] = pdu;
  switch (functionCode) {
    case FUNCTION.readHoldingRegisters: {
      const count = pdu.readUInt16BE(3);
      if (count < 1 || count > READ_MAX) return exception(functionCode, EXCEPTION.illegalValue);
      const values = registers.read(pdu.readUInt16BE(1), count);
      if (!values) return exception(functionCode, EXCEPTION.illegalAddress);
      return [functionCode, 2 * count, ...values.flatMap((value) => [value >> 8, value & 0xff])];
    }
    case FUNCTION.writeMultipleRegisters: {
      const [count, values] = [pdu.readUInt16BE(3), pdu.subarray(6)];
      const isWhole = count > 0 && pdu[5] === 2 * count && values.length === 2 * count;
      const result = isWhole ? registers.write(pdu.readUInt16BE(1), count, values) : 'illegalValue';
      return result === 'done' ? [...pdu.subarray(0, 5)] : exception(functionCode, EXCEPTION[result]);
    }
    case FUNCTION.encapsulated:
      return identification(pdu, registers.identity);
    default:
      return exception(functionCode, EXCEPTION.illegalFunction);
  }
}

function identification(pdu: Pdu, objects: readonly string[]): number[] {
  const [functionCode = 0, meiType, readCode = 0, object = 0] = pdu;
  if (meiType !== READ_DEVICE_IDENTIFICATION) return exception(functionCode, EXCEPTION.illegalFunction);
  if (readCode < 1 || readCode > ONE_BY_ONE) return exception(functionCode, EXCEPTION.illegalValue);
  const isThere = object < objects.length;
  if (readCode === ONE_BY_ONE && !isThere) return exception(functionCode, EXCEPTION.illegalAddress);
  // A stream that is asked for from an object which is not there begins again.
  const ids = readCode === ONE_BY_ONE ? [object] : [...objects.keys()].slice(isThere ? object : 0);
  const listed = ids.flatMap((id) => {
    const text = Buffer.from(objects[id] ?? '', 'latin1');
    return [id, text.length, ...text];
  });
  return [functionCode, READ_DEVICE_IDENTIFICATION, readCode, CONFORMITY, 0, 0, ids.length, ...listed];
}
