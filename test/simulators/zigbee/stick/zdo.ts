/** ZDO of SWRA198: requests of the host become frames of the device profile, and their answers AREQs. */
import type { Aps } from '../air/frames.ts';
import { answerZdo, CHANGE_CHANNEL, ZDO, ZDO_RESPONSE } from '../air/zdo.ts';
import { bytes, openReader, type Reader, u16 } from '../bytes.ts';
import { SUBSYSTEM } from '../mt/frame.ts';
import { STATUS } from '../mt/status.ts';
import type { Core, Subsystem } from './core.ts';
import { coordinatorSubject } from './subject.ts';

/** Texas Instruments. */
const MANUFACTURER = 0x0007;
const MESSAGE_CALLBACK = 0xff;
const ANNOUNCE_IND = 0xc1;
/** All nodes; those who listen always; routers and the coordinator (Zigbee specification, 3.6.5). */
const BROADCAST = { all: 0xffff, listening: 0xfffd, routers: 0xfffc };

interface Addressed {
  destination: number;
  cluster: number;
  body: Buffer;
}

const addressed =
  (cluster: number, size: number) =>
  (input: Reader): Addressed => ({ destination: input.u16(), cluster, body: input.bytes(size) });

/** Id of the SREQ → frame. The id of the AREQ that answers is 0x80 more. */
const REQUESTS: Record<number, (input: Reader) => Addressed> = {
  0: (input) => ({ destination: BROADCAST.listening, cluster: ZDO.nwkAddress, body: input.bytes(10) }),
  1(input) {
    const body = input.bytes(4);
    return { destination: body.readUInt16LE(), cluster: ZDO.ieeeAddress, body };
  },
  2: addressed(ZDO.nodeDescriptor, 2),
  3: addressed(ZDO.powerDescriptor, 2),
  4: addressed(ZDO.simpleDescriptor, 3),
  5: addressed(ZDO.activeEndpoints, 2),
  6: (input) => ({ destination: input.u16(), cluster: ZDO.matchDescriptors, body: input.rest() }),
  10: (input) => ({ destination: BROADCAST.listening, cluster: ZDO.deviceAnnounce, body: input.bytes(11) }),
  12: (input) => ({ destination: BROADCAST.listening, cluster: ZDO.serverDiscovery, body: input.bytes(2) }),
  33: (input) => bindRequest(ZDO.bind, input),
  34: (input) => bindRequest(ZDO.unbind, input),
  49: addressed(ZDO.lqi, 1),
  50: addressed(ZDO.routes, 1),
  51: addressed(ZDO.bindings, 1),
  52: addressed(ZDO.leave, 9),
  54(input) {
    const mode = input.u8();
    const destination = input.u16();
    const body = input.bytes(2);
    // A unicast to the broadcast address is for the coordinator alone.
    const isOwn = mode !== 15 && destination >= 0xfff8;
    return { destination: isOwn ? 0 : destination, cluster: ZDO.permitJoin, body };
  },
  55(input) {
    const destination = input.u16();
    input.u8();
    const mask = input.bytes(4);
    const [duration, count] = [input.u8(), input.u8()];
    const manager = input.u16();
    const body = duration <= 5 ? bytes(mask, duration, count) : bytes(mask, duration, 0, u16(manager));
    return { destination, cluster: ZDO.nwkUpdate, body };
  },
};

function bindRequest(cluster: number, input: Reader): Addressed {
  const destination = input.u16();
  const source = input.bytes(11);
  const mode = input.u8();
  const target = input.bytes(8);
  const endpoint = input.u8();
  const body =
    mode === 1 ? bytes(source, mode, target.subarray(0, 2)) : bytes(source, mode, target, endpoint);
  return { destination, cluster, body };
}

export interface Zdo {
  commands: Subsystem;
  /** A frame to endpoint 0 of the coordinator. */
  hear(frame: Aps): void;
}

