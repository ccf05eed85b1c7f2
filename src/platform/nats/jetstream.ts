/** What is asked of JetStream: streams, what is stored in them, and the last value of a subject, which is what a key-value bucket is. */
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../clock.ts';
import { ackOf } from './acknowledgement.ts';
import type { NatsSession, Request } from './session.ts';
import type { Received } from './wire.ts';

/** Errors of nats-server (server/errors.json) that are answers. */
const NO_MESSAGE = 10_037;
const STREAM_NOT_FOUND = 10_059;
const STREAM_NAME_IN_USE = 10_058;
const WRONG_LAST_SEQUENCE = new Set([10_070, 10_071, 10_164]);

/** Without any of the code's: the message is for the operator. */
export class JetStreamError extends Error {
  override stack = '';
  /** `unreachable`: no server takes a connection; `unavailable`: one does, such as while the servers choose a leader. */
  readonly kind: 'conflict' | 'absent' | 'unavailable' | 'unreachable';
  constructor(kind: JetStreamError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface StoredMessage {
  sequence: number;
  subject: string;
  payload: Buffer;
}

export interface StreamState {
  firstSequence: number;
  lastSequence: number;
  messages: number;
  bytes: number;
}

export interface JetStream {
  /** Makes the stream unless it is there. */
  ensureStream(name: string, settings: object): Promise<void>;
  stateOf(stream: string): Promise<StreamState>;
  /** What its leader has stored last on the subject. */
  last(stream: string, subject: string): Promise<StoredMessage | undefined>;
  /**
   * Resolves with its sequence once it is stored, with replicas by a quorum. `expected`: the last sequence of the subject, or of the
   * whole stream; rejects with `conflict` when it is another, and nothing is stored.
   */
  publish(
    request: Omit<Request, 'headers'>,
    expected?: { subject?: number; stream?: number },
  ): Promise<number>;
  /** In order, from a sequence on, until there is no more or so many have come. */
  read(stream: string, from: number, most: number): Promise<StoredMessage[]>;
  /** What comes before a sequence. */
  purge(stream: string, below: number): Promise<void>;
}

/** `answerMs`: for an answer, before the server counts as away. */
export function openJetStream(session: NatsSession, clock: Clock, answerMs: number): JetStream {
  function answer(request: Request): Promise<Received> {
    const { promise, resolve } = Promise.withResolvers<Received>();
    const asked = session.ask(request, resolve);
    return withinTime(promise, asked, `no answer within ${answerMs} ms`);
  }

  async function withinTime<T>(promise: Promise<T>, asked: Disposable, reason: string): Promise<T> {
    using _asked = asked;
    const inTime = await settles(promise, answerMs, clock);
    const loss = session.loss();
    if (!inTime) throw new JetStreamError('unavailable', loss ? loss.error.message : reason);
    return promise;
  }

  async function api(name: string, body: object = {}): Promise<Record<string, unknown>> {
    const subject = `$JS.API.${name}`;
    const { status, payload } = await answer({ subject, headers: {}, payload: JSON.stringify(body) });
    if (status === 503) throw new JetStreamError('unavailable', 'it has no JetStream, or no leader of it');
    const found = JSON.parse(payload.toString()) as { error?: { err_code?: number; description?: string } };
    if (found.error) throw errorOf(found.error.err_code ?? 0, found.error.description ?? 'refused');
    return found as Record<string, unknown>;
  }

  return {
    async ensureStream(name, settings) {
      const made = await api(`STREAM.CREATE.${name}`, { name, ...settings }).catch((error: unknown) => error);
      if (made instanceof NameInUse || !(made instanceof Error)) return;
      throw made;
    },
    async stateOf(stream) {
      const { state } = await api(`STREAM.INFO.${stream}`);
      const { first_seq, last_seq, messages, bytes } = state as Record<string, number>;
      return {
        firstSequence: first_seq ?? 0,
        lastSequence: last_seq ?? 0,
        messages: messages ?? 0,
        bytes: bytes ?? 0,
      };
    },
    async last(stream, subject) {
      try {
        // nats-server before 2.9.15, which is Debian's, crashes when it is asked for a message of a stream that it is still making. To this
        // it answers then, too: there is nothing yet.
        if ((await this.stateOf(stream)).messages === 0) return undefined;
        const { message } = await api(`STREAM.MSG.GET.${stream}`, { last_by_subj: subject });
        return storedIn(message);
      } catch (error) {
        if (error instanceof JetStreamError && error.kind === 'absent') return undefined;
        throw error;
      }
    },
    async publish(request, expected = {}) {
      const ack = ackOf(await answer({ ...request, headers: expectations(expected) }));
      if (ack.kind === 'stored') return ack.sequence;
      if (ack.kind === 'none') throw new JetStreamError('absent', `no stream takes ${request.subject}`);
      throw errorOf(ack.code, ack.reason);
    },
    async read(stream, from, most) {
      const state = await this.stateOf(stream);
      const last = Math.min(state.lastSequence, Math.max(from, state.firstSequence) + most - 1);
      const asked: Promise<StoredMessage | undefined>[] = [];
      for (let seq = Math.max(from, state.firstSequence); seq <= last; seq += 1)
        asked.push(api(`STREAM.MSG.GET.${stream}`, { seq }).then(({ message }) => storedIn(message), absent));
      return (await Promise.all(asked)).filter((message) => message !== undefined);
    },
    async purge(stream, below) {
      // nats-server takes 1 for no limit, and removes everything.
      if (below > 1) await api(`STREAM.PURGE.${stream}`, { seq: below });
    },
  };
}

class NameInUse extends JetStreamError {}

function errorOf(code: number, description: string): JetStreamError {
  if (WRONG_LAST_SEQUENCE.has(code)) return new JetStreamError('conflict', description);
  if (code === STREAM_NAME_IN_USE) return new NameInUse('conflict', description);
  const isAbsent = code === NO_MESSAGE || code === STREAM_NOT_FOUND;
  return new JetStreamError(isAbsent ? 'absent' : 'unavailable', description);
}

/** Deleted meanwhile. */
function absent(error: unknown): undefined {
  if (!(error instanceof JetStreamError && error.kind === 'absent')) throw error;
}

function storedIn(message: unknown): StoredMessage {
  const { seq, subject, data = '' } = message as { seq: number; subject: string; data?: string };
  return { sequence: seq, subject, payload: Buffer.from(data, 'base64') };
}

function expectations({ subject, stream }: { subject?: number; stream?: number }) {
  return {
    ...(subject !== undefined && { 'Nats-Expected-Last-Subject-Sequence': String(subject) }),
    ...(stream !== undefined && { 'Nats-Expected-Last-Sequence': String(stream) }),
  };
}
