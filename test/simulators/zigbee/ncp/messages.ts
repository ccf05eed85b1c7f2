/** Sending by EZSP (UG100, rev. 4.0): sendUnicast, sendBroadcast, sendMulticast, messageSentHandler. */
import type { Aps } from '../air/frames.ts';
import { bytes, type Reader, u16 } from '../bytes.ts';
import { STATUS } from '../mt/status.ts';
import { PAYLOAD_MAX } from '../stick/af.ts';
import { type ApsHead, apsFrame, readApsFrame } from './aps-frame.ts';
import { CALLBACK, type Commands, type NcpCore } from './core.ts';
import { type Incoming, SELF } from './incoming.ts';
import { SL, status, WIDE_STATUS } from './status.ts';

/** EmberApsOption. */
const RETRY = 0x0040;
/** Of a frame with that option that the far end has not acknowledged. */
const RETRIES = 3;
/** EmberOutgoingMessageType. */
const OUTGOING = { direct: 0, multicast: 3, broadcast: 6 } as const;
/** Multicasts go to all who listen. */
const EVERYBODY = 0xffff;

interface Message {
  type: number;
  destination: number;
  head: ApsHead;
  tag: number;
  data: Buffer;
}

export function messageCommands(core: NcpCore, { hear, answer }: Incoming): Commands {
  const { memory, version } = core;
  const isWide = version >= WIDE_STATUS;
  const tagOf = (input: Reader) => (isWide ? input.u16() : input.u8());
  const response = (code: number, sequence = 0) => bytes(status(version, code), sequence);

  /** Undefined: it may be sent. */
  function refusal({ data }: Message): number | undefined {
    if (!memory().network) return SL.networkDown;
    if (data.length > PAYLOAD_MAX) return SL.messageTooLong;
    if (memory().full === 0) return undefined;
    memory().full -= 1;
    return SL.maxMessageLimit;
  }
  function sent({ type, destination, head, tag }: Message, sequence: number, code: number): void {
    const where = bytes(type, u16(destination), apsFrame(head, sequence));
    const done = status(version, code);
    const body = isWide ? bytes(done, where, u16(tag), 0) : bytes(where, tag, done, 0);
    core.later(0, () => core.callback(CALLBACK.messageSent, body));
  }
  function unicast(frame: Aps, options: number, settled: (isSent: boolean) => void): void {
    const sender = memory();
    const isAcknowledged = (options & RETRY) !== 0;
    const attempt = (left: number): void =>
      core.air.unicast(frame, isAcknowledged, (code) => {
        // One that was reset meanwhile knows nothing of it.
        if (sender !== memory()) return;
        if (code === STATUS.success || left === 0) settled(code === STATUS.success);
        else attempt(left - 1);
      });
    attempt(isAcknowledged ? RETRIES : 0);
  }
  function send(message: Message): Buffer {
    const refused = refusal(message);
    if (refused !== undefined) return response(refused);
    memory().apsSequence = (memory().apsSequence + 1) & 0xff;
    const sequence = memory().apsSequence;
    const { type, destination, data } = message;
    const { options, group, ...head } = message.head;
    const frame: Aps = {
      source: 0,
      destination,
      ...head,
      ...(type === OUTGOING.multicast && { group }),
      data,
    };
    if (type !== OUTGOING.direct) {
      if (head.profile === 0 && head.endpoint === 0) core.later(0, () => answer(frame));
      core.air.broadcast(frame);
      sent(message, sequence, SL.ok);
    } else if (destination === 0) {
      sent(message, sequence, SL.ok);
      core.later(0, () => hear(frame, SELF));
    } else unicast(frame, options, (isSent) => sent(message, sequence, isSent ? SL.ok : SL.deliveryFailed));
    return response(SL.ok, sequence);
  }

  return {
    // sendUnicast
    52(input) {
      const [type, destination, head] = [input.u8(), input.u16(), readApsFrame(input)];
      const message = { type, destination, head, tag: tagOf(input), data: payload(input) };
      return type === OUTGOING.direct ? send(message) : response(SL.invalidParameter);
    },
    // sendBroadcast
    54(input) {
      // Alias, destination, sequence of the network layer.
      if (isWide) input.u16();
      const destination = input.u16();
      if (isWide) input.u8();
      const head = readApsFrame(input);
      input.u8();
      return send({ type: OUTGOING.broadcast, destination, head, tag: tagOf(input), data: payload(input) });
    },
    // sendMulticast
    56(input) {
      const head = readApsFrame(input);
      // Hops; broadcast address, alias and sequence, or the radius of those who are not members.
      input.bytes(isWide ? 6 : 2);
      return send({
        type: OUTGOING.multicast,
        destination: EVERYBODY,
        head,
        tag: tagOf(input),
        data: payload(input),
      });
    },
  };
}

function payload(input: Reader): Buffer {
  const data = Buffer.from(input.bytes(input.u8()));
  input.end();
  return data;
}
