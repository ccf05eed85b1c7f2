/** What a CONNECT must look like (docs/encoder-protocol.md, Connection); the credential is asked for afterwards. */
import type { ConnectPacket } from 'aedes';
import type { Identity, Refusal } from './peer.ts';
import { willTopic } from './topics.ts';

/** A will is about 70 bytes of JSON. */
const MAX_WILL_BYTES = 512;

/** Why this CONNECT is refused whatever its credential; undefined when it is well-formed. */
export function connectFault(packet: ConnectPacket, identity: Identity | undefined): Refusal | undefined {
  if (!identity) return { returnCode: 5, reason: 'the certificate has no single CN that is an encoder id' };
  if (packet.clientId !== identity.encoderId) {
    return { returnCode: 2, reason: 'the client id is not the CN of the certificate' };
  }
  const { will } = packet;
  const topic = willTopic(identity.encoderId);
  if (will && will.topic !== topic) return { returnCode: 5, reason: `the will is not for ${topic}` };
  if (will && (will.qos !== 1 || will.retain)) {
    return { returnCode: 5, reason: 'the will is retained or not of QoS 1' };
  }
  if (will && will.payload.length > MAX_WILL_BYTES) {
    return { returnCode: 5, reason: `the will is longer than ${MAX_WILL_BYTES} bytes` };
  }
  return undefined;
}
