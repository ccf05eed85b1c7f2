/** AF of SWRA198: endpoints, and messages to and from those of others. */
import type { Aps, LastHop } from '../air/frames.ts';
import { bytes, ieeeText, type Reader, u16, u32 } from '../bytes.ts';
import { SUBSYSTEM } from '../mt/frame.ts';
import { STATUS } from '../mt/status.ts';
import type { Core, Subsystem } from './core.ts';

const DATA_CONFIRM = 0x80;
const INCOMING = 0x81;
const INCOMING_EXT = 0x82;
/** AF_ACK_REQUEST: the confirm waits for the far end. */
const OPTION_ACK = 0x10;
/** Longer data does not go into AF_INCOMING_MSG; it is fetched with AF_DATA_RETRIEVE. */
const INCOMING_MAX = 223;
/** AfAddrMode. */
const MODE = { group: 1, short: 2, extended: 3, broadcast: 15 };
/** A coordinator hears itself well. */
const SELF_LQI = 255;
/**
 * Of the application in a frame with network security and without fragmentation (afDataReqMTU): what devices without
 * fragmentation name as the most they take (node descriptor, maximum incoming transfer size).
 */
export const PAYLOAD_MAX = 82;
/** DEF_NWK_RADIUS of Z-Stack. */
const RADIUS = 30;

/** `hearZdo`: a frame to the device profile of the coordinator itself. */
export function afCommands(core: Core, hearZdo: (frame: Aps) => void): Subsystem {
  const memory = core.memory;
  return {
    0(input) {
      const [endpoint, profile, deviceId] = [input.u8(), input.u16(), input.u16()];
      const version = input.u8();
      input.u8();
      const [inputs, outputs] = [list(input), list(input)];
      input.end();
      if (memory().endpoints.has(endpoint)) return Buffer.of(STATUS.apsDuplicateEntry);
      memory().endpoints.set(endpoint, { endpoint, profile, deviceId, version, inputs, outputs });
      return Buffer.of(STATUS.success);
    },
    ...dataCommands(core, hearZdo),
    // AF_DELETE.
    4: (input) => Buffer.of(memory().endpoints.delete(input.u8()) ? STATUS.success : STATUS.invalidParameter),
    // AF_INTER_PAN_CTL: no one outside the network is here.
    16: () => Buffer.of(STATUS.success),
    18(input) {
      const timestamp = input.u32();
      const [index, length] = [input.u16(), input.u8()];
      const stored = memory().stored.get(timestamp);
      if (length === 0) memory().stored.delete(timestamp);
      if (!stored || index + length > stored.length) return bytes(STATUS.failure, 0);
      return bytes(STATUS.success, length, stored.subarray(index, index + length));
    },
    19: () => Buffer.of(STATUS.success),
    20: () => Buffer.of(50, 1, 0),
  };
}

