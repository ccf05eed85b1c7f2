/** The application of a device: endpoint 1 with its clusters, and the foundation commands of ZCL for all of them. */
import type { Aps } from '../air/frames.ts';
import type { Application, OpenNode } from '../air/node.ts';
import { bytes, openReader, u16 } from '../bytes.ts';
import type { Time } from '../time.ts';
import { type Answer, type Cause, type Cluster, failed, succeeded } from './cluster.ts';
import { answerFoundation, attributeRecord, FOUNDATION, type ValueFaults } from './foundation.ts';
import { decodeZcl, ZCL_STATUS, type ZclFrame } from './frame.ts';
import { openReporting, type Reporting } from './reporting.ts';
import { HOME_AUTOMATION, openSpeech } from './speech.ts';
import { TYPE } from './types.ts';

/** Something that it was sent, with any outcome. */
export interface Received {
  /** Milliseconds of CLOCK_MONOTONIC. */
  monotonicMs: number;
  tsn: number;
  cluster: number;
  command: number;
  isFoundation: boolean;
  payload: string;
}

type HeardFrame = ZclFrame & Cause;

export interface DeviceFaults extends ValueFaults {
  slowMs(): number;
  /** Takes one away from its account. */
  losesEvent(): boolean;
  lateEventsMs(): number;
  /** Takes one away from its account. Undefined: none. */
  defaultResponse(): number | undefined;
  answersByDefault(): boolean;
  foreignClusters(): number[];
  bogusEndpoints(): number[];
}

export interface DeviceOptions {
  time: Time;
  deviceId: number;
  endpoint: number;
  /** Clusters that its simple descriptor does not have. */
  unlisted: number[];
  /** Its events and alarms ask for a default response. */
  asksDefaultResponse: boolean;
  node: () => OpenNode;
  faults: DeviceFaults;
}

export interface Device {
  application: Application;
  add(...clusters: Cluster[]): void;
  /** A command of a server to those who are bound to it. */
  notify(cluster: number, command: number, payload: Uint8Array): void;
  /** A report of attributes that no one configured, to those who are bound to the cluster. */
  reportUnasked(cluster: number, records: Uint8Array): void;
  /** A command of a client to the coordinator. */
  ask(cluster: number, endpoint: number, command: number, payload: Uint8Array): void;
  /** Reports what has changed. */
  notice(): void;
  received(): Received[];
  reporting(): { cluster: number; attribute: number; minimum: number; maximum: number; change: number }[];
  clearLog(): void;
}

const COORDINATOR_ENDPOINT = 1;
const RECEIVED_MAX = 2_000;
/** Of a cluster that it does not have: its attribute 0, a whole number. */
const FOREIGN_REPORT = {
  command: FOUNDATION.report,
  isFoundation: true,
  fromServer: true,
  payload: bytes(u16(0x0000), TYPE.uint16, u16(0xbeef)),
};

