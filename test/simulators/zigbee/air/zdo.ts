/**
 * The device profile (Zigbee specification 05-3474-22, 2.4), as any node answers it: pure but for what it is asked to do.
 * Bodies are those after the transaction sequence number.
 */
import { bytes, ieee, openReader, type Reader, u16 } from '../bytes.ts';
import { STATUS } from '../mt/status.ts';
import type { Aps } from './frames.ts';

export const ZDO = {
  nwkAddress: 0x00,
  ieeeAddress: 0x01,
  nodeDescriptor: 0x02,
  powerDescriptor: 0x03,
  simpleDescriptor: 0x04,
  activeEndpoints: 0x05,
  matchDescriptors: 0x06,
  deviceAnnounce: 0x13,
  serverDiscovery: 0x15,
  bind: 0x21,
  unbind: 0x22,
  lqi: 0x31,
  routes: 0x32,
  bindings: 0x33,
  leave: 0x34,
  permitJoin: 0x36,
  nwkUpdate: 0x38,
} as const;
export const ZDO_RESPONSE = 0x8000;

export interface SimpleDescriptor {
  endpoint: number;
  profile: number;
  deviceId: number;
  version: number;
  inputs: number[];
  outputs: number[];
}

export interface Binding {
  endpoint: number;
  cluster: number;
  /** IEEE address and endpoint, or a group. */
  target: { ieee: string; endpoint: number } | { group: number };
}

export interface Neighbour {
  ieee: string;
  nwk: number;
  type: 'coordinator' | 'router' | 'endDevice';
  isReceiverOn: boolean;
  relationship: 'parent' | 'child' | 'sibling';
  lqi: number;
  depth: number;
}

export interface ZdoSubject {
  ieee: string;
  nwk: number;
  extendedPanId: Buffer;
  logicalType: 0 | 1 | 2;
  /** MAC capability flags: 0x02 router, 0x04 mains, 0x08 receiver on when idle, 0x80 takes an address. */
  capability: number;
  manufacturerCode: number;
  /** Active ones may be claimed that have no descriptor. */
  activeEndpoints: number[];
  simple(endpoint: number): SimpleDescriptor | undefined;
  neighbours(): Neighbour[];
  routes(): { destination: number; nextHop: number }[];
  children(): number[];
  bindings: Binding[];
  /** Rows of its binding table. */
  bindingsMax: number;
  permitJoin(seconds: number): void;
  /** Status of ZDO. */
  leave(device: string, isRejoin: boolean): number;
  moveChannel(mask: number, updateId: number): void;
  /** How busy a channel is: 0 to 255. */
  energy(channel: number): number;
}

/** A response fits into one frame. */
const NEIGHBOURS_PER_FRAME = 2;
const ROUTES_PER_FRAME = 8;
const BINDINGS_PER_FRAME = 3;
/** Of ScanDuration in Mgmt_NWK_Update_req (2.4.3.3.9): to 5 an energy scan, above them a change. */
const SCAN_MAX = 5;
export const CHANGE_CHANNEL = 0xfe;

/** Somewhat busier in the middle of the band, where the site's Wi-Fi would be; or what the test says. */
export const energyIn =
  (air: { options(): { energies?: Readonly<Record<number, number>> | undefined } }) => (channel: number) =>
    air.options().energies?.[channel] ?? 40 + 4 * (channel % 5);

/** Undefined: nothing is answered. Throws RangeError for a body that is too short. */
export function answerZdo(
  subject: ZdoSubject,
  cluster: number,
  body: Buffer,
  isBroadcast: boolean,
): Buffer | undefined {
  const input = openReader(body);
  switch (cluster) {
    case ZDO.nwkAddress:
      return input.ieee() === subject.ieee
        ? addresses(subject, input)
        : unknown(isBroadcast, body.subarray(0, 8));
    case ZDO.ieeeAddress:
      return input.u16() === subject.nwk ? addresses(subject, input) : unknown(isBroadcast, Buffer.alloc(8));
    case ZDO.nodeDescriptor:
      return about(subject, input, () => bytes(STATUS.success, u16(subject.nwk), nodeDescriptor(subject)));
    case ZDO.powerDescriptor:
      // On when needed, from a disposable battery that is full.
      return about(subject, input, () => bytes(STATUS.success, u16(subject.nwk), 0x40, 0xc4));
    case ZDO.simpleDescriptor:
      return about(subject, input, () => simpleDescriptor(subject, input.u8()));
    case ZDO.activeEndpoints:
      return about(subject, input, () => {
        const { activeEndpoints } = subject;
        return bytes(STATUS.success, u16(subject.nwk), activeEndpoints.length, ...activeEndpoints);
      });
    case ZDO.matchDescriptors:
      return matchDescriptors(subject, input, isBroadcast);
    case ZDO.serverDiscovery:
      return subject.logicalType === 0 ? bytes(STATUS.success, u16(input.u16() & 1)) : undefined;
    default:
      return manage(subject, cluster, input, isBroadcast);
  }
}

