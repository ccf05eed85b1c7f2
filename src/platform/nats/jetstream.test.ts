/** JetStream of nats-server from Debian: what is asked while another client makes the stream. */
import { expect, it, onTestFinished } from 'vitest';
import { natsMissing, openNats } from '../../../test/services/events/nats.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { systemClock as clock } from '../clock.ts';
import { openNatsClient } from './client.ts';

/** Enough that version 2.9.10 ends at one of them, where a message is asked for at once. */
const STREAMS = 60;
const LOOKING = 4;
const NEVER = new AbortController().signal;

it.skipIf(natsMissing)(
  'leaves the server running that is asked for the last message of a stream it makes',
  async () => {
    await using nats = await openNats(temporaryFolder());
    const open = () => {
      const settings = { name: 'test' };
      const client = openNatsClient({ settings, urls: [nats.url], clock, answerMs: 10_000 });
      onTestFinished(() => client[Symbol.dispose]());
      return client;
    };
    const made = new Set<string>();
    let latest = 'one0';
    const looking = Array.from({ length: LOOKING }, async () => {
      const client = open();
      while (made.size < STREAMS) await client.use((jetStream) => jetStream.last(latest, latest), NEVER);
    });
    const maker = open();
    const making = (async () => {
      for (let number = 0; number < STREAMS; number += 1) {
        latest = `one${number}`;
        await maker.use((jetStream) => jetStream.ensureStream(latest, { subjects: [latest] }), NEVER);
        made.add(latest);
      }
    })();
    await Promise.all([making, ...looking]);
    expect(made.size).toBe(STREAMS);
  },
);
