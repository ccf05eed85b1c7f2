/** What the application of a device says: to who is bound to a cluster, to the coordinator, and in answer. */
import type { Aps } from '../air/air.ts';
import type { OpenNode } from '../air/node.ts';
import type { Cluster } from './cluster.ts';
import { encodeZcl, type ZclFrame } from './frame.ts';

export const ENDPOINT = 1;
export const HOME_AUTOMATION = 0x0104;

type Command = Pick<ZclFrame, 'command' | 'isFoundation' | 'payload'>;

export interface Speech {
  /** From a server to those who are bound to it, with numbers of their own. */
  toBound(cluster: Cluster, command: Command): void;
  /** To an endpoint of the coordinator. */
  toCoordinator(cluster: number, endpoint: number, command: Command & Pick<ZclFrame, 'fromServer'>): void;
  /** To who sent `request`. */
  respond(request: Aps, response: ZclFrame): void;
}

export function openSpeech(node: () => OpenNode): Speech {
  let sequence = 0;
  const nextTsn = () => {
    sequence = (sequence + 1) & 0xff;
    return sequence;
  };
  const send = (cluster: number, destination: number, endpoint: number, frame: ZclFrame) =>
    void node().send({
      sourceEndpoint: ENDPOINT,
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
        send(cluster.id, 0, target.endpoint, {
          ...command,
          tsn: nextTsn(),
          fromServer: true,
          disableDefaultResponse: true,
          ...(cluster.manufacturer !== undefined && { manufacturer: cluster.manufacturer }),
        });
      }
    },
    toCoordinator: (cluster, endpoint, command) =>
      send(cluster, 0, endpoint, { ...command, tsn: nextTsn(), disableDefaultResponse: true }),
    respond: ({ cluster, source, sourceEndpoint }, response) =>
      send(cluster, source, sourceEndpoint, response),
  };
}
