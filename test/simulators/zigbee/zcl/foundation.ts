/** Foundation commands of ZCL (2.5): attributes read, written and discovered, and reporting of them. */
import { bytes, openReader, type Reader, u16 } from '../bytes.ts';
import { type Answer, type Cause, type Cluster, failed } from './cluster.ts';
import { ZCL_STATUS, type ZclFrame } from './frame.ts';
import type { Reporting } from './reporting.ts';
import { encodeInvalid, encodeValue, readValue, TYPE } from './types.ts';

/** Table 2-3. */
export const FOUNDATION = {
  read: 0x00,
  write: 0x02,
  writeUndivided: 0x03,
  writeResponse: 0x04,
  writeNoResponse: 0x05,
  configureReporting: 0x06,
  readReporting: 0x08,
  report: 0x0a,
  defaultResponse: 0x0b,
  discover: 0x0c,
  discoverCommands: 0x11,
} as const;
/** Responses, and reports: nothing is said to those. */
const ANSWERS = [0x01, 0x04, 0x07, 0x09, 0x0a, 0x0b, 0x0d, 0x12];
/** What is left for records of attributes in a frame that is not fragmented: 82 bytes, without the ZCL header. */
const RECORDS_MAX = 82 - 5;

/** How values that are reported are wrong. */
export interface ValueFaults {
  invalidValues(): boolean;
  oversizedStrings(): number | undefined;
}

/** Undefined: nothing is to be answered. Throws RangeError for a payload that is too short. */
export function answerFoundation(
  cluster: Cluster,
  { command, payload, tsn, heardMs }: ZclFrame & Cause,
  reporting: Reporting,
  faults: ValueFaults,
): Answer | undefined {
  const input = openReader(payload);
  const cause = { tsn, heardMs };
  const response = (data: Buffer, id = command + 1): Answer => ({
    kind: 'response',
    command: id,
    payload: data,
  });
  switch (command) {
    case FOUNDATION.read:
      return response(read(cluster, input, faults));
    case FOUNDATION.write:
    case FOUNDATION.writeUndivided: {
      const isUndivided = command === FOUNDATION.writeUndivided;
      return response(write(cluster, input, cause, isUndivided), FOUNDATION.writeResponse);
    }
    case FOUNDATION.writeNoResponse:
      write(cluster, input, cause, false);
      return undefined;
    case FOUNDATION.configureReporting:
      return response(reporting.configure(cluster, payload));
    case FOUNDATION.readReporting:
      return response(reporting.readConfiguration(cluster, payload));
    case FOUNDATION.discover:
      return response(discovered(cluster, input));
    case FOUNDATION.discoverCommands:
      return response(discoveredCommands(cluster, input));
    default:
      return ANSWERS.includes(command) ? undefined : failed(ZCL_STATUS.unsupportedCommand);
  }
}

/** Type and value of an attribute. */
export function attributeRecord(cluster: Cluster, id: number, faults: ValueFaults): Buffer {
  const attribute = cluster.attributes[id];
  if (!attribute) throw new RangeError(`no attribute ${id}`);
  const { type } = attribute;
  const length = faults.oversizedStrings();
  if (type === TYPE.string && length !== undefined) return bytes(type, encodeValue(type, 'x'.repeat(length)));
  return bytes(type, faults.invalidValues() ? encodeInvalid(type) : encodeValue(type, attribute.get()));
}

function read(cluster: Cluster, input: Reader, faults: ValueFaults): Buffer {
  const records: Buffer[] = [];
  let size = 0;
  while (input.left() > 0) {
    const id = input.u16();
    const isThere = cluster.attributes[id] !== undefined;
    const one = isThere
      ? bytes(u16(id), ZCL_STATUS.success, attributeRecord(cluster, id, faults))
      : undefined;
    const fits = size + (one?.length ?? 3) <= RECORDS_MAX || records.length === 0;
    const status = isThere ? ZCL_STATUS.insufficientSpace : ZCL_STATUS.unsupportedAttribute;
    records.push(one && fits ? one : bytes(u16(id), status));
    size += records.at(-1)?.length ?? 0;
  }
  return bytes(...records);
}

/** Those that failed; a single success when none did. */
function write(cluster: Cluster, input: Reader, cause: Cause, isUndivided: boolean): Buffer {
  const wanted: { id: number; status: number; apply(): number }[] = [];
  while (input.left() > 0) {
    const id = input.u16();
    const type = input.u8();
    const value = readValue(input, type);
    const set = cluster.attributes[id]?.set;
    wanted.push({
      id,
      status: writeStatus(cluster, id, type),
      apply: () => set?.(value, cause) ?? ZCL_STATUS.failure,
    });
  }
  const isHindered = isUndivided && wanted.some(({ status }) => status !== ZCL_STATUS.success);
  const results = wanted.map(({ id, status, apply }) => {
    const isApplied = status === ZCL_STATUS.success && !isHindered;
    return { id, status: isApplied ? apply() : status };
  });
  const wrong = results.filter(({ status }) => status !== ZCL_STATUS.success);
  return wrong.length > 0 ? bytes(...wrong.flatMap(({ id, status }) => [status, u16(id)])) : Buffer.of(0);
}

function writeStatus(cluster: Cluster, id: number, type: number): number {
  const attribute = cluster.attributes[id];
  if (!attribute) return ZCL_STATUS.unsupportedAttribute;
  if (!attribute.set) return ZCL_STATUS.readOnly;
  return attribute.type === type ? ZCL_STATUS.success : ZCL_STATUS.invalidType;
}

function discovered(cluster: Cluster, input: Reader): Buffer {
  const start = input.u16();
  const most = input.u8();
  const ids = Object.keys(cluster.attributes)
    .map(Number)
    .filter((id) => id >= start);
  const part = ids.slice(0, most);
  const isComplete = part.length === ids.length ? 1 : 0;
  return bytes(isComplete, ...part.flatMap((id) => [u16(id), cluster.attributes[id]?.type ?? 0xff]));
}

/** Discover Commands Received (2.5.18). */
function discoveredCommands(cluster: Cluster, input: Reader): Buffer {
  const start = input.u8();
  const most = input.u8();
  const ids = Object.keys(cluster.commands)
    .map(Number)
    .filter((id) => id >= start);
  return bytes(ids.length <= most ? 1 : 0, ...ids.slice(0, most));
}