export function openDevice(options: DeviceOptions): Device {
  const { time, faults } = options;
  const clusters = new Map<number, Cluster>();
  const received: Received[] = [];
  const speech = openSpeech({ ...options, losesEvent: faults.losesEvent, lateEventsMs: faults.lateEventsMs });
  const reporting: Reporting = openReporting(time, (cluster, ids) => {
    const records = ids.map((id) => bytes(u16(id), attributeRecord(cluster, id, faults)));
    speech.toBound(cluster, { command: FOUNDATION.report, isFoundation: true, payload: bytes(...records) });
  });

  function handle(aps: Aps, frame: HeardFrame): void {
    const found = aps.endpoint === options.endpoint ? clusters.get(aps.cluster) : undefined;
    const answer = execute(found, aps, frame, reporting, faults);
    const isBroadcast = aps.destination >= 0xfff8 || aps.group !== undefined;
    const isWanted =
      answer?.kind === 'response' || (answer && (answer.status !== 0 || !frame.disableDefaultResponse));
    if (answer && isWanted && !isBroadcast) speech.respond(aps, responseTo(frame, answer));
    reporting.notice();
    for (const cluster of faults.foreignClusters())
      speech.toCoordinator(cluster, COORDINATOR_ENDPOINT, FOREIGN_REPORT);
  }
  function hear(aps: Aps): void {
    const decoded = decodeZcl(aps.data);
    if (!decoded) return;
    const heardMs = time.now();
    const frame = { ...decoded, heardMs };
    received.push({
      monotonicMs: heardMs,
      tsn: frame.tsn,
      cluster: aps.cluster,
      command: frame.command,
      isFoundation: frame.isFoundation,
      payload: frame.payload.toString('hex'),
    });
    if (received.length > RECEIVED_MAX) received.shift();
    if (frame.isFoundation && frame.command === FOUNDATION.defaultResponse) speech.confirmed(frame.tsn);
    const slowMs = faults.slowMs();
    if (slowMs > 0) time.after(slowMs, () => handle(aps, frame));
    else handle(aps, frame);
  }
  return {
    application: {
      endpoints: () => [descriptorOf([...clusters.values()], options, faults.foreignClusters())],
      activeEndpoints: () => [options.endpoint, ...faults.bogusEndpoints()],
      hear,
      joined: reporting.reset,
    },
    add(...more) {
      for (const cluster of more) clusters.set(cluster.id, cluster);
    },
    notify(id, command, payload) {
      const cluster = clusters.get(id);
      if (cluster) speech.toBound(cluster, { command, isFoundation: false, payload: Buffer.from(payload) });
    },
    reportUnasked(id, records) {
      const cluster = clusters.get(id);
      const payload = Buffer.from(records);
      if (cluster) speech.toBound(cluster, { command: FOUNDATION.report, isFoundation: true, payload });
    },
    ask(id, endpoint, command, payload) {
      speech.toCoordinator(id, endpoint, {
        isFoundation: false,
        fromServer: false,
        command,
        payload: Buffer.from(payload),
      });
    },
    notice: reporting.notice,
    received: () => [...received],
    reporting: reporting.describe,
    clearLog: () => void received.splice(0),
  };
}

/** Undefined: nothing is to be answered. */
function execute(
  cluster: Cluster | undefined,
  aps: Aps,
  frame: HeardFrame,
  reporting: Reporting,
  faults: DeviceFaults,
): Answer | undefined {
  if (!cluster) return failed(ZCL_STATUS.unsupportedCluster);
  const isForeign = frame.manufacturer !== undefined && frame.manufacturer !== cluster.manufacturer;
  if (cluster.manufacturer !== undefined && frame.manufacturer !== cluster.manufacturer)
    return failed(ZCL_STATUS.unsupportedManufacturerCommand);
  try {
    if (frame.isFoundation)
      return isForeign ? undefined : answerFoundation(cluster, frame, reporting, faults);
    const handler = isForeign ? undefined : cluster.commands[frame.command];
    if (!handler || frame.fromServer !== (cluster.isClient ?? false))
      return failed(isForeign ? ZCL_STATUS.unsupportedManufacturerCommand : ZCL_STATUS.unsupportedCommand);
    const fault = faults.defaultResponse();
    if (fault !== undefined) return failed(fault);
    const { source, sourceEndpoint } = aps;
    const { tsn, heardMs } = frame;
    const answer = handler(openReader(frame.payload), { tsn, heardMs, source, sourceEndpoint });
    return answer.kind === 'response' && faults.answersByDefault() ? succeeded : answer;
  } catch (error) {
    if (error instanceof RangeError) return failed(ZCL_STATUS.malformed);
    throw error;
  }
}

function responseTo(frame: ZclFrame, answer: Answer): ZclFrame {
  const isDefault = answer.kind === 'status';
  return {
    ...frame,
    isFoundation: frame.isFoundation || isDefault,
    fromServer: !frame.fromServer,
    disableDefaultResponse: true,
    command: isDefault ? FOUNDATION.defaultResponse : answer.command,
    payload: isDefault ? Buffer.of(frame.command, answer.status) : answer.payload,
  };
}

function descriptorOf(
  clusters: Cluster[],
  { endpoint, deviceId, unlisted }: DeviceOptions,
  foreign: number[],
) {
  const listed = clusters.filter(({ id }) => !unlisted.includes(id));
  return {
    endpoint,
    profile: HOME_AUTOMATION,
    deviceId,
    version: 1,
    inputs: [...listed.filter((one) => !one.isClient).map(({ id }) => id), ...foreign],
    outputs: listed.filter((one) => one.isClient).map(({ id }) => id),
  };
}
