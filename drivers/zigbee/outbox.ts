/** Events on their way to be durable, from listeners that cannot wait for it: bounded, in order, each with an id. */
import { randomUUID } from 'node:crypto';
import type { DriverContext, Plain } from '../contract/driver.ts';

/** A site with this many that are not durable has a full disk: what comes then is counted, not kept. */
const WAITING_MAX = 512;

export interface Outbox {
  /** Never throws. `durable` is called when it is. */
  emit(kind: string, data: Plain, durable?: () => void): void;
  /** The same, to wait for. Rejects when there is no room, or the link ends. */
  emitDurably(kind: string, data: Plain): Promise<void>;
}

/**
 * Ids are not used twice, also where the clock stands at the same millisecond at two starts: the daemon drops an event whose
 * id it has. No one waits any more once the signal fires;
 * an event that was added is sent all the same, because it has happened.
 */
export function openOutbox(
  { emit, log }: Pick<DriverContext, 'emit' | 'log'>,
  linkId: string,
  signal: AbortSignal,
): Outbox {
  let waiting = 0;
  let dropped = 0;
  let count = 0;
  const life = randomUUID();

  async function store(kind: string, data: Plain): Promise<void> {
    if (waiting >= WAITING_MAX) {
      dropped += 1;
      if (dropped === 1) log.error({ kind }, `events are lost: ${WAITING_MAX} wait to be stored already`);
      throw new Error('there is no room for another event');
    }
    waiting += 1;
    count += 1;
    try {
      await emit({ id: `${linkId}-${life}-${count}`, kind, data }, new AbortController().signal);
      if (dropped > 0) log.warn({ dropped }, 'events are stored again');
      dropped = 0;
    } finally {
      waiting -= 1;
    }
  }

  return {
    async emitDurably(kind, data) {
      signal.throwIfAborted();
      const over = Promise.withResolvers<never>();
      const end = () => over.reject(signal.reason);
      signal.addEventListener('abort', end, { once: true });
      try {
        await Promise.race([store(kind, data), over.promise]);
      } finally {
        signal.removeEventListener('abort', end);
      }
    },
    emit(kind, data, durable) {
      store(kind, data)
        .then(durable, () => undefined)
        // As while a channel move opens the radio again, which knows no lock then.
        .catch((error) => log.debug({ kind, err: error }, 'that an event is stored could not be noted'));
    },
  };
}
