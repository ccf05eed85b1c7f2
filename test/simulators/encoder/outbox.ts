/** Sends what the journal holds, in order, on each connection again, until the gateway has acknowledged it (Rule 8). */
import type { Moment, Timings } from './commands.ts';
import type { EntryStatus, Journal, UpMessage } from './journal.ts';
import type { EncoderClock } from './time.ts';
import type { Transport } from './transport.ts';

export interface Outbox {
  /** Scripted faults: everything twice; neighbours swapped. */
  duplicate: boolean;
  reorder: boolean;
  /** Sends everything unacknowledged over this connection, and from now on what comes. */
  attach(transport: Transport): void;
  detach(): void;
  /** Sends what was not yet sent on this connection. */
  pump(): void;
  /** The gateway acknowledged something. */
  acknowledged(): void;
  /** Sends again what stays without acknowledgement, until the signal fires. */
  repeat(): Promise<never>;
}

export interface OutboxOptions {
  journal: Journal;
  clock: EncoderClock;
  timings: Timings;
  topic(channel: string): string;
  moment(moment: Moment): void;
  signal: AbortSignal;
}

/** A swapped message waits this long for the one that is to overtake it. */
const SWAP_MS = 20;

export function openOutbox(options: OutboxOptions): Outbox {
  const { journal, clock, timings, topic, signal } = options;
  let transport: Transport | undefined;
  let sent = new WeakSet<UpMessage>();
  let heldBack: UpMessage | undefined;
  let lastProgress = 0;

  function send(message: UpMessage): void {
    const { channel, content } = message;
    const published = transport?.publish(topic(`up/${channel}`), JSON.stringify(content));
    published
      ?.then(
        () => {
          if (channel === 'progress') {
            options.moment({ status: content.status as EntryStatus, when: 'acknowledged' });
          }
        },
        // The connection ended first; the next one sends it again.
        () => undefined,
      )
      .catch(() => undefined);
  }

  function release(): void {
    if (heldBack) send(heldBack);
    heldBack = undefined;
  }

  const outbox: Outbox = {
    duplicate: false,
    reorder: false,
    attach(link) {
      transport = link;
      sent = new WeakSet();
      lastProgress = clock.monotonic();
      outbox.pump();
    },
    detach() {
      transport = undefined;
      heldBack = undefined;
    },
    pump() {
      if (!transport) return;
      for (const message of journal.unacknowledged()) {
        if (sent.has(message)) continue;
        sent.add(message);
        if (outbox.reorder && !heldBack) {
          heldBack = message;
          clock.sleep(SWAP_MS, signal).then(release, () => undefined);
          continue;
        }
        send(message);
        if (outbox.duplicate) send(message);
        release();
      }
    },
    acknowledged() {
      lastProgress = clock.monotonic();
    },
    async repeat() {
      for (;;) {
        await clock.sleep(timings.repeatMs, signal);
        const waiting = journal.unacknowledged().length > 0;
        if (!waiting || clock.monotonic() - lastProgress < timings.repeatMs) continue;
        sent = new WeakSet();
        outbox.pump();
      }
    },
  };
  return outbox;
}
