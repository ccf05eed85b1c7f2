/**
 * The cards a clerk lays on the encoder, and what is physically on them. The world outlives the encoder process: a card
 * in the reader is still there after kill -9. It is kept in a log of its own, which tests read to prove that no card was
 * written twice and that `written` means written.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';

export type CardKind = 'blank' | 'incompatible' | 'damaged' | 'locked' | 'unverifiable';

export interface Card {
  cardId: string;
  kind: CardKind;
  /** The clerk takes it away in this state. */
  removedDuring?: 'cardDetected' | 'writing';
}

/** `partial` when the first byte goes to the card; `complete`, with the whole content, when the last one did. */
export type PhysicalRecord =
  | ({ what: 'placed' } & Card)
  | { what: 'removed'; cardId: string }
  | { what: 'partial'; cardId: string; jobId: string; keyId: string }
  | { what: 'complete'; cardId: string; jobId: string; keyId: string; blocks: string[] };

export interface Cards extends Disposable {
  /** The clerk has a card ready. */
  add(card: Partial<Card>): void;
  /** Whether a fresh blank card is ready whenever one is asked for. */
  endless: boolean;
  inReader(): Card | undefined;
  /** The card in the reader; when there is none, the next one the clerk has. */
  take(): Card | undefined;
  /** Resolves when `take` may have a card. */
  arrival(signal: AbortSignal): Promise<void>;
  remove(card: Card): void;
  beginWrite(card: Card, jobId: string, keyId: string): void;
  endWrite(card: Card, jobId: string, keyId: string, blocks: string[]): void;
}

export function openCards(file: string, options: { durable?: boolean; endless?: boolean } = {}): Cards {
  const durable = options.durable ?? true;
  const ready: Card[] = [];
  let lying = readerAfter(existsSync(file) ? readPhysicalLog(file) : []);
  let endless = options.endless ?? false;
  let arrived = Promise.withResolvers<void>();
  const descriptor = openSync(file, 'a', 0o600);

  function record(entry: PhysicalRecord): void {
    writeSync(descriptor, `${JSON.stringify(entry)}\n`);
    if (durable) fdatasyncSync(descriptor);
  }
  function announce(): void {
    arrived.resolve();
    arrived = Promise.withResolvers<void>();
  }

  return {
    add({ cardId = randomUUID(), kind = 'blank', removedDuring }) {
      ready.push({ cardId, kind, ...(removedDuring !== undefined && { removedDuring }) });
      announce();
    },
    get endless() {
      return endless;
    },
    set endless(value) {
      endless = value;
      if (value) announce();
    },
    inReader: () => lying,
    take() {
      if (lying) return lying;
      lying = ready.shift() ?? (endless ? { cardId: randomUUID(), kind: 'blank' } : undefined);
      if (lying) record({ what: 'placed', ...lying });
      return lying;
    },
    arrival(signal) {
      const { promise, reject } = Promise.withResolvers<never>();
      const abort = () => reject(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      return Promise.race([arrived.promise, promise]).finally(() =>
        signal.removeEventListener('abort', abort),
      );
    },
    remove({ cardId }) {
      if (lying?.cardId !== cardId) return;
      record({ what: 'removed', cardId });
      lying = undefined;
    },
    beginWrite({ cardId }, jobId, keyId) {
      record({ what: 'partial', cardId, jobId, keyId });
    },
    endWrite({ cardId }, jobId, keyId, blocks) {
      record({ what: 'complete', cardId, jobId, keyId, blocks });
    },
    [Symbol.dispose]() {
      closeSync(descriptor);
    },
  };
}

/** What happened to the cards, in order. A torn last line never happened. */
export function readPhysicalLog(file: string): PhysicalRecord[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as PhysicalRecord);
}

function readerAfter(log: PhysicalRecord[]): Card | undefined {
  const placed = log.findLast((entry) => entry.what === 'placed');
  if (!placed || log.some((entry) => entry.what === 'removed' && entry.cardId === placed.cardId)) {
    return undefined;
  }
  const { what: _, ...card } = placed;
  return card;
}
