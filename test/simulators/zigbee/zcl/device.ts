/** The application of a device: endpoint 1 with its clusters, and the foundation commands of ZCL for all of them. */
import type { Aps } from '../air/air.ts';
import type { Application, OpenNode } from '../air/node.ts';
import { bytes, openReader, type Reader, u16 } from '../bytes.ts';
import type { Time } from '../time.ts';
import type { Answer, Cluster } from './cluster.ts';
import { decodeZcl, encodeZcl, ZCL_STATUS, type ZclFrame } from './frame.ts';
import { openReporting } from './reporting.ts';
import { encodeInvalid, encodeValue, readValue, TYPE } from './types.ts';

export const ENDPOINT = 1;
export const HOME_AUTOMATION = 0x0104;

/** Something it was told, whatever came of it. */
export interface Received {
  /** Milliseconds of CLOCK_MONOTONIC. */
  monotonicMs: number;
  tsn: number;
  cluster: number;
  command: number;
  isFoundation: boolean;
  payload: string;
}

export interface DeviceFaults {
  slowMs(): number;
  /** Takes one away from its account. Undefined: none. */
  defaultResponse(): number | undefined;
  invalidValues(): boolean;
  oversizedStrings(): number | undefined;
  foreignClusters(): number[];
  bogusEndpoints(): number[];
}

export interface DeviceOptions {
  time: Time;
  deviceId: number;
  node: () => OpenNode;
  faults: DeviceFaults;
}

export interface Device {
  application: Application;
  add(...clusters: Cluster[]): void;
  /** A command of a server to those who are bound to it. */
  notify(cluster: number, command: number, payload: Uint8Array): void;
  /** A command of a client to the coordinator. */
  ask(cluster: number, endpoint: number, command: number, payload: Uint8Array): void;
  /** Reports what has changed. */
  notice(): void;
  received(): Received[];
  reporting(): { cluster: number; attribute: number; minimum: number; maximum: number; change: number }[];
  clearLog(): void;
}

const RECEIVED_MAX = 2_000;
/** Foundation commands (ZCL table 2-3). */
const FOUNDATION = {
  ...{ read: 0x00, write: 0x02, writeUndivided: 0x03, writeNoResponse: 0x05, configureReporting: 0x06 },
  ...{ readReporting: 0x08, report: 0x0a, defaultResponse: 0x0b, discover: 0x0c },
} as const;
/** Attributes of a report that nobody asked for: a whole number. */
const FOREIGN_ATTRIBUTE = 0x0000;
/** What is left of a frame for records of attributes. */
const RECORDS_MAX = 200;

