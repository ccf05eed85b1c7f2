/** JetStream as its clients see it: streams, expected sequences, purges. How each client reaches it is the campaign's. */
import type { Clock } from '../../../src/platform/clock.ts';
import type { NatsClient } from '../../../src/platform/nats/client.ts';
import { type JetStream, JetStreamError, type StoredMessage } from '../../../src/platform/nats/jetstream.ts';

/** `half`: it hears, and its answers are lost. */
export type Way = 'open' | 'cut' | 'half' | 'slow';

const ANSWER_MS = 1_000;

interface Stream {
  subjects: readonly string[];
  messages: StoredMessage[];
  lastSequence: number;
}

export interface PlayedStreams {
  /** `awake`: a process that is stopped reads no answer. */
  client(way: () => Way, clock: Clock, awake: () => Promise<void>): NatsClient;
}

export function openPlayedStreams(): PlayedStreams {
  const streams = new Map<string, Stream>();
  const found = (name: string): Stream => {
    const stream = streams.get(name);
    if (!stream) throw new JetStreamError('absent', 'stream not found');
    return stream;
  };
  const taking = (subject: string): Stream => {
    const isTaken = ({ subjects }: Stream) =>
      subjects.some((one) => one === subject || (one.endsWith('>') && subject.startsWith(one.slice(0, -1))));
    const stream = [...streams.values()].find(isTaken);
    if (!stream) throw new JetStreamError('absent', `no stream takes ${subject}`);
    return stream;
  };
  const lastOf = ({ messages }: Stream, subject: string) =>
    messages.findLast((message) => message.subject === subject);

  function store(subject: string, payload: Buffer, expected: { subject?: number; stream?: number }): number {
    const stream = taking(subject);
    const isExpected =
      (expected.subject === undefined || (lastOf(stream, subject)?.sequence ?? 0) === expected.subject) &&
      (expected.stream === undefined || stream.lastSequence === expected.stream);
    if (!isExpected) throw new JetStreamError('conflict', 'wrong last sequence');
    stream.lastSequence += 1;
    stream.messages.push({ sequence: stream.lastSequence, subject, payload });
    return stream.lastSequence;
  }

  const direct: JetStream = {
    async ensureStream(name, settings) {
      const { subjects } = settings as { subjects: string[] };
      if (!streams.has(name)) streams.set(name, { subjects, messages: [], lastSequence: 0 });
    },
    async stateOf(name) {
      const { messages, lastSequence } = found(name);
      const firstSequence = messages[0]?.sequence ?? lastSequence + 1;
      return { firstSequence, lastSequence, messages: messages.length, bytes: 0 };
    },
    last: async (name, subject) => (streams.has(name) ? lastOf(found(name), subject) : undefined),
    publish: async ({ subject, payload }, expected = {}) => store(subject, Buffer.from(payload), expected),
    read: async (name, from, most) =>
      found(name)
        .messages.filter(({ sequence }) => sequence >= from)
        .slice(0, most),
    async purge(name, below) {
      const stream = found(name);
      stream.messages = stream.messages.filter(({ sequence }) => sequence >= below);
    },
  };

  return {
    client(way, clock, awake) {
      /** The way there and the way back, each as it is then. */
      const over =
        (name: keyof JetStream) =>
        async (...args: never[]) => {
          const lost = async () => {
            await clock.sleep(ANSWER_MS);
            throw new JetStreamError('unavailable', `no answer within ${ANSWER_MS} ms`);
          };
          if (way() === 'slow') await clock.sleep(300);
          if (way() === 'cut') return lost();
          const answer = await (direct[name] as (...all: never[]) => Promise<unknown>)(...args).catch(
            (error: unknown) => ({ error }),
          );
          if (way() === 'slow') await clock.sleep(300);
          if (way() === 'cut' || way() === 'half') return lost();
          await awake();
          if (answer instanceof Object && 'error' in answer) throw answer.error;
          return answer;
        };
      const names = ['ensureStream', 'stateOf', 'last', 'publish', 'read', 'purge'] as const;
      const jetStream = Object.fromEntries(names.map((name) => [name, over(name)])) as unknown as JetStream;
      return {
        async use(work, signal) {
          signal.throwIfAborted();
          return work(jetStream);
        },
        [Symbol.dispose]: () => undefined,
      };
    },
  };
}
