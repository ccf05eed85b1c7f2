/** JetStream behind several addresses: one connection. When it is lost or does not answer, the next address gets one. */
import { openFailover } from '../../../drivers/contract/failover.ts';
import type { Clock } from '../clock.ts';
import { type JetStream, JetStreamError, openJetStream } from './jetstream.ts';
import { connectNats, type NatsSession, type NatsSettings } from './session.ts';

export interface NatsClient extends Disposable {
  /** Runs the work; what the server does not answer ends the connection. Rejects with what the operator should read. */
  use<T>(work: (jetStream: JetStream) => Promise<T>, signal: AbortSignal): Promise<T>;
}

export interface NatsClientOptions {
  settings: NatsSettings;
  urls: readonly string[];
  clock: Clock;
  /** For each answer. */
  answerMs: number;
}

export function openNatsClient({ settings, urls, clock, answerMs }: NatsClientOptions): NatsClient {
  const failover = openFailover(urls);
  let current: { session: NatsSession; jetStream: JetStream } | undefined;
  /** Those who come meanwhile wait for the same connection. */
  let connecting: Promise<JetStream> | undefined;

  function drop(jetStream: JetStream): void {
    if (current?.jetStream !== jetStream) return;
    current.session[Symbol.dispose]();
    current = undefined;
  }

  async function connect(signal: AbortSignal): Promise<JetStream> {
    try {
      const to = (url: string) => connectNats({ settings, url, clock }, () => undefined, signal);
      const session = await failover(to, signal);
      current = { session, jetStream: openJetStream(session, clock, answerMs) };
      return current.jetStream;
    } catch (error) {
      signal.throwIfAborted();
      throw new JetStreamError('unreachable', error instanceof Error ? error.message : String(error));
    }
  }

  async function open(signal: AbortSignal): Promise<JetStream> {
    if (current && current.session.loss() === undefined) return current.jetStream;
    connecting ??= connect(signal).finally(() => {
      connecting = undefined;
    });
    return await connecting;
  }

  return {
    async use(work, signal) {
      const jetStream = await open(signal);
      try {
        return await work(jetStream);
      } catch (error) {
        if (error instanceof JetStreamError && error.kind === 'unavailable') drop(jetStream);
        throw error;
      }
    },
    [Symbol.dispose]() {
      current?.session[Symbol.dispose]();
      current = undefined;
    },
  };
}
