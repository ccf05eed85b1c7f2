/** What a CONNECT must look like (docs/encoder-protocol.md, Connection); the credential is asked for afterwards. */
import type { ConnectPacket } from 'aedes';
import { BadMessage } from './link.ts';
import { parseStatus } from './messages.ts';
import type { Identity, Refusal } from './peer.ts';
import { willTopic } from './topics.ts';

/** A will is about 70 bytes of JSON. */
const MAX_WILL_BYTES = 512;

/** Why this CONNECT is refused whatever its credential; undefined when it is well-formed. */
export function connectFault(packet: ConnectPacket, identity: Identity | undefined): Refusal | undefined {
  // Bridge mode is mosquitto's own level 0x84.
  if (packet.protocolId !== 'MQTT' || packet.protocolVersion !== 4 || 'bridgeMode' in packet)
    return { returnCode: 1, reason: 'it does not speak MQTT 3.1.1' };
  if (!identity) return { returnCode: 5, reason: 'the certificate has no single CN that is an encoder id' };
  if (packet.clientId !== identity.encoderId) {
    return { returnCode: 2, reason: 'the client id is not the CN of the certificate' };
  }
  const { will } = packet;
  const topic = willTopic(identity.encoderId);
  if (!will) return { returnCode: 5, reason: 'it leaves no will, which names the session' };
  if (will.topic !== topic) return { returnCode: 5, reason: `the will is not for ${topic}` };
  if (will.qos !== 1 || will.retain) {
    return { returnCode: 5, reason: 'the will is retained or not of QoS 1' };
  }
  if (will.payload.length > MAX_WILL_BYTES) {
    return { returnCode: 5, reason: `the will is longer than ${MAX_WILL_BYTES} bytes` };
  }
  if (announcedSession(packet) === undefined) {
    return { returnCode: 5, reason: 'the will is not {"online": false, "session": <UUID>}' };
  }
  return undefined;
}

/** The session the encoder drew for this connection, as its will says it; undefined without a will of that form. */
export function announcedSession({ will }: ConnectPacket): string | undefined {
  if (!will) return undefined;
  try {
    const message = parseStatus(Buffer.from(will.payload));
    return message.online ? undefined : message.session;
  } catch (error) {
    if (error instanceof BadMessage) return undefined;
    throw error;
  }
}
