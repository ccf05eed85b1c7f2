/** What the application of a device says: to who is bound to a cluster, to the coordinator, and in answer. */
import type { Aps } from '../air/frames.ts';
import type { OpenNode } from '../air/node.ts';
import type { Time } from '../time.ts';
import type { Cluster } from './cluster.ts';
import { encodeZcl, type ZclFrame } from './frame.ts';

export const HOME_AUTOMATION = 0x0104;

type Command = Pick<ZclFrame, 'command' | 'isFoundation' | 'payload'>;

export interface Speech {
  /**
   * From a server to those who are bound to it, with numbers of their own. A command that asks for a default response
   * (ZCL 2.5.12) and gets none is sent once more.
   */
  toBound(cluster: Cluster, command: Command): void;
  /** To an endpoint of the coordinator. */
  toCoordinator(cluster: number, endpoint: number, command: Command & Pick<ZclFrame, 'fromServer'>): void;
  /** A default response to the frame with this number. */
  confirmed(tsn: number): void;
  /** To who sent `request`. */
  respond(request: Aps, response: ZclFrame): void;
}

/** Then a lock takes an event for lost. */
const DEFAULT_RESPONSE_MS = 1_500;

export interface SpeechOptions {
  time: Time;
  node: () => OpenNode;
  /** Of the device. */
  endpoint: number;
  asksDefaultResponse: boolean;
  /** Takes one away from the account of events to lose. */
  losesEvent(): boolean;
  /** Later than the reports of the same movement. */
  lateEventsMs(): number;
}

export function openSpeech(options: SpeechOptions): Speech {
  const { time, node, endpoint: own, asksDefaultResponse, losesEvent, lateEventsMs } = options;
  /** Takes back the repetition of a frame, by its number. */
  const unconfirmed = new Map<number, () => void>();
  let sequence = 0;
  const nextTsn = () => {
    sequence = (sequence + 1) & 0xff;
    return sequence;
  };
  const send = (cluster: number, destination: number, endpoint: number, frame: ZclFrame) =>
    void node().send({
      sourceEndpoint: own,
      profile: HOME_AUTOMATION,
      cluster,
      destination,
      endpoint,
      data: encodeZcl(frame),
    });

  return {
    toBound(cluster, command) {
      const { bindings, network } = node();
      if (!network) return;
      for (const { cluster: bound, target } of bindings) {
        if (bound !== cluster.id || 'group' in target) continue;
        const isConfirmed = asksDefaultResponse && !command.isFoundation;
        const frame: ZclFrame = {
          ...command,
          tsn: nextTsn(),
          fromServer: true,
          disableDefaultResponse: !isConfirmed,
          ...(cluster.manufacturer !== undefined && { manufacturer: cluster.manufacturer }),
        };
        const say = () => send(cluster.id, 0, target.endpoint, frame);
        const lateMs = command.isFoundation ? 0 : lateEventsMs();
        if (lateMs > 0) time.after(lateMs, say);
        else if (command.isFoundation || !losesEvent()) say();
        if (isConfirmed) unconfirmed.set(frame.tsn, time.after(DEFAULT_RESPONSE_MS, say));
      }
    },
    confirmed(tsn) {
      unconfirmed.get(tsn)?.();
      unconfirmed.delete(tsn);
    },
    toCoordinator: (cluster, endpoint, command) =>
      send(cluster, 0, endpoint, { ...command, tsn: nextTsn(), disableDefaultResponse: true }),
    respond: ({ cluster, source, sourceEndpoint }, response) =>
      send(cluster, source, sourceEndpoint, response),
  };
}