/** AF_DATA_REQUEST, _EXT and _SRC_RTG. */
function dataCommands(core: Core, hearZdo: (frame: Aps) => void): Subsystem {
  const memory = core.memory;

  function confirm(frame: Aps, transaction: number, status: number): void {
    core.areq(SUBSYSTEM.af, DATA_CONFIRM, bytes(status, frame.sourceEndpoint, transaction));
  }
  function send(frame: Aps, transaction: number, options: number): Buffer {
    if (frame.data.length > PAYLOAD_MAX) return Buffer.of(STATUS.invalidParameter);
    const isReady =
      memory().network && (memory().endpoints.has(frame.sourceEndpoint) || frame.sourceEndpoint === 0);
    if (!isReady) return Buffer.of(STATUS.invalidParameter);
    if (memory().full > 0) {
      memory().full -= 1;
      return Buffer.of(STATUS.memError);
    }
    const sender = memory();
    const settled = (status: number) => {
      // A stick that was reset meanwhile knows nothing of it. What endpoint 0 sends is the stack's own, not the host's.
      if (sender === memory() && frame.sourceEndpoint !== 0) confirm(frame, transaction, status);
    };
    const loopBack = () => {
      if (frame.endpoint === 0) hearZdo(frame);
      else incoming(core, frame, { nwk: 0, lqi: SELF_LQI, hops: 0 });
    };
    if (frame.group !== undefined || frame.destination >= 0xfff8) {
      if (frame.endpoint === 0 && frame.group === undefined) core.later(0, loopBack);
      core.air.broadcast(frame);
      settled(STATUS.success);
    } else if (frame.destination === 0) {
      settled(STATUS.success);
      core.later(0, loopBack);
    } else core.air.unicast(frame, (options & OPTION_ACK) !== 0, settled);
    return Buffer.of(STATUS.success);
  }
  function shortOf(mode: number, address: Buffer): number | undefined {
    if (mode !== MODE.extended) return address.readUInt16LE();
    const text = ieeeText(address);
    if (text === core.ieee()) return 0;
    return core.air.byIeee(text)?.nwk;
  }

  return {
    1(input) {
      const destination = input.u16();
      const [endpoint, sourceEndpoint, cluster] = [input.u8(), input.u8(), input.u16()];
      const [transaction, options] = [input.u8(), input.u8()];
      input.u8();
      const data = input.bytes(input.u8());
      input.end();
      return send(
        { ...from(core, sourceEndpoint), destination, endpoint, cluster, data },
        transaction,
        options,
      );
    },
    2(input) {
      const mode = input.u8();
      const address = input.bytes(8);
      const endpoint = input.u8();
      input.u16();
      const [sourceEndpoint, cluster] = [input.u8(), input.u16()];
      const [transaction, options] = [input.u8(), input.u8()];
      input.u8();
      const data = input.bytes(input.u16());
      const destination = shortOf(mode, address);
      if (destination === undefined) return Buffer.of(STATUS.invalidParameter);
      const frame = { ...from(core, sourceEndpoint), destination, endpoint, cluster, data };
      return send(mode === MODE.group ? { ...frame, group: destination } : frame, transaction, options);
    },
    3(input) {
      const destination = input.u16();
      const [endpoint, sourceEndpoint, cluster] = [input.u8(), input.u8(), input.u16()];
      const [transaction, options] = [input.u8(), input.u8()];
      input.u8();
      input.bytes(2 * input.u8());
      const data = input.bytes(input.u8());
      const frame = { ...from(core, sourceEndpoint), destination, endpoint, cluster, data };
      return send(frame, transaction, options);
    },
  };
}

/** A message to an endpoint of the host. */
export function incoming(core: Core, frame: Aps, hop: LastHop): void {
  const { endpoints, groups, stored } = core.memory();
  const { group = 0, cluster, source, sourceEndpoint, data } = frame;
  const targets = frame.endpoint === 0xff || group !== 0 ? [...endpoints.keys()] : [frame.endpoint];
  const timestamp = Math.floor(core.time.now()) >>> 0;
  // After the data, and in no manual: the address of the last hop and what is left of the radius (TI E2E 455787).
  const received = bytes(u16(hop.nwk), RADIUS - hop.hops);
  for (const endpoint of targets) {
    if (!endpoints.has(endpoint)) continue;
    if (group !== 0 && !groups.get(endpoint)?.has(group)) continue;
    const isBroadcast = frame.destination >= 0xfff8 ? 1 : 0;
    const tail = [endpoint, isBroadcast, hop.lqi, 0, u32(timestamp), 0] as const;
    if (data.length <= INCOMING_MAX) {
      const head = [u16(group), u16(cluster), u16(source), sourceEndpoint] as const;
      core.areq(SUBSYSTEM.af, INCOMING, bytes(...head, ...tail, data.length, data, received));
      continue;
    }
    stored.set(timestamp, data);
    const address = bytes(u16(source), Buffer.alloc(6));
    const head = [u16(group), u16(cluster), MODE.short, address, sourceEndpoint, u16(0)] as const;
    core.areq(SUBSYSTEM.af, INCOMING_EXT, bytes(...head, ...tail, u16(data.length), received));
  }
}

function from(core: Core, sourceEndpoint: number) {
  const profile = core.memory().endpoints.get(sourceEndpoint)?.profile ?? 0;
  return { source: 0, sourceEndpoint, profile };
}

function list(input: Reader): number[] {
  return Array.from({ length: input.u8() }, () => input.u16());
}