export function openZdo(core: Core): Zdo {
  let sequence = 0;
  const nextSequence = () => {
    sequence = (sequence + 1) & 0xff;
    return sequence;
  };

  /** What the host receives about a message of the device profile. */
  function report(source: number, cluster: number, tsn: number, body: Buffer, isBroadcast: boolean): void {
    const { callbacks } = core.memory();
    if (callbacks.has(cluster) || callbacks.has(0xffff)) {
      const head = [u16(source), isBroadcast ? 1 : 0, u16(cluster), 0, tsn, u16(0)] as const;
      core.areq(SUBSYSTEM.zdo, MESSAGE_CALLBACK, bytes(...head, body));
    }
    if (cluster === ZDO.deviceAnnounce) {
      core.areq(SUBSYSTEM.zdo, ANNOUNCE_IND, bytes(u16(source), body));
      return;
    }
    const id = responseId(cluster);
    if (id !== undefined) core.areq(SUBSYSTEM.zdo, id, respelt(id, source, body));
  }
  function request({ destination, cluster, body }: Addressed): Buffer {
    if (!core.memory().network) return Buffer.of(STATUS.nwkInvalidRequest);
    const tsn = nextSequence();
    const isBroadcast = destination >= 0xfff8;
    if (destination === 0 || isBroadcast) {
      const isUpdate = cluster === ZDO.nwkUpdate && body[4] === CHANGE_CHANNEL;
      // The stack counts the update id by itself.
      const own = isUpdate ? bytes(body.subarray(0, 5), nextUpdateId(core)) : body;
      const answer = answerZdo(coordinatorSubject(core, MANUFACTURER), cluster, own, isBroadcast);
      // It answers its own broadcast, as it answers no one else's.
      const toHost = cluster === ZDO.permitJoin ? Buffer.of(STATUS.success) : answer;
      if (toHost) core.later(0, () => report(0, cluster | ZDO_RESPONSE, tsn, toHost, false));
      if (isBroadcast) core.air.broadcast(zdoFrame(destination, cluster, bytes(tsn, own)));
    } else core.air.unicast(zdoFrame(destination, cluster, bytes(tsn, body)), false, () => undefined);
    return Buffer.of(STATUS.success);
  }

  return {
    commands: {
      ...Object.fromEntries(
        Object.entries(REQUESTS).map(([id, encode]) => [
          id,
          (input: Reader) => {
            const what = encode(input);
            input.end();
            return request(what);
          },
        ]),
      ),
      62(input) {
        core.memory().callbacks.add(input.u16());
        return Buffer.of(STATUS.success);
      },
      63: (input) =>
        Buffer.of(core.memory().callbacks.delete(input.u16()) ? STATUS.success : STATUS.invalidParameter),
    },
    hear(frame) {
      const input = openReader(frame.data);
      if (input.left() === 0) return;
      const tsn = input.u8();
      const body = input.rest();
      const isBroadcast = frame.destination >= 0xfff8;
      report(frame.source, frame.cluster, tsn, body, isBroadcast);
      if (frame.cluster >= ZDO_RESPONSE || frame.cluster === ZDO.deviceAnnounce) return;
      const answer = answerSafely(core, frame.cluster, body, isBroadcast);
      if (answer && frame.source === 0) return report(0, frame.cluster | ZDO_RESPONSE, tsn, answer, false);
      const response = answer && zdoFrame(frame.source, frame.cluster | ZDO_RESPONSE, bytes(tsn, answer));
      if (response) core.air.unicast(response, false, () => undefined);
    },
  };
}

/** A frame of the device profile from the coordinator. */
function zdoFrame(destination: number, cluster: number, data: Buffer): Aps {
  return { source: 0, sourceEndpoint: 0, destination, endpoint: 0, profile: 0, cluster, data };
}

function answerSafely(core: Core, cluster: number, body: Buffer, isBroadcast: boolean): Buffer | undefined {
  try {
    return answerZdo(coordinatorSubject(core, MANUFACTURER), cluster, body, isBroadcast);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function responseId(cluster: number): number | undefined {
  if (cluster === (ZDO.serverDiscovery | ZDO_RESPONSE)) return 0x8a;
  if (cluster === (ZDO.nwkUpdate | ZDO_RESPONSE)) return 0xb8;
  const low = cluster & 0xff;
  const ids: Record<number, number> = {
    33: 0xa1,
    34: 0xa2,
    49: 0xb1,
    50: 0xb2,
    51: 0xb3,
    52: 0xb4,
    54: 0xb6,
  };
  if (cluster < ZDO_RESPONSE) return undefined;
  return low <= ZDO.matchDescriptors ? 0x80 + low : ids[low];
}

/** SWRA198 puts the start index of an address response before the count, and has both always. */
function respelt(id: number, source: number, body: Buffer): Buffer {
  if (id !== 0x80 && id !== 0x81) return bytes(u16(source), body);
  const [count = 0, start = 0] = body.subarray(11);
  return bytes(body.subarray(0, 11), start, count, body.subarray(13));
}

function nextUpdateId(core: Core): number {
  return ((core.memory().network?.updateId ?? 0) + 1) & 0xff;
}
