/**
 * A lock that did not answer may be there all the same: with another network address, behind another router, or with
 * another parent than the coordinator believes. It is looked for at once, and asked for its state, which may be repeated.
 * An actuation never waits for this, and is never sent by it.
 */
import type { DriverContext } from '../contract/driver.ts';
import { settles } from '../contract/waiting.ts';
import type { Locks } from './locks.ts';
import type { Radio, ZclReply } from './radio.ts';
import { DOOR_LOCK_ATTRIBUTE, readingOf } from './standard-lock.ts';

/** Before each round, after the one before it: all of them within a minute. */
const ROUNDS_MS = [0, 15_000];
/** At the same time. The library sends to 16 devices at once, and locks that are there need most of these places. */
const PARALLEL_MAX = 2;
/** For a device, or its parent, to say its address. */
const LOCATE_MS = 3_000;
/** For routers to find a route. */
const ROUTE_MS = 1_000;
/** For the coordinator to confirm, and again for the answer. A parent holds the question as long as any frame. */
const ASK_MS = 8_000;
/** Between the first sign of an answer and the answer itself. */
const ANSWER_MS = 500;

export interface Recovery {
  /** It did not answer. */
  failed(ieee: string): void;
  /** It spoke: it is there. */
  heard(ieee: string): void;
  /** It is to be free at once for something that cannot wait. */
  yield(ieee: string): void;
}

export interface RecoveryOptions {
  /** The present one. */
  radio(): Pick<Radio, 'send' | 'locate' | 'reroute' | 'disown'>;
  locks: Pick<Locks, 'find'>;
  context: Pick<DriverContext, 'clock' | 'log'>;
  /** Fires when the link ends. */
  signal: AbortSignal;
}

interface Search {
  /** Fires when it spoke. */
  back: AbortController;
  /** Fires for something that cannot wait. Of the present round. */
  asking: AbortController;
}

export function openRecovery(options: RecoveryOptions): Recovery {
  const { context, signal } = options;
  const { clock, log } = context;
  const searches = new Map<string, Search>();
  const due: string[] = [];
  let working = 0;

  function next(): void {
    if (working >= PARALLEL_MAX) return;
    const ieee = due.shift();
    const search = ieee === undefined ? undefined : searches.get(ieee);
    if (ieee === undefined || !search) return;
    working += 1;
    void round(ieee, search, options)
      .catch((error) => log.debug({ lock: ieee, err: error }, 'a lock that did not answer was not found'))
      .finally(() => {
        working -= 1;
        next();
      });
    next();
  }

  async function search(ieee: string): Promise<void> {
    const back = new AbortController();
    searches.set(ieee, { back, asking: new AbortController() });
    const over = AbortSignal.any([back.signal, signal]);
    try {
      for (const milliseconds of ROUNDS_MS) {
        await clock.sleep(milliseconds, over);
        due.push(ieee);
        next();
      }
      await clock.sleep(ASK_MS, over);
    } finally {
      searches.delete(ieee);
    }
  }
  return {
    failed(ieee) {
      if (searches.has(ieee) || signal.aborted) return;
      // It was heard, or the link has ended.
      search(ieee).catch(() => undefined);
    },
    heard: (ieee) => searches.get(ieee)?.back.abort('it spoke'),
    yield(ieee) {
      const found = searches.get(ieee);
      if (!found) return;
      found.asking.abort('it is needed');
      found.asking = new AbortController();
    },
  };
}

async function round(ieee: string, { back, asking }: Search, options: RecoveryOptions): Promise<void> {
  const { radio, context } = options;
  // An ask that was ended for an actuation is no proof that the lock is gone: the whole round ends with it.
  const over = AbortSignal.any([back.signal, asking.signal, options.signal]);
  // A parent that does not answer for its sleeping children leaves this without an answer.
  await settles(radio().locate(ieee), LOCATE_MS, context.clock, over);
  if (over.aborted) return;
  await ask(ieee, over, over, options);
  if (over.aborted) return;
  const disowning = await radio().disown(ieee);
  const ended = new AbortController();
  const without = ask(ieee, over, ended.signal, options).catch(() => undefined);
  await settles(without, ROUTE_MS + ASK_MS, context.clock, over);
  // What it spoke may be its answer, which settles in a moment, or belong to an earlier command.
  if (back.signal.aborted) await settles(without, ANSWER_MS, context.clock, asking.signal);
  ended.abort('the round is over');
  // A child that is away or busy is restored. One that answered now is reached by a route, and is no child any more.
  const reply = over.aborted && !back.signal.aborted ? undefined : await without;
  if (reply?.kind === 'answered') disowning?.confirm();
  else await disowning?.restore();
}

/** `over`: nothing is asked any more. `known`: no one waits for the answer. */
async function ask(
  ieee: string,
  over: AbortSignal,
  known: AbortSignal,
  { radio, locks, context: { clock } }: RecoveryOptions,
): Promise<ZclReply | undefined> {
  await radio().reroute(ieee);
  await settles(new Promise(() => undefined), ROUTE_MS, clock, over);
  if (over.aborted) return undefined;
  const { endpoint } = locks.find(ieee);
  return radio().send({
    ieee,
    endpoint,
    ...readingOf([DOOR_LOCK_ATTRIBUTE.lockState]),
    notAfter: clock.monotonic() + ASK_MS,
    timeoutMs: ASK_MS,
    known,
  });
}
