/** The configuration of a lock: one CBOR map, of which every field is checked before any is in force. */
import { type Cbor, decodeCbor, plain } from './cbor.ts';

const DAY_MINUTES = 24 * 60;
const DOOR_ID_BYTES = 16;
const TEXT_MAX = 64;

type Check = (value: Cbor) => boolean;

const isMinute = (value: Cbor | undefined) => typeof value === 'number' && value >= 0 && value <= DAY_MINUTES;
const isDoor = (value: Cbor | undefined) => Buffer.isBuffer(value) && value.length === DOOR_ID_BYTES;
const isDoors = (value: Cbor | undefined) => Array.isArray(value) && value.every(isDoor);
const isBoolean: Check = (value) => typeof value === 'boolean';
const isText: Check = (value) => typeof value === 'string' && value.length <= TEXT_MAX;
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const isInterval = (value: Cbor | undefined) =>
  value === null || (Array.isArray(value) && value.length === 2 && value.every(isMinute));
const hasOnly = (value: Cbor | undefined, keys: number[]): value is Map<number, Cbor> =>
  value instanceof Map && value.keys().every((key) => keys.includes(key));

const FIELDS: Record<number, { name: string; check: Check }> = {
  1: { name: 'standOpenEnabled', check: isBoolean },
  2: { name: 'onlineEnabled', check: isBoolean },
  3: {
    name: 'accessInternal',
    check: (value) => hasOnly(value, [1, 2]) && isDoors(value.get(1)) && isInterval(value.get(2) ?? null),
  },
  4: {
    name: 'outputs',
    check: (value) =>
      Array.isArray(value) &&
      value.every((one) => hasOnly(one, [1, 2]) && isDoor(one.get(1)) && isDoors(one.get(2))),
  },
  5: {
    name: 'schedule',
    check: (value) => Array.isArray(value) && value.every((one) => isWeekly(one)),
  },
  6: {
    name: 'relaySetup',
    check: (value) => value === null || ['number', 'string', 'boolean'].includes(typeof value),
  },
  7: { name: 'type', check: orNull((value) => isText(value) || typeof value === 'number') },
  8: { name: 'number', check: orNull((value) => isText(value) || typeof value === 'number') },
  9: { name: 'name', check: orNull(isText) },
};

/** Days of the week, and from when to when. */
function isWeekly(value: Cbor): boolean {
  if (!Array.isArray(value) || value.length !== 3) return false;
  const [days, start, end] = value;
  return typeof days === 'number' && days > 0 && days < 128 && isMinute(start) && isMinute(end);
}

/** By the names of its fields. Throws RangeError, saying what is wrong. */
export function readConfiguration(data: Uint8Array): Record<string, unknown> {
  const map = decodeCbor(data);
  if (!(map instanceof Map)) throw new RangeError('a configuration is a map');
  return Object.fromEntries(
    map.entries().map(([key, value]) => {
      const field = FIELDS[key];
      if (!field?.check(value)) throw new RangeError(`field ${key} ${field ? 'is wrong' : 'is not known'}`);
      return [field.name, plain(value)];
    }),
  );
}
