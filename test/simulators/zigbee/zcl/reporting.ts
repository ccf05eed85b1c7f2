/** Reports of attributes (ZCL 2.5.7 to 2.5.11): sent to the targets of its bindings, when they changed, and now and then. */
import { bytes, openReader, type Reader, u16 } from '../bytes.ts';
import type { Time } from '../time.ts';
import type { Attribute, Cluster } from './cluster.ts';
import { ZCL_STATUS } from './frame.ts';
import { encodeValue, isAnalogue, readValue, type Value } from './types.ts';

interface Configuration {
  cluster: Cluster;
  attribute: number;
  minimum: number;
  maximum: number;
  change: number;
  lastAt: number;
  lastValue: Value;
  timer: () => void;
}

export interface Reporting {
  /** Payloads of Configure Reporting and of its response. */
  configure(cluster: Cluster, payload: Buffer): Buffer;
  readConfiguration(cluster: Cluster, payload: Buffer): Buffer;
  /** Reports what has changed. */
  notice(): void;
  reset(): void;
  describe(): { cluster: number; attribute: number; minimum: number; maximum: number; change: number }[];
}

/** Ends reporting of an attribute. */
const OFF = 0xffff;

export function openReporting(
  time: Time,
  report: (cluster: Cluster, attributes: number[]) => void,
): Reporting {
  const configurations = new Map<string, Configuration>();
  const nameOf = (cluster: Cluster, attribute: number) => `${cluster.id}/${attribute}`;

  function send(one: Configuration): void {
    one.timer();
    one.lastAt = time.now();
    one.lastValue = attributeOf(one).get();
    // 0: no report without a change.
    one.timer = one.maximum === 0 ? () => undefined : time.after(one.maximum * 1_000, () => send(one));
    report(one.cluster, [one.attribute]);
  }
  function check(one: Configuration): void {
    if (!hasChanged(one)) return;
    const wait = one.lastAt + one.minimum * 1_000 - time.now();
    one.timer();
    if (wait <= 0) send(one);
    else one.timer = time.after(wait, () => send(one));
  }
  /** The status of its record in the response. */
  function configureOne(cluster: Cluster, { attribute, reports }: Wanted): number {
    const found = cluster.attributes[attribute];
    if (!found || !reports) return ZCL_STATUS.unsupportedAttribute;
    if (!found.isReportable) return ZCL_STATUS.unreportable;
    if (found.type !== reports.type) return ZCL_STATUS.invalidType;
    const { minimum, maximum, change } = reports;
    const name = nameOf(cluster, attribute);
    configurations.get(name)?.timer();
    configurations.delete(name);
    if (maximum === OFF) return ZCL_STATUS.success;
    if (maximum !== 0 && minimum > maximum) return ZCL_STATUS.invalidValue;
    const one: Configuration = {
      cluster,
      attribute,
      minimum,
      maximum,
      change,
      lastAt: time.now(),
      lastValue: found.get(),
      timer: () => undefined,
    };
    if (maximum !== 0) one.timer = time.after(maximum * 1_000, () => send(one));
    configurations.set(name, one);
    return ZCL_STATUS.success;
  }

  return {
    configure(cluster, payload) {
      const input = openReader(payload);
      const wrong: Buffer[] = [];
      while (input.left() > 0) {
        const wanted = readWanted(input);
        const status = configureOne(cluster, wanted);
        if (status !== ZCL_STATUS.success) wrong.push(bytes(status, wanted.direction, u16(wanted.attribute)));
      }
      return wrong.length === 0 ? Buffer.of(ZCL_STATUS.success) : bytes(...wrong);
    },
    readConfiguration(cluster, payload) {
      const input = openReader(payload);
      const records: Buffer[] = [];
      while (input.left() > 0) {
        const [direction, attribute] = [input.u8(), input.u16()];
        const one = configurations.get(nameOf(cluster, attribute));
        records.push(configurationRecord(cluster, direction, attribute, one));
      }
      return bytes(...records);
    },
    notice() {
      for (const one of configurations.values()) check(one);
    },
    reset() {
      for (const one of configurations.values()) one.timer();
      configurations.clear();
    },
    describe: () =>
      [...configurations.values()].map(({ cluster, attribute, minimum, maximum, change }) => ({
        cluster: cluster.id,
        attribute,
        minimum,
        maximum,
        change,
      })),
  };
}

/** One record of Configure Reporting (ZCL 2.5.7). */
interface Wanted {
  direction: number;
  attribute: number;
  /** Undefined: it asks for reports to be awaited, not sent. */
  reports: { type: number; minimum: number; maximum: number; change: number } | undefined;
}

function readWanted(input: Reader): Wanted {
  const direction = input.u8();
  const attribute = input.u16();
  if (direction !== 0) {
    // How long it is to wait for them.
    input.u16();
    return { direction, attribute, reports: undefined };
  }
  const type = input.u8();
  const minimum = input.u16();
  const maximum = input.u16();
  const change = isAnalogue(type) ? Number(readValue(input, type)) : 0;
  return { direction, attribute, reports: { type, minimum, maximum, change } };
}

function attributeOf({ cluster, attribute }: Configuration): Attribute {
  const found = cluster.attributes[attribute];
  if (!found) throw new Error(`no attribute ${attribute} in cluster ${cluster.id}`);
  return found;
}

function hasChanged(one: Configuration): boolean {
  const value = attributeOf(one).get();
  if (typeof value === 'number' && typeof one.lastValue === 'number' && isAnalogue(attributeOf(one).type))
    return value !== one.lastValue && Math.abs(value - one.lastValue) >= one.change;
  return value !== one.lastValue;
}

/** Of Read Reporting Configuration Response (ZCL 2.5.10). */
function configurationRecord(
  cluster: Cluster,
  direction: number,
  attribute: number,
  one: Configuration | undefined,
): Buffer {
  const type = cluster.attributes[attribute]?.type;
  const missing = type === undefined ? ZCL_STATUS.unsupportedAttribute : ZCL_STATUS.notFound;
  const head = bytes(one ? ZCL_STATUS.success : missing, direction, u16(attribute));
  if (!one || type === undefined) return head;
  const change = isAnalogue(type) ? encodeValue(type, one.change) : Buffer.alloc(0);
  return bytes(head, type, u16(one.minimum), u16(one.maximum), change);
}