function manage(
  subject: ZdoSubject,
  cluster: number,
  input: Reader,
  isBroadcast: boolean,
): Buffer | undefined {
  switch (cluster) {
    case ZDO.bind:
    case ZDO.unbind:
      return Buffer.of(bind(subject, cluster === ZDO.bind, input));
    case ZDO.lqi:
      if (subject.logicalType === 2) return Buffer.of(STATUS.zdoNotSupported);
      return table(subject.neighbours(), input.u8(), NEIGHBOURS_PER_FRAME, 1, neighbour(subject));
    case ZDO.routes:
      if (subject.logicalType === 2) return Buffer.of(STATUS.zdoNotSupported);
      return table(subject.routes(), input.u8(), ROUTES_PER_FRAME, 1, ({ destination, nextHop }) =>
        bytes(u16(destination), 0, u16(nextHop)),
      );
    case ZDO.bindings:
      return table(subject.bindings, input.u8(), BINDINGS_PER_FRAME, 1, (one) => binding(subject, one));
    case ZDO.leave: {
      const device = input.ieee();
      const isRejoin = (input.u8() & 0x80) !== 0;
      return Buffer.of(subject.leave(device === '0000000000000000' ? subject.ieee : device, isRejoin));
    }
    case ZDO.permitJoin:
      subject.permitJoin(input.u8());
      return isBroadcast ? undefined : Buffer.of(STATUS.success);
    case ZDO.nwkUpdate:
      return nwkUpdate(subject, input, isBroadcast);
    default:
      return isBroadcast ? undefined : Buffer.of(STATUS.zdoNotSupported);
  }
}

function unknown(isBroadcast: boolean, asked: Uint8Array): Buffer | undefined {
  return isBroadcast ? undefined : bytes(STATUS.zdoDeviceNotFound, asked, u16(0));
}

function addresses(subject: ZdoSubject, input: Reader): Buffer {
  const isExtended = input.u8() === 1;
  const start = input.u8();
  const head = bytes(STATUS.success, ieee(subject.ieee), u16(subject.nwk));
  if (!isExtended) return head;
  const children = subject.children();
  return bytes(head, children.length, start, ...children.slice(start).map(u16));
}

/** The node that the question is for; only a parent could answer for another. */
function about(subject: ZdoSubject, input: Reader, answer: () => Buffer): Buffer {
  const nwk = input.u16();
  if (nwk === subject.nwk) return answer();
  const status = subject.logicalType === 2 ? STATUS.zdoInvalidRequestType : STATUS.zdoDeviceNotFound;
  return bytes(status, u16(nwk), 0);
}

/** 2.3.2.3: type, frequency band 2.4 GHz, capability, manufacturer, buffers, server mask with revision 22. */
function nodeDescriptor({ logicalType, capability, manufacturerCode }: ZdoSubject): Buffer {
  const serverMask = (22 << 9) | (logicalType === 0 ? 1 : 0);
  return bytes(
    logicalType,
    0x40,
    capability,
    u16(manufacturerCode),
    82,
    u16(255),
    u16(serverMask),
    u16(255),
    0,
  );
}

function simpleDescriptor(subject: ZdoSubject, endpoint: number): Buffer {
  const failed = (status: number) => bytes(status, u16(subject.nwk), 0);
  if (endpoint === 0 || endpoint > 254) return failed(STATUS.zdoInvalidEndpoint);
  const found = subject.simple(endpoint);
  if (!found) return failed(STATUS.zdoNotActive);
  const { profile, deviceId, version, inputs, outputs } = found;
  const descriptor = bytes(
    endpoint,
    u16(profile),
    u16(deviceId),
    version,
    inputs.length,
    ...inputs.map(u16),
    outputs.length,
    ...outputs.map(u16),
  );
  return bytes(STATUS.success, u16(subject.nwk), descriptor.length, descriptor);
}