export function openDevice(options: DeviceOptions): Device {
  const { time, faults } = options;
  const clusters = new Map<number, Cluster>();
  const received: Received[] = [];
  let sequence = 0;
  const nextTsn = () => {
    sequence = (sequence + 1) & 0xff;
    return sequence;
  };
  const reporting = openReporting(time, (cluster, ids) => {
    const records = ids.map((id) => bytes(u16(id), record(cluster, id)));
    toBound(cluster, { command: FOUNDATION.report, isFoundation: true, payload: bytes(...records) });
  });

  function toBound(
    cluster: Cluster,
    { command, isFoundation, payload }: Pick<ZclFrame, 'command' | 'isFoundation' | 'payload'>,
  ): void {
    const { bindings, send, network } = options.node();
    if (!network) return;
    for (const { cluster: bound, target } of bindings) {
      if (bound !== cluster.id || 'group' in target) continue;
      const frame: ZclFrame = {
        ...{ command, isFoundation, payload, tsn: nextTsn() },
        ...{ fromServer: true, disableDefaultResponse: true },
        ...(cluster.manufacturer !== undefined && { manufacturer: cluster.manufacturer }),
      };
      send({ ...from(cluster.id), destination: 0, endpoint: target.endpoint, data: encodeZcl(frame) });
    }
  }
  /** Type and value of an attribute. */
  function record(cluster: Cluster, id: number): Buffer {
    const attribute = cluster.attributes[id];
    if (!attribute) throw new RangeError(`no attribute ${id}`);
    const { type } = attribute;
    const length = faults.oversizedStrings();
    if (type === TYPE.string && length !== undefined)
      return bytes(type, encodeValue(type, 'x'.repeat(length)));
    return bytes(type, faults.invalidValues() ? encodeInvalid(type) : encodeValue(type, attribute.get()));
  }
  function read(cluster: Cluster, input: Reader): Buffer {
    const records: Buffer[] = [];
    let size = 0;
    while (input.left() > 0) {
      const id = input.u16();
      const isThere = cluster.attributes[id] !== undefined;
      const one = isThere ? bytes(u16(id), ZCL_STATUS.success, record(cluster, id)) : undefined;
      const fits = size + (one?.length ?? 3) <= RECORDS_MAX || records.length === 0;
      const status = isThere ? ZCL_STATUS.insufficientSpace : ZCL_STATUS.unsupportedAttribute;
      records.push(one && fits ? one : bytes(u16(id), status));
      size += records.at(-1)?.length ?? 0;
    }
    return bytes(...records);
  }
  /** Failed ones, of which there may be none. */
  function write(cluster: Cluster, input: Reader, isUndivided: boolean): Buffer {
    const wanted: { id: number; status: number; apply(): number }[] = [];
    while (input.left() > 0) {
      const id = input.u16();
      const type = input.u8();
      const value = readValue(input, type);
      const attribute = cluster.attributes[id];
      const status = !attribute
        ? ZCL_STATUS.unsupportedAttribute
        : !attribute.set
          ? ZCL_STATUS.readOnly
          : attribute.type !== type
            ? ZCL_STATUS.invalidType
            : ZCL_STATUS.success;
      wanted.push({ id, status, apply: () => attribute?.set?.(value) ?? ZCL_STATUS.failure });
    }
    const isHindered = isUndivided && wanted.some(({ status }) => status !== ZCL_STATUS.success);
    const results = wanted.map(({ id, status, apply }) => {
      const isApplied = status === ZCL_STATUS.success && !isHindered;
      return { id, status: isApplied ? apply() : status };
    });
    const wrong = results.filter(({ status }) => status !== ZCL_STATUS.success);
    return wrong.length > 0 ? bytes(...wrong.flatMap(({ id, status }) => [status, u16(id)])) : Buffer.of(0);
  }
  function foundation(cluster: Cluster, { command, payload }: ZclFrame): Answer | undefined {
    const input = openReader(payload);
    const response = (data: Buffer): Answer => ({ kind: 'response', command: command + 1, payload: data });
    switch (command) {
      case FOUNDATION.read:
        return response(read(cluster, input));
      case FOUNDATION.write:
      case FOUNDATION.writeUndivided:
        return { kind: 'response', command: 0x04, payload: write(cluster, input, command === 0x03) };
      case FOUNDATION.writeNoResponse:
        write(cluster, input, false);
        return undefined;
      case FOUNDATION.configureReporting:
        return response(reporting.configure(cluster, payload));
      case FOUNDATION.readReporting:
        return response(reporting.readConfiguration(cluster, payload));
      case FOUNDATION.discover:
        return response(discovered(cluster, input));
      default:
        // Responses to what was asked: nothing is said to those.
        if ([0x01, 0x04, 0x07, 0x09, 0x0a, 0x0b, 0x0d].includes(command)) return undefined;
        return { kind: 'status', status: ZCL_STATUS.unsupportedCommand };
    }
  }
  function execute(aps: Aps, frame: ZclFrame): Answer | undefined {
    const cluster = clusters.get(aps.cluster);
    if (!cluster || aps.endpoint !== ENDPOINT) return status(ZCL_STATUS.unsupportedCluster);
    const isForeign = frame.manufacturer !== undefined && frame.manufacturer !== cluster.manufacturer;
    if (cluster.manufacturer !== undefined && frame.manufacturer !== cluster.manufacturer)
      return status(ZCL_STATUS.unsupportedManufacturerCommand);
    try {
      if (frame.isFoundation) return isForeign ? undefined : foundation(cluster, frame);
      const handler = isForeign ? undefined : cluster.commands[frame.command];
      if (!handler || frame.fromServer !== (cluster.isClient ?? false))
        return status(isForeign ? ZCL_STATUS.unsupportedManufacturerCommand : ZCL_STATUS.unsupportedCommand);
      const fault = faults.defaultResponse();
      if (fault !== undefined) return status(fault);
      const { source, sourceEndpoint } = aps;
      return handler(openReader(frame.payload), { tsn: frame.tsn, source, sourceEndpoint });
    } catch (error) {
      if (error instanceof RangeError) return status(ZCL_STATUS.malformed);
      throw error;
    }
  }
  function handle(aps: Aps, frame: ZclFrame): void {
    const answer = execute(aps, frame);
    const isBroadcast = aps.destination >= 0xfff8 || aps.group !== undefined;
    const isWanted =
      answer?.kind === 'response' || (answer && (answer.status !== 0 || !frame.disableDefaultResponse));
    if (answer && isWanted && !isBroadcast) {
      const isDefault = answer.kind === 'status';
      const response: ZclFrame = {
        ...frame,
        ...{ isFoundation: frame.isFoundation || isDefault, fromServer: !frame.fromServer },
        disableDefaultResponse: true,
        command: isDefault ? FOUNDATION.defaultResponse : answer.command,
        payload: isDefault ? Buffer.of(frame.command, answer.status) : answer.payload,
      };
      const target = { destination: aps.source, endpoint: aps.sourceEndpoint };
      options.node().send({ ...from(aps.cluster), ...target, data: encodeZcl(response) });
    }
    reporting.notice();
    for (const id of faults.foreignClusters()) {
      const payload = bytes(u16(FOREIGN_ATTRIBUTE), TYPE.uint16, u16(0xbeef));
      const data = encodeZcl({
        ...{ isFoundation: true, fromServer: true, disableDefaultResponse: true },
        ...{ tsn: nextTsn(), command: FOUNDATION.report, payload },
      });
      options.node().send({ ...from(id), destination: 0, endpoint: ENDPOINT, data });
    }
  }
  function hear(aps: Aps): void {
    const frame = decodeZcl(aps.data);
    if (!frame) return;
    received.push({
      ...{ monotonicMs: time.now(), tsn: frame.tsn, cluster: aps.cluster, command: frame.command },
      ...{ isFoundation: frame.isFoundation, payload: frame.payload.toString('hex') },
    });
    if (received.length > RECEIVED_MAX) received.shift();
    const slowMs = faults.slowMs();
    if (slowMs > 0) time.after(slowMs, () => handle(aps, frame));
    else handle(aps, frame);
  }
  const descriptor = () => {
    const all = [...clusters.values()];
    return {
      ...{ endpoint: ENDPOINT, profile: HOME_AUTOMATION, deviceId: options.deviceId, version: 1 },
      inputs: [...all.filter((one) => !one.isClient).map(({ id }) => id), ...faults.foreignClusters()],
      outputs: all.filter((one) => one.isClient).map(({ id }) => id),
    };
  };

  return {
    application: {
      endpoints: () => [descriptor()],
      activeEndpoints: () => [ENDPOINT, ...faults.bogusEndpoints()],
      hear,
      joined: reporting.reset,
    },
    add(...more) {
      for (const cluster of more) clusters.set(cluster.id, cluster);
    },
    notify(id, command, payload) {
      const cluster = clusters.get(id);
      if (cluster) toBound(cluster, { command, isFoundation: false, payload: Buffer.from(payload) });
    },
    ask(id, endpoint, command, payload) {
      const data = encodeZcl({
        ...{ isFoundation: false, fromServer: false, disableDefaultResponse: true },
        ...{ tsn: nextTsn(), command, payload: Buffer.from(payload) },
      });
      options.node().send({ ...from(id), destination: 0, endpoint, data });
    },
    notice: reporting.notice,
    received: () => [...received],
    reporting: reporting.describe,
    clearLog: () => void received.splice(0),
  };
}

const status = (code: number): Answer => ({ kind: 'status', status: code });
const from = (cluster: number) => ({ sourceEndpoint: ENDPOINT, profile: HOME_AUTOMATION, cluster });

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
