/** incomingMessageHandler of EZSP (UG100, rev. 4.0): what goes to the host, and what the stack answers by itself. */
import type { Aps, LastHop } from '../air/frames.ts';
import { answerZdo, ZDO, ZDO_RESPONSE } from '../air/zdo.ts';
import { bytes, ieee, openReader, u16, u32 } from '../bytes.ts';
import { coordinatorSubject } from '../stick/subject.ts';
import { apsFrame, BROADCASTS_FROM } from './aps-frame.ts';
import { ANY_DEVICE, CALLBACK, type NcpCore } from './core.ts';
import { WIDE_STATUS } from './status.ts';

/** EmberIncomingMessageType. */
const INCOMING = { unicast: 0, multicast: 2, broadcast: 4 } as const;
const SELF_LQI = 255;
/** The coordinator hears itself. */
export const SELF: LastHop = { nwk: 0, lqi: SELF_LQI, hops: 0 };
/** Silicon Laboratories. */
const MANUFACTURER = 0x1049;
/** An endpoint for all; an index of no table. */
const ALL = 0xff;
/** dBm, about as EFR32 radios have it. */
const rssiOf = (lqi: number) => Math.round(lqi / 4) - 100;

export interface Incoming {
  /** A frame to the coordinator. */
  hear(frame: Aps, hop: LastHop): void;
  /** A broadcast of the host's own, which the stack hears as well. */
  answer(frame: Aps): void;
}

export function openIncoming(core: NcpCore): Incoming {
  const { memory, version } = core;
  /** Requests of the device profile are for the stack itself. */
  function answer(frame: Aps): void {
    const [tsn = 0, ...body] = frame.data;
    const isBroadcast = frame.destination >= BROADCASTS_FROM;
    const subject = coordinatorSubject(core, MANUFACTURER);
    const response = safely(() => answerZdo(subject, frame.cluster, Buffer.from(body), isBroadcast));
    if (!response) return;
    const cluster = frame.cluster | ZDO_RESPONSE;
    const reply = {
      source: 0,
      sourceEndpoint: 0,
      endpoint: 0,
      profile: 0,
      cluster,
      data: bytes(tsn, response),
    };
    const own: Aps = { ...reply, destination: frame.source };
    if (frame.source === 0) indicate(own, SELF);
    else core.air.unicast(own, false, () => undefined);
  }

  function hear(frame: Aps, hop: LastHop): void {
    if (frame.profile !== 0 || frame.endpoint !== 0) {
      const isForUs = frame.endpoint === ALL || memory().endpoints.has(frame.endpoint);
      const isOfOurGroup = frame.group === undefined || memory().groups.has(frame.group);
      if (isForUs && isOfOurGroup) indicate(frame, hop);
      return;
    }
    if (frame.data.length === 0) return;
    if (frame.cluster === ZDO.deviceAnnounce) forgetMovedChild(core, frame, hop);
    if (frame.cluster >= ZDO_RESPONSE || frame.cluster === ZDO.deviceAnnounce) indicate(frame, hop);
    else answer(frame);
  }

  function indicate(frame: Aps, hop: LastHop): void {
    const { group = 0, destination } = frame;
    const type =
      group !== 0
        ? INCOMING.multicast
        : destination >= BROADCASTS_FROM
          ? INCOMING.broadcast
          : INCOMING.unicast;
    const head = bytes(type, apsFrame({ ...frame, options: 0, group }, 0));
    const rssi = rssiOf(hop.lqi) & 0xff;
    const info =
      version >= WIDE_STATUS
        ? bytes(u16(frame.source), ieee(ANY_DEVICE), ALL, ALL, hop.lqi, rssi, u32(0))
        : bytes(hop.lqi, rssi, u16(frame.source), ALL, ALL);
    core.callback(CALLBACK.incomingMessage, bytes(head, info, frame.data.length, frame.data));
  }

  return { hear, answer };
}

/** A child announces itself through a router: it has another parent. */
function forgetMovedChild(core: NcpCore, { data }: Aps, { hops }: LastHop): void {
  if (hops === 1) return;
  const device = safely(() => {
    const announced = openReader(data.subarray(3));
    return announced.ieee();
  });
  if (device === undefined) return;
  core.memory().children.delete(device);
  core.tokens().children().delete(device);
}

function safely<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