function matchDescriptors(subject: ZdoSubject, input: Reader, isBroadcast: boolean): Buffer | undefined {
  const nwk = input.u16();
  const profile = input.u16();
  const list = () => Array.from({ length: input.u8() }, () => input.u16());
  const [inputs, outputs] = [list(), list()];
  if (nwk !== subject.nwk && nwk < 0xfff8) return bytes(STATUS.zdoDeviceNotFound, u16(nwk), 0);
  const matching = subject.activeEndpoints.filter((endpoint) => {
    const one = subject.simple(endpoint);
    return (
      one?.profile === profile &&
      (inputs.some((id) => one.inputs.includes(id)) || outputs.some((id) => one.outputs.includes(id)))
    );
  });
  if (isBroadcast && matching.length === 0) return undefined;
  return bytes(STATUS.success, u16(subject.nwk), matching.length, ...matching);
}

function bind(subject: ZdoSubject, isBind: boolean, input: Reader): number {
  const source = input.ieee();
  const [endpoint, cluster, mode] = [input.u8(), input.u16(), input.u8()];
  if (source !== subject.ieee) return STATUS.zdoNotSupported;
  if (mode !== 1 && mode !== 3) return STATUS.zdoInvalidRequestType;
  const target = mode === 1 ? { group: input.u16() } : { ieee: input.ieee(), endpoint: input.u8() };
  const wanted = JSON.stringify({ endpoint, cluster, target });
  const index = subject.bindings.findIndex((one) => JSON.stringify(one) === wanted);
  if (!isBind) {
    if (index < 0) return STATUS.zdoNoEntry;
    subject.bindings.splice(index, 1);
    return STATUS.success;
  }
  if (index >= 0) return STATUS.success;
  if (!subject.simple(endpoint)) return STATUS.zdoInvalidEndpoint;
  if (subject.bindings.length >= subject.bindingsMax) return STATUS.zdoTableFull;
  subject.bindings.push({ endpoint, cluster, target });
  return STATUS.success;
}

function table<Row>(
  rows: Row[],
  start: number,
  perFrame: number,
  countSize: number,
  encode: (row: Row) => Buffer,
): Buffer {
  const part = rows.slice(start, start + perFrame);
  return bytes(
    STATUS.success,
    rows.length & (2 ** (8 * countSize) - 1),
    start,
    part.length,
    ...part.map(encode),
  );
}

/** 2.4.4.3.2: type, receiver and relationship in one byte; whether it permits joining is not known. */
function neighbour({ extendedPanId }: ZdoSubject): (one: Neighbour) => Buffer {
  return ({ ieee: address, nwk, type, isReceiverOn, relationship, depth, lqi }) => {
    const kind =
      ['coordinator', 'router', 'endDevice'].indexOf(type) |
      ((isReceiverOn ? 1 : 0) << 2) |
      (['parent', 'child', 'sibling'].indexOf(relationship) << 4);
    return bytes(extendedPanId, ieee(address), u16(nwk), kind, 2, depth, lqi);
  };
}

function binding(subject: ZdoSubject, { endpoint, cluster, target }: Binding): Buffer {
  const head = [ieee(subject.ieee), endpoint, u16(cluster)];
  if ('group' in target) return bytes(...head, 1, u16(target.group));
  return bytes(...head, 3, ieee(target.ieee), target.endpoint);
}

function nwkUpdate(subject: ZdoSubject, input: Reader, isBroadcast: boolean): Buffer | undefined {
  const mask = input.u32();
  const duration = input.u8();
  if (duration === CHANGE_CHANNEL) {
    subject.moveChannel(mask, input.left() > 0 ? input.u8() : 0);
    return undefined;
  }
  if (duration > SCAN_MAX) return undefined;
  if (isBroadcast) return undefined;
  const channels = Array.from({ length: 16 }, (_, index) => index + 11).filter((one) => mask & (1 << one));
  const used = channels.reduce((all, one) => (all | (1 << one)) >>> 0, 0);
  const energies = channels.map(subject.energy);
  const scanned = Buffer.alloc(4);
  scanned.writeUInt32LE(used);
  return bytes(STATUS.success, scanned, u16(0), u16(0), energies.length, ...energies);
}

/** Between endpoints 0. */
export function zdoFrame(
  destination: number,
  cluster: number,
  tsn: number,
  body: Buffer,
): Omit<Aps, 'source'> {
  const head = { destination, cluster, endpoint: 0, sourceEndpoint: 0, profile: 0 };
  return { ...head, data: bytes(tsn, body) };
}
